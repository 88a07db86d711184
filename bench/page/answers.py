"""What a sweep answers in words, as bench/sweep/answers.cpp says it: tests/data/sweep_answers.json holds both to the
same words. A page says it of the times in its files, so that files of any version are judged by one rule."""

import dataclasses

import intervals
import two_runs

GAIN_THAT_COUNTS = 0.05
MOST_BY_OTHERS = 0.15  # of all processors' time
FROM_TIMES = ("batch_flat", "best_threads", "odd_batches")


@dataclasses.dataclass
class Point:
    """A measured point of a sweep."""

    batch: int
    threads: int
    seconds: list  # by pass
    others_share: float = 0  # of all processors' time, by other programs meanwhile


@dataclasses.dataclass
class Answer:
    what: str  # "batch_flat", "largest_batch", "best_threads", "odd_batches"
    value: int  # a batch or a number of threads; None: there is none
    text: str
    short: str  # in a few words
    doubt: str = ""  # why it is not sure

    @property
    def whole(self):
        return self.text + self.doubt


def batch_flat(points):
    """The batch from which on a doubling gains less than 5 % per image. Of the points, which ascend, those count whose
    batch is twice that of the one before, or more. None: of fewer than two."""
    doubled = []
    for point in points:
        if point.seconds and (not doubled or point.batch >= 2 * doubled[-1].batch):
            doubled.append(point)
    if len(doubled) < 2:
        return None
    start, sure = len(doubled) - 1, True  # of the doublings after it, each gains less
    while start > 0:
        ratio = change(doubled[start - 1], doubled[start])
        if ratio.middle <= 1 - GAIN_THAT_COUNTS:
            sure = sure and ratio.high <= 1 - GAIN_THAT_COUNTS
            break
        sure = sure and ratio.low > 1 - GAIN_THAT_COUNTS
        start -= 1
    if start + 1 == len(doubled):
        before, last = doubled[-2:]
        text = (
            f"A larger batch than {last.batch} may gain more: from {before.batch} to {last.batch} the time per image "
            f"is {times(change(before, last))}."
        )
        return Answer("batch_flat", None, text, "none of those tried", doubt_of(doubled))
    flat, following = doubled[start : start + 2]
    text = (
        f"From batch {flat.batch} on a larger batch gains less than 5 % per image"
        f"{'' if sure else ' (by the medians; not by every interval)'}: from {flat.batch} to {following.batch} the "
        f"time per image is {times(change(flat, following))}."
    )
    return Answer("batch_flat", flat.batch, text, f"batch {flat.batch}", doubt_of(doubled))


def best_threads(points):
    """The number of threads with the least time, and all others that are as good within noise."""
    timed = [point for point in points if point.seconds]
    if len(timed) < 2:
        return None
    best = min(timed, key=lambda point: intervals.of_median(point.seconds).middle)
    equal = [point.threads for point in timed if point is not best and ratio_of(best.seconds, point.seconds).low <= 1]
    fewest = min(timed, key=lambda point: point.threads)
    other = fewest if fewest is not best else max(timed, key=lambda point: point.threads)
    who = "1 thread is" if best.threads == 1 else f"{best.threads} threads are"
    text = f"{who} the fastest: with {other.threads} a pass takes {times(ratio_of(best.seconds, other.seconds))}"
    text += f"; as good within noise: {', '.join(map(str, equal))}" if equal else ""
    return Answer("best_threads", best.threads, f"{text}.", str(best.threads), doubt_of(timed))


def odd_batches(points):
    """Whether one image less or more than an even batch is cheaper per image: of the largest that has both."""
    timed = {point.batch: point for point in points if point.seconds}
    even = max((batch for batch in timed if batch % 2 == 0 and {batch - 1, batch + 1} <= timed.keys()), default=None)
    if even is None:
        return None
    three = [timed[batch] for batch in (even - 1, even, even + 1)]
    below, above = change(three[1], three[0]), change(three[1], three[2])
    if below.high < 1 or above.high < 1:
        said, short = "pay here", f"cheaper per image than {even}"
    elif below.low > 1 and above.low > 1:
        said, short = "do not pay", f"dearer per image than {even}"
    else:
        said = "make no difference beyond noise, or one that is not decided"
        short = f"no decided difference from {even}"
    text = (
        f"Odd batches {said}: beside {even}, an image takes {times(below)} at {even - 1} and {times(above)} at "
        f"{even + 1}."
    )
    return Answer("odd_batches", None, text, short, doubt_of(three))


def ratio_of(first, second):
    """Passes of one process resemble their predecessors, as processes do in a comparison."""
    repetition = max(two_runs.repetition_of(first), two_runs.repetition_of(second))
    return two_runs.widened(two_runs.of_ratio(first, second), repetition)


def change(first, second):
    """Of the time per image."""
    return ratio_of(*([each / point.batch for each in point.seconds] for point in (first, second)))


def times(ratio):
    return f"{ratio.middle:.3f} times ({ratio.low:.3f} .. {ratio.high:.3f})"


def doubt_of(points):
    """What an answer from such points is worth where other programs ran, or where passes are few."""
    text, most = "", max(point.others_share for point in points)
    if most > MOST_BY_OTHERS:
        text = f" Not sure: other programs took up to {100 * most:.0f} % of the processors during these points."
    few = next((len(one.seconds) for one in points if not two_runs.rank(len(one.seconds), len(one.seconds))), None)
    if few:
        text += (
            f" Not sure: of {few} pass{'' if few == 1 else 'es'} an interval is from the least to the greatest ratio, "
            "and not one of 95 %; take --passes=9."
        )
    return text
