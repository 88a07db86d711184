"""The batch: time of an image against the number of images in a pass, and where memory ends."""

import collections

from page import charts
from page.parts import between, cell, digits, row, section, sentence, size, table

LEAD = "Milliseconds of one image against the batch, both logarithmic: where a line is flat, a larger batch gains nothing."
QUESTIONS = {
    "batch_flat": "From which batch on does a larger one gain less than 5 %?",
    "largest_batch": "Which batch is the largest that fits in memory?",
    "odd_batches": "Is an image cheaper in an odd batch?",
}


def make(model):
    swept = series(model)
    left_out = [row([name(one), one["reason"]], one.rerun) for one in model.not_planned]
    tables = [table("Left out of a sweep, as it cannot be planned", ["network", "why"], left_out, 99)] if left_out else []
    drawn = []
    if swept:
        says = "Bars span the middle half of the passes; a cross is a batch that does not fit in memory."
        drawn = [
            charts.chart(
                "batches",
                "Time of an image by batch",
                says,
                layers(*records(swept)),
                pick=("Network", "what"),
                table=by_batch(swept),
            ),
            *throughput(swept),
        ]
    tables = [*answers_of(model, QUESTIONS), *tables]
    return section(
        "batches",
        "Batch sweep",
        "Batches",
        LEAD if swept else "",
        "" if drawn or tables else "lamina_bench sweep resnet18 --benchmark_out=sweep.json",
        charts=drawn,
        tables=tables,
        answers=list(short_answers(model)),
    )


def series(model):
    """{(network, pass, who): {batch: its row}} of those with several batches."""
    found = collections.defaultdict(dict)
    for one in model.of("net"):
        if one.key["part"] in ("total", "inference") and "threads" not in one.differs:
            found[one.key["network"], one.key["part"], one.who][one.batch] = one
    return {
        key: dict(sorted(its.items()))
        for key, its in found.items()
        if len(its) > 1 and any(one.seconds for one in its.values())
    }


def name(one):
    return cell(f"{one.key['network']}, {one.key.get('part', '')}", note=one.who)


def answers_of(model, questions):
    """A table for each question that a sweep answers."""
    found = []
    for what, question in questions.items():
        rows = [row([name(one), answer(one)], one.rerun) for one in model.answers if one["what"] == what]
        found += [table(question, ["network", "answer"], rows, 99)] if rows else []
    return found


def answer(one):
    value = one.get("value")
    return one["text"] if value is None else cell(f"{value:.0f}", value, one["text"])


def short_answers(model):
    """The answers with a value to each question in a sentence, each value with its networks."""
    short = {"batch_flat": "A larger batch gains less than 5 % per image from batch", "largest_batch": "Largest batch"}
    for what in short:
        values = collections.defaultdict(list)
        its = [one for one in model.answers if one["what"] == what and one.get("value") is not None]
        for one in its:
            unsure = ", not sure" if "Not sure" in one["text"] else ""
            values[f"{one['value']:.0f}{unsure}"].append(one.key["network"])
        if values:
            texts = [f"{value} ({', '.join(dict.fromkeys(nets))})" for value, nets in values.items()]
            yield sentence(f"{short[what]}: {'; '.join(texts)}.", *(one.rerun for one in its))


def records(swept):
    points, ends = [], []
    for (network, part, who), its in swept.items():
        common = {"what": f"{network}, {part}", "series": who}
        fitting = {batch: one for batch, one in its.items() if one.seconds}
        for batch, one in fitting.items():
            low, high = one.quartiles
            times = {"ms": 1e3 * one.median / batch, "low": 1e3 * low / batch, "high": 1e3 * high / batch}
            points.append(common | times | {"batch": batch, "samples": len(one.seconds), "run": one.rerun})
        last = 1e3 * fitting[max(fitting)].median / max(fitting)
        ends += [
            common | {"batch": batch, "ms": last, "why": reason(one), "run": one.rerun}
            for batch, one in its.items()
            if not one.seconds and one.out_of_memory
        ]
    return points, ends


def reason(one):
    if not one.out_of_memory:
        return one.failure
    wanted = f", {size(one['bytes_wanted'])} wanted" if one.get("bytes_wanted") else ""
    return f"out of memory{wanted}{' (predicted)' if one.get('predicted') else ''}"


def layers(points, ends):
    x = charts.batches(points + ends)
    y = charts.logarithmic("ms", "ms per image", padding=12)
    common = {"x": x, "color": charts.name("series"), "opacity": charts.lit("batches_lit")}
    cross = {"type": "point", "shape": "M-1,-1L1,1M1,-1L-1,1", "size": 140, "strokeWidth": 2.5, "filled": False}
    why = charts.tips(series="machine", batch="batch", why="why")
    tip = charts.tips(
        series="machine",
        batch="batch",
        ms=("ms per image", ".4~g"),
        low=("middle half from", ".4~g"),
        high=("to", ".4~g"),
        samples="passes",
    )
    crosses = [charts.layer(ends, cross | {"aria": False, "cursor": "pointer"}, y=y, tooltip=why, **common)] if ends else []
    return [
        charts.layer(points, charts.LINE, y=y, **common),
        charts.layer(points, charts.BAR, y=charts.number("low"), y2={"field": "high"}, **common),
        *crosses,
        charts.layer(points, charts.DOT, y=y, tooltip=tip, **common),
    ]


def throughput(swept):
    """All networks of a machine in one chart: images per second as a share of the best batch's."""
    points, networks = [], collections.Counter()
    for (network, part, who), its in swept.items():
        fitting = {batch: one for batch, one in its.items() if one.seconds}
        best = min(one.median / batch for batch, one in fitting.items())
        networks[f"{who}, {part}"] += 1
        for batch, one in fitting.items():
            low, high = (100 * best * batch / end for end in reversed(one.quartiles))
            shares = {"share": 100 * best * batch / one.median, "low": low, "high": high}
            points.append({"of": f"{who}, {part}", "series": network, "batch": batch, "run": one.rerun} | shares)
    if max(networks.values()) < 2:
        return []
    points.sort(key=lambda one: -networks[one["of"]])  # the machine with the most networks comes first
    y = charts.free("share", "% of the best")
    common = {"x": charts.batches(points), "color": charts.name("series", sort=None), "opacity": charts.lit("throughput_lit")}
    tip = charts.tips(series="network", batch="batch", share=("% of the best", ".1f"), low=("from", ".1f"), high=("to", ".1f"))
    drawn = [
        charts.layer([{"share": 95}], charts.DASHED, y=charts.number("share")),
        charts.layer(points, charts.LINE, y=y, **common),
        charts.layer(points, charts.BAR, y=charts.number("low"), y2={"field": "high"}, **common),
        charts.layer(points, charts.DOT, y=y, tooltip=tip, **common),
    ]
    title = "All networks: images per second, as a share of the best batch"
    says = "Above the dashed line, at 95 %, a larger batch gains little. Where a line ends, memory or time did."
    return [charts.chart("throughput", title, says, drawn, pick=("Machine", "of"))]


def by_batch(swept):
    rows = []
    for (network, part, who), its in swept.items():
        for batch, one in its.items():
            if one.seconds:
                ms = 1e3 * one.median / batch
                cells = [cell(digits(ms), ms, between(one.quartiles, 1e3 / batch)), digits(batch / one.median)]
            else:
                cells = [cell(reason(one), mark="failed"), ""]
            rows.append(row([network, part, who, cell(str(batch), batch), *cells], one.rerun))
    return table("Batch sweep", ["network", "pass", "machine", "batch", "ms per image", "images/s"], rows, 3)
