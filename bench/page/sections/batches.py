"""The batch: time of an image against the number of images in a pass, and where memory ends."""

import collections

import altair

from page import charts
from page.parts import Cell, Chart, Head, Row, Table
from page.sections import gains
from page.text import between, digits, milliseconds, size


HEAD = Head(
    "batches",
    "Batch sweep",
    "Batches",
    "Milliseconds of one image against the batch, both logarithmic: where a line is flat, a larger batch gains "
    "nothing.",
    "lamina_bench sweep resnet18 --benchmark_out=sweep.json",
)

QUESTIONS = {
    "batch_flat": "From which batch on does a larger one gain less than 5 %?",
    "largest_batch": "Which batch is the largest that fits in memory?",
    "odd_batches": "Is an image cheaper in an odd batch?",
}


def make(model):
    series = {}
    for one in model.of("net"):
        if one.key["part"] in ("total", "inference") and not one.key.get("differs", {}).get("threads"):
            series.setdefault((one.key["network"], one.key["part"], one.who), {})[one.key["batch"]] = one
    swept = {key: its for key, its in series.items() if len(its) > 1 and any(one.seconds for one in its.values())}
    section = HEAD.section(swept)
    if not swept:
        return section
    points, ends = records(swept)
    section.charts = [
        Chart(
            "batches",
            "Time of an image by batch",
            "Bars are the 95 % intervals; a cross is a batch that does not fit in memory.",
            drawn(points, ends),
            table(swept),
        )
    ]
    all_networks = gains.chart(swept)
    section.charts += [all_networks] if all_networks else []
    answers = {key: model.answers_of(*key) for key in swept}
    section.notes = [flat(key, its) for key, its in swept.items() if not answers[key]]
    section.tables = [study(answers)] if any(answers.values()) else []
    section.answers = short_study(answers) or section.notes
    return section


def study(answers):
    """What the sweeps answered, question by question."""
    rows = [
        Row([question, Cell(f"{network}, {part}", note=who), Cell(short(one), one["value"], one["text"])])
        for what, question in QUESTIONS.items()
        for (network, part, who), its in answers.items()
        for one in its
        if one["what"] == what
    ]
    return Table("What the sweep answers", ["question", "network", "answer"], rows, numeric=99)


SHORT = {
    "batch_flat": "A larger batch gains less than 5 % per image from batch",
    "largest_batch": "Largest batch within the sweep's limit of memory",
    "odd_batches": "Odd batches beside 16",
}


DOUBT = "Not sure: "  # begins what a sweep says of points that other programs disturbed, or of few passes


def short_study(answers):
    """Each question in a sentence: the answers, each with the networks that have it."""
    found = []
    for what, head in SHORT.items():
        its = [(key, one) for key, said in answers.items() for one in said if one["what"] == what]
        of = collections.Counter((network, part) for network, part, _ in {key for key, _ in its})
        parts = {part for (_, part, _), _ in its}
        alike = {}  # networks by their answer
        for (network, part, who), one in its:
            words = [network, part if len(parts) > 1 else "", f"({who})" if of[network, part] > 1 else ""]
            said = in_few_words(what, one) + (", not sure" if DOUBT in one["text"] else "")
            alike.setdefault(said, []).append(" ".join(filter(None, words)))
        texts = [f"{answer} ({', '.join(nets)})" for answer, nets in alike.items()]
        if texts:
            found.append(f"{head}: {'; '.join(texts)}.")
    return found


def in_few_words(what, answer):
    if answer["value"] is not None:
        return f"{answer['value']:.0f}"
    if what != "odd_batches":
        return "none of those tried" if what == "batch_flat" else "none"
    words = {
        "Odd batches pay": "faster",
        "Odd batches do not": "slower",
        "Odd batches make": "no difference that is decided",
    }
    return next((word for begin, word in words.items() if answer["text"].startswith(begin)), short(answer))


def short(answer):
    if answer["value"] is not None:
        return f"batch {answer['value']:.0f}"
    return answer["text"].split(":")[0]


def records(swept):
    points, ends = [], []
    for (network, part, who), its in swept.items():
        common = {"what": f"{network}, {part}", "series": who}
        fitting = {batch: one for batch, one in sorted(its.items()) if one.seconds}
        for batch, one in fitting.items():
            low, middle, high = (1e3 * end for end in one.per_image)
            points.append(
                common
                | {
                    "batch": batch,
                    "ms": middle,
                    "low": low,
                    "high": high,
                    "samples": len(one.seconds),
                    "run": one.command,
                }
            )
        last = fitting[max(fitting)].per_image.middle
        ends += [
            common | {"batch": batch, "ms": 1e3 * last, "run": one.command, "why": reason(one)}
            for batch, one in its.items()
            if one.out_of_memory
        ]
    return points, ends


