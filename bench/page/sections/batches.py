"""The batch: time of an image against the number of images in a pass, and where memory ends."""

import collections

import altair

from page import again, answers, charts
from page.answers import Answer, Point
from page.measured import ON_GPU
from page.parts import Cell, Chart, Head, Row, Sentence, Table
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
    missing = left_out(model)
    section = HEAD.section(swept or missing, tables=missing)
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
    said = {key: answered(model, key, its) for key, its in swept.items()}
    commands = {key: commands_of(model.largest_batch(*key), its) for key, its in swept.items()}
    section.tables = study(said, commands) + missing
    section.answers = short_study(said, commands)
    return section


def left_out(model):
    """What sweeps could not plan: a table, or none."""
    rows = [
        Row(
            [Cell(f"{one.key['network']}, {one.key['part']}", note=one.who), one["reason"]],
            again.sweep_command(one.key, 0, one.origin.context, batches=()),
        )
        for one in model.not_planned
    ]
    return [Table("Left out of a sweep, as it cannot be planned", ["network", "why"], rows, numeric=99)] if rows else []


def answered(model, key, its):
    """The answers of a series, by question."""
    points = [Point(batch, 0, one.seconds, one.others_share) for batch, one in sorted(its.items())]
    found = (answers.batch_flat(points), largest(model.largest_batch(*key), its), answers.odd_batches(points))
    return {one.what: one for one in found if one}


def commands_of(said, its):
    """What answers each question about a series again: the batches that ran; of the largest one all that were tried, or
    where a sweep has found it, a sweep that does."""
    tried = [one for _, one in sorted(its.items())]
    ran = [one for one in tried if one.seconds]
    found = dict.fromkeys(QUESTIONS, again.swept_command(ran, batches=batches_of(ran)))
    batches, limit = ((), limit_of(said)) if said else (batches_of(tried), "")
    return found | {"largest_batch": again.swept_command(tried, batches=batches, limit=limit)}


def batches_of(timings):
    return [one.key["batch"] for one in timings]


def limit_of(said):
    """Of memory, in bytes. That of a GPU is its own where the user gave none."""
    context = said.origin.context
    given = said.key["backend"] not in ON_GPU or "memory limit" in context.get("sweep", "")
    return context.get("sweep_memory_limit", "") if given else ""


def largest(said, its):
    """What the sweep said of the largest batch; of rows without a sweep, the largest that ran where one did not."""
    if said:
        value = said["value"]
        return Answer("largest_batch", value, said["text"], "none" if value is None else f"batch {value:.0f}")
    ran = [batch for batch, one in its.items() if one.seconds]
    refused = [batch for batch, one in its.items() if one.out_of_memory and batch > max(ran)]
    if not refused:
        return None
    text = f"Batch {max(ran)} ran, and {min(refused)} was out of memory."
    return Answer("largest_batch", max(ran), text, f"batch {max(ran)}")


def study(said, commands):
    """What the points answer: a table for each question."""
    found = []
    for what, question in QUESTIONS.items():
        rows = [
            Row(
                [Cell(f"{key[0]}, {key[1]}", note=key[2]), Cell(its[what].short, its[what].value, its[what].whole)],
                commands[key][what],
            )
            for key, its in said.items()
            if what in its
        ]
        found += [Table(question, ["network", "answer"], rows, numeric=99)] if rows else []
    return found


SHORT = {
    "batch_flat": "A larger batch gains less than 5 % per image from batch",
    "largest_batch": "Largest batch within the limit of memory",
    "odd_batches": "Odd batches",
}


def short_study(said, commands):
    """Each question in a sentence: the answers, each with the networks that have it."""
    found = []
    for what, head in SHORT.items():
        its = {key: answers_of[what] for key, answers_of in said.items() if what in answers_of}
        of = collections.Counter((network, part) for network, part, _ in its)
        parts = {part for _, part, _ in its}
        alike = {}  # networks by their answer
        for (network, part, who), one in its.items():
            words = [network, part if len(parts) > 1 else "", f"({who})" if of[network, part] > 1 else ""]
            in_few_words = one.short if one.value is None else f"{one.value:.0f}"
            alike.setdefault(in_few_words + (", not sure" if one.doubt else ""), []).append(
                " ".join(filter(None, words))
            )
        texts = [f"{answer} ({', '.join(nets)})" for answer, nets in alike.items()]
        if texts:
            command = again.together((key[0], commands[key][what]) for key in its)
            found.append(Sentence(f"{head}: {'; '.join(texts)}.", command))
    return found


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
            .mark_point(
                shape="M-1,-1L1,1M1,-1L-1,1", size=140, strokeWidth=2.5, filled=False, aria=False, cursor="pointer"
            )
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
