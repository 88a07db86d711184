"""The section of batches: time of an image against the batch, and batches that run out of memory."""

import collections

from page import charts
from page.parts import cell, row, section, size, table

LEAD = "Milliseconds of one image against the batch, both logarithmic. A flat line: larger batches gain nothing."
FILL = "lamina_bench sweep resnet18 --benchmark_out=sweep.json"
ANSWERS = "Answers of the sweep"
QUESTIONS = {
    "batch_flat": "From which batch on does a larger one gain less than 5 %?",
    "largest_batch": "Which batch is the largest that fits in memory?",
    "odd_batches": "Is an image cheaper in an odd batch?",
}


def make(model):
    swept = series(model)
    drawn = [by_batch(swept)] if swept else []
    answers = answers_of(model, QUESTIONS)
    left_out = [row([name_of(one), one["reason"]], one.rerun) for one in model.not_planned]
    tables = [table("Left out of a sweep, as it cannot be planned", ["network", "why"], left_out, 99)]
    return section("batches", "Batch sweep", "Batches", LEAD if drawn else "", FILL, tables, answers,
                   folded_title=ANSWERS, charts=drawn)


def series(model):
    """{(network, pass, who): {batch: row}}, without keys that have only one batch."""
    found = collections.defaultdict(dict)
    for one in model.rows_of("net"):
        if one.key["part"] in ("total", "inference") and "threads" not in one.differs:
            found[one.key["network"], one.key["part"], one.who][one.batch] = one
    several = {key: its for key, its in found.items() if len(its) > 1 and any(one.seconds for one in its.values())}
    return {key: dict(sorted(its.items())) for key, its in several.items()}


def name_of(one):
    return cell(f"{one.key['network']}, {one.key.get('part', '')}", note=one.who)


def answers_of(model, questions):
    """A table for each question that a sweep answers."""
    rows = lambda what: [row([name_of(one), answer(one)], one.rerun) for one in model.answers if one["what"] == what]
    return [table(question, ["network", "answer"], rows(what), 99) for what, question in questions.items()]


def answer(one):
    value = one.get("value")
    return one["text"] if value is None else cell(f"{value:.0f}", value, one["text"])


def by_batch(swept):
    points, ends = [], []
    for (network, part, who), its in swept.items():
        common = {"what": f"{network}, {part}", "series": who}
        for batch, one in its.items():
            where = common | {"batch": batch, "run": one.rerun}
            if one.seconds:
                low, ms, high = (1e3 * end / batch for end in (one.quartiles[0], one.median, one.quartiles[1]))
                points.append(where | {"ms": ms, "low": low, "high": high, "samples": len(one.seconds)})
            else:  # the mark is a cross, as high as the line's last point
                ends.append(where | {"ms": points[-1]["ms"] if points else 1, "why": reason(one)})
    x, y = charts.batches(points + ends), charts.logarithmic("ms", "ms per image", padding=12)
    names = {"series": "machine", "batch": "batch", "samples": "passes"}
    tip = charts.tips(names, ms="ms per image", low="middle half from", high="to")
    layers = charts.ranged(points, "batches_lit", x, y, tip)
    if ends:
        cross = {"type": "point", "shape": "M-1,-1L1,1M1,-1L-1,1", "size": 140, "strokeWidth": 2.5, "cursor": "pointer"}
        why = charts.tips({"series": "machine", "batch": "batch", "why": "why"})
        color = {"color": charts.name("series"), "opacity": charts.lit("batches_lit")}
        layers.insert(0, charts.layer(ends, cross | {"aria": False}, x=x, y=y, tooltip=why, **color))
    says = "Bars span the middle half of the passes. A cross is a batch without a time; its tooltip has the reason."
    return charts.chart("batches", "Time of an image by batch", says, layers, ("Network", "what"))


def reason(one):
    if not one.out_of_memory:
        return one.failure
    wanted = f", {size(one['bytes_wanted'])} wanted" if one.get("bytes_wanted") else ""
    return f"out of memory{wanted}{' (predicted)' if one.get('predicted') else ''}"
