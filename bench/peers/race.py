"""The race: passes in the order A B C, C B A, ..., and what may be said of their times."""

import itertools
import random
import statistics
import time

import rows

SETTLE_SECONDS = 0.05  # after a pass the other side's threads still spin for a moment
DISTURBED_CORES = 0.1
LEVEL = 0.95


def run_quietly(subject, mode, others, retries):
    """One pass, again while others took the cores; the last attempt counts."""
    for attempt in range(retries + 1):
        time.sleep(SETTLE_SECONDS)
        sample = subject.run(mode)
        sample["attempts"] = attempt + 1
        if sample["others_cores"] <= others:
            break
    return sample


def race(subjects, mode, rounds, others=DISTURBED_CORES, retries=3):
    """Samples of every subject, round by round. The order turns from round to round, so that drift meets all alike."""
    for subject in subjects:
        subject.run(mode)  # warm-up
    samples = [[] for _ in subjects]
    for i in range(rounds):
        order = list(enumerate(subjects))
        for k, subject in order if i % 2 == 0 else reversed(order):
            samples[k].append(run_quietly(subject, mode, others, retries))
    return samples


def seconds(sample, what):
    return sample["forward"] + sample["backward"] if what == "total" else sample[what]


def ratio(ours, theirs):
    """Our median over the lowest median of theirs, which are one list for each layout."""
    return statistics.median(ours) / min(statistics.median(t) for t in theirs)


def interval(ours, theirs, draws=5000):
    """Percentile bootstrap of `ratio`: whole rounds are drawn, and the layout is chosen anew in each draw."""
    chance, n = random.Random(1), len(ours)
    found = []
    for _ in range(draws):
        picks = [chance.randrange(n) for _ in range(n)]
        found.append(ratio([ours[i] for i in picks], [[t[i] for i in picks] for t in theirs]))
    found.sort()
    tail = int((1 - LEVEL) / 2 * draws)
    return found[tail], found[draws - 1 - tail]


def judge(net, mode, subjects, samples):
    """A line of the table for each pass and peer. Our layout, where there are several, is the faster in total."""
    def times(k, what):
        return [seconds(sample, what) for sample in samples[k]]

    def fastest(candidates, what):
        return min(candidates, key=lambda k: statistics.median(times(k, what)))

    def of(peer):
        return [k for k, subject in enumerate(subjects) if subject.peer == peer]

    ours = fastest(of("lamina"), rows.passes(mode)[-1])
    peers = [peer for peer in dict.fromkeys(subject.peer for subject in subjects) if peer != "lamina"]
    lines = []
    for what, peer in itertools.product(rows.passes(mode), peers):
        best = fastest(of(peer), what)
        theirs = [times(k, what) for k in of(peer)]
        low, high = interval(times(ours, what), theirs)
        lines.append({
            "net": net, "pass": what, "peer": peer, "layout": subjects[ours].layout,
            "peer_layout": subjects[best].layout, "samples": len(samples[ours]),
            "ms": 1e3 * statistics.median(times(ours, what)), "peer_ms": 1e3 * statistics.median(times(best, what)),
            "ratio": ratio(times(ours, what), theirs), "low": low, "high": high,
            "disturbed": max(sum(s["others_cores"] > DISTURBED_CORES for s in samples[k]) for k in [ours, *of(peer)]),
        })
    return lines


def summary(lines):
    """Geometric mean of the ratios over networks, per peer and pass."""
    means = {}
    for line in lines:
        means.setdefault((line["peer"], line["pass"]), []).append(line["ratio"])
    return {key: statistics.geometric_mean(ratios) for key, ratios in means.items() if len(ratios) > 1}
