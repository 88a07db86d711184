"""The roofline: what each call reaches, under the two ceilings that were measured on the same machine."""

import statistics

import altair

from page import again, charts
from page.parts import Cell, Chart, Head, Row, Sentence, Table
from page.text import digits, number


HEAD = Head(
    "roofline",
    "Roofline",
    "Roofline",
    "Operations per second against operations per byte, both logarithmic. A call under the slope waits for "
    "memory, one under the flat roof for the units. Fewer operations than the definition (Winograd), or data in a"
    " cache, come above a roof.",
    "lamina_bench ledger resnet50 --benchmark_out=ledger.json",
)


def make(model):
    found = [*(of_ledger(one) for one in model.ledgers), *of_rows(model)]
    found = [one for one in found if one["points"]]
    section = HEAD.section(found)
    if not found:
        return section
    section.charts = [
        Chart(
            "roofline",
            "What each call reaches",
            "Larger points take more time; the numbers of a ledger are in the section before. The roofs are "
            "measured, not from a data sheet.",
            drawn(found),
            table([one for one in found if not one["ledger"]]),
        )
    ]
    section.answers = [Sentence(whole(one), one["run"]) for one in found if one["peak"]]
    without = [one["of"] for one in found if not one["memory"]]
    section.notes = [f"{of}: the rate of the memory is not in its file, so it has no slope." for of in without]
    return section


def whole(its):
    """All points together, and how many stay below half of their roof."""
    seconds = sum(one["ms"] for one in its["points"]) / 1e3
    rate = sum(one["gflops"] * one["ms"] / 1e3 for one in its["points"]) / seconds
    peak = 1e-9 * its["peak"]
    text = f"{its['of']}: {digits(rate)} GFLOP/s, {100 * rate / peak:.0f} % of the measured peak of {digits(peak)}"
    if its["memory"]:
        low = [one for one in its["points"] if one["gflops"] < ceiling(its, one["intensity"]) / 2]
        share = sum(one["ms"] for one in low) / 1e3 / seconds
        text += f"; {100 * share:.0f} % of the time is in calls that stay below half of their roof"
    return f"{text}."


def ceiling(its, intensity):
    return min(its["peak"], its["memory"] * intensity) / 1e9


def of_ledger(ledger):
    points = [
        point(
            call["layers"],
            call["pass"],
            call["op"],
            call["flops"],
            call["bytes"],
            call["seconds"],
            again.layer_command(ledger.key, call["node"], call["pass"], ledger.origin.context),
        )
        for call in ledger["calls"]
        if call["flops"] and call["bytes"]
    ]
    return {
        "ledger": True,
        "of": f"ledger of {ledger.title}",
        "points": points,
        "peak": ledger["peak_flops_per_second"],
        "memory": ledger["memory_bytes_per_second"],
        "run": again.found_command("ledger", ledger.key, ledger.origin.context),
    }


def of_rows(model):
    """Layer rows by the backend's own choice, or by whatever algorithm was the fastest."""
    fastest = {}
    for one in model.of("layer"):
        if one.seconds and one.counters.get("flops") and one.counters.get("bytes"):
            of = (
                f"rows of {one.key['network']}, batch {one.key['batch']}, {one.who}",
                one.key["layer"],
                one.key["part"],
            )
            if of not in fastest or one.interval.middle < fastest[of].interval.middle:
                fastest[of] = one
    groups = {}
    for (of, layer, part), one in fastest.items():
        seconds = one.interval.middle
        its = groups.setdefault(
            of,
            {
                "ledger": False,
                "of": of,
                "points": [],
                "peaks": [],
                "memory": memory_of(one),
                "run": again.layers_command(one.key, len(one.seconds), one.origin.context),
            },
        )
        its["peaks"].append(peak_of(one))
        its["points"].append(
            point(
                layer,
                part,
                one.algorithm,
                one.counters["flops"],
                one.counters["bytes"],
                seconds,
                one.command,
            )
        )
    for its in groups.values():
        peaks = [peak for peak in its.pop("peaks") if peak]
        its["peak"] = statistics.median(peaks) if peaks else None
    return list(groups.values())


def billions(text):
    return 1e9 * number(text) if number(text) is not None else None


def peak_of(timing):
    """The peak that was measured beside the row; of older files the one of their context."""
    beside = timing.counters.get("peak_flops_per_second")
    if beside:
        return beside
    return billions(timing.origin.context.get(f"peak_GFLOPs_{timing.key['backend']}/{timing.key['type']}", ""))