def reason(timing):
    wanted = f", {size(timing.bytes_wanted)} wanted" if timing.bytes_wanted else ""
    return f"out of memory{wanted}{' (predicted)' if timing.predicted else ''}"


def drawn(points, ends):
    drawing = charts.Drawing()
    selected, only = charts.choice("batch_what", "Network", [one["what"] for one in points], "what")
    series = charts.series(name="batch_series")
    x = charts.batches(points + ends)
    y = altair.Y("ms:Q", title="ms per image", scale=altair.Scale(type="log", nice=False, padding=12))
    base = drawing.chart(points).transform_filter(only.filter)
    color = altair.Color("series:N", title=None)
    lit = charts.chosen(series)
    tip = [
        altair.Tooltip("series:N", title="machine"),
        "batch:Q",
        altair.Tooltip("ms:Q", title="ms per image", format=".4~g"),
        altair.Tooltip("low:Q", title="95 % from", format=".4~g"),
        altair.Tooltip("high:Q", title="to", format=".4~g"),
        "samples:Q",
    ]
    line = base.mark_line().encode(x=x, y=y, color=color, opacity=lit)
    bars = base.mark_rule(strokeWidth=2).encode(x=x, y=altair.Y("low:Q"), y2="high:Q", color=color, opacity=lit)
    dots = base.mark_point(filled=True, size=60, opacity=1, cursor="pointer").encode(
        x=x, y=y, color=color, opacity=lit, tooltip=tip
    )
    layers = [line, bars, dots]
    if ends:
        crosses = (
            drawing.chart(ends)
            .transform_filter(only.filter)
            .mark_point(shape="M-1,-1L1,1M1,-1L-1,1", size=140, strokeWidth=2.5, filled=False, aria=False)
        )
        layers.append(
            crosses.encode(
                x=x,
                y=y,
                color=color,
                opacity=lit,
                tooltip=[altair.Tooltip("series:N", title="machine"), "batch:Q", "why:N"],
            )
        )
    whole = (
        altair.layer(*layers)
        .add_params(selected, series, charts.zoom("batch_zoom"))
        .properties(width="container", height=charts.HEIGHT)
    )
    return drawing.spec(
        whole, "Milliseconds per image against the batch, one line for each machine, on logarithmic axes."
    )


def table(swept):
    rows = []
    for (network, part, who), its in swept.items():
        for batch, one in sorted(its.items()):
            if one.seconds:
                image = one.per_image
                cells = [
                    Cell(milliseconds(image.middle), 1e3 * image.middle, between(image)),
                    digits(batch / one.interval.middle),
                ]
            else:
                cells = [Cell(reason(one) if one.out_of_memory else one.failure, mark="failed"), ""]
            rows.append(Row([network, part, who, Cell(str(batch), batch), *cells], one.command))
    return Table("Batch sweep", ["network", "pass", "machine", "batch", "ms per image", "images/s"], rows, numeric=3)


def flat(key, its):
    """Said of a sweep whose file has no answers: from which batch on an image gains less than 5 % by doubling."""
    network, part, who = key
    fitting = sorted((batch, one.per_image.middle) for batch, one in its.items() if one.seconds)
    best_batch, best = min(fitting, key=lambda one: one[1])
    enough = next(batch for batch, time in fitting if time <= 1.05 * best)
    ends = [batch for batch, one in its.items() if one.out_of_memory]
    text = (
        f"{network}, {part}, {who}: batch {enough} is within 5 % of the best measured ({milliseconds(best)} ms per "
        f"image at batch {best_batch})"
    )
    text += f"; batch {min(ends)} does not fit in memory" if ends else ""
    return f"{text}{odd(its)}."


def odd(its):
    """Whether odd batches gain over those beside them, where both were measured: by intervals that do not meet."""
    fitting = {batch: one.per_image for batch, one in its.items() if one.seconds}
    beside = {
        batch: [fitting[near] for near in (batch - 1, batch + 1) if near in fitting]
        for batch in fitting
        if batch % 2 and batch > 1
    }
    beside = {batch: near for batch, near in beside.items() if near}
    better = [
        str(batch) for batch, near in sorted(beside.items()) if all(fitting[batch].high < one.low for one in near)
    ]
    if not beside:
        return ""
    return (
        f"; odd batches that beat those beside them: {', '.join(better)}"
        if better
        else "; no odd batch beats those beside it"
    )