def memory_of(timing):
    return billions(timing.origin.context.get(f"memory_GBps_{timing.key['backend']}", ""))


def point(name, part, kind, flops, count, seconds, run):
    return {
        "name": name,
        "part": part,
        "kind": kind,
        "intensity": flops / count,
        "gflops": 1e-9 * flops / seconds,
        "gbs": 1e-9 * count / seconds,
        "ms": 1e3 * seconds,
        "run": run,
    }


def roof(its):
    """Its corners: from the slope to the flat part."""
    if not its["peak"]:
        return []
    least, most = (end(one["intensity"] for one in its["points"]) for end in (min, max))
    peak = 1e-9 * its["peak"]
    if not its["memory"]:
        return [{"intensity": least / 2, "gflops": peak}, {"intensity": most * 2, "gflops": peak}]
    ridge = its["peak"] / its["memory"]
    return [
        {"intensity": intensity, "gflops": ceiling(its, intensity)}
        for intensity in sorted({min(least, ridge) / 2, ridge, max(most, ridge) * 2})
    ]


def drawn(found):
    drawing = charts.Drawing()
    points = [{"of": its["of"]} | one for its in found for one in its["points"]]
    roofs = [{"of": its["of"], "roof": "measured roof", "run": its["run"]} | one for its in found for one in roof(its)]
    selected, only = charts.choice("roof_of", "Of", [its["of"] for its in found], "of")
    series = charts.series("kind", "roof_series")
    x = altair.X(
        "intensity:Q",
        title="operations per byte",
        scale=altair.Scale(type="log", nice=False),
        axis=altair.Axis(format="~g", tickCount=6),
    )
    y = altair.Y(
        "gflops:Q",
        title="GFLOP/s",
        scale=altair.Scale(type="log", nice=False, padding=10),
        axis=altair.Axis(format="~g", tickCount=6),
    )
    dots = (
        drawing.chart(points)
        .transform_filter(only.filter)
        .mark_point(filled=True, cursor="pointer")
        .encode(
            x=x,
            y=y,
            color=altair.Color("kind:N", title=None),
            shape=altair.Shape("part:N", title="pass"),
            size=altair.Size("ms:Q", legend=None, scale=altair.Scale(range=[20, 260])),
            opacity=altair.condition(series, altair.value(0.7), altair.value(0.06)),
            tooltip=[
                altair.Tooltip("name:N", title="layer"),
                altair.Tooltip("part:N", title="pass"),
                "kind:N",
                altair.Tooltip("ms:Q", format=".4~g"),
                altair.Tooltip("gflops:Q", title="GFLOP/s", format=".4~g"),
                altair.Tooltip("gbs:Q", title="GB/s", format=".4~g"),
                altair.Tooltip("intensity:Q", title="operations per byte", format=".4~g"),
            ],
        )
    )
    layers = [dots]
    if roofs:
        layers.insert(
            0,
            drawing.chart(roofs)
            .transform_filter(only.filter)
            .mark_line(color="var(--ink)", strokeWidth=2, cursor="pointer")
            .encode(
                x=x,
                y=y,
                order=altair.Order("intensity:Q"),
                tooltip=[
                    altair.Tooltip("roof:N", title=" "),
                    altair.Tooltip("gflops:Q", title="GFLOP/s", format=".4~g"),
                ],
            ),
        )
    whole = (
        altair.layer(*layers)
        .add_params(selected, series, charts.zoom("roof_zoom"))
        .properties(width="container", height=420)
    )
    return drawing.spec(
        whole, "Operations per second against operations per byte, one point for each call, under the measured roofs."
    )


def table(found):
    rows = [
        Row(
            [
                its["of"],
                one["name"],
                one["part"],
                one["kind"],
                Cell(digits(one["intensity"]), one["intensity"]),
                Cell(digits(one["gflops"]), one["gflops"]),
                Cell(f"{1e11 * one['gflops'] / its['peak']:.0f} %" if its["peak"] else ""),
                Cell(digits(one["gbs"]), one["gbs"]),
                Cell(digits(one["ms"]), one["ms"]),
            ],
            one["run"],
        )
        for its in found
        for one in its["points"]
    ]
    return rows and Table(
        "Rows of layers in the roofline",
        ["of", "layer", "pass", "kind or algorithm", "operations per byte", "GFLOP/s", "of the peak", "GB/s", "ms"],
        rows,
        numeric=4,
    )
