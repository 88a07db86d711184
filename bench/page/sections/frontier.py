"""The frontier of each layer: time against workspace, with the measured error of each algorithm."""

import math

import altair

from page import again, charts
from page.parts import Cell, Chart, Head, Row, Sentence, Table
from page.text import between, milliseconds, size
import intervals


HEAD = Head(
    "frontier",
    "Frontier of each layer",
    "Frontier",
    "Every algorithm of a layer that could be run. Those that no other beats in time, workspace, error and "
    "determinism are on the frontier.",
    "lamina_bench frontier resnet18 --benchmark_out=frontier.json",
)


def make(model):
    found = [one for one in model.frontiers if one["lines"]]
    section = HEAD.section(found)
    points = [one for its in found for one in records(its)]
    if not points:
        return section
    mark_right(points)
    section.charts = [
        Chart(
            "frontier",
            "Time against workspace",
            "Colour is the measured error; hollow marks are not deterministic; large marks are on the frontier.",
            drawn(points),
            table(found),
        )
    ]
    section.answers = [
        Sentence(in_words(its), again.found_command("frontier", its.key, its.origin.context)) for its in found
    ]
    section.notes = [
        f"{its.title}: measuring was interrupted, not all of its layers are here."
        for its in found
        if not its["complete"]
    ]
    return section


def in_words(its):
    """How often there is something to choose, and what the fastest choices would save."""
    lines = [(line["layers"], [one for one in line["tried"] if one["seconds"]]) for line in its["lines"]]
    lines = [(layers, tried) for layers, tried in lines if tried]
    if not lines:
        return f"{its.title}: no algorithm of any layer has a time."
    several = sum(1 for _, tried in lines if sum(1 for one in tried if one["on_frontier"]) > 1)
    text = f"{its.title}: {several} of {len(lines)} layers and passes have several algorithms on the frontier"
    picked = fastest = 0
    for layers, tried in lines:
        for one in tried:
            if one["picked"]:
                picked += layers * one["seconds"]
                fastest += layers * min(other["seconds"] for other in tried)
    if picked:
        text += f"; those that are picked take {picked / fastest:.3f} times as long as the fastest"
    return f"{text}."


def records(its):
    return [
        {
            "of": f"{its.title}: {line['node']}, {line['pass']}",
            "algorithm": one["algorithm"],
            "ms": 1e3 * one["seconds"],
            "low": 1e3 * (one["low"] or one["seconds"]),
            "high": 1e3 * (one["high"] or one["seconds"]),
            "MiB": (one["workspace_bytes"] or 0) / 2**20,
            "error": one["error"],
            "deterministic": "not deterministic" if one["deterministic"] is False else "deterministic",
            "on": "on the frontier" if one["on_frontier"] else "beaten",
            "picked": "picked" if one["picked"] else "",
            "run": again.layer_command(its.key, line["node"], line["pass"], its.origin.context),
        }
        for line in its["lines"]
        for one in line["tried"]
        if one["seconds"]
    ]


def mark_right(points):
    """Those in the right half of their layer's chart, whose axis is logarithmic."""
    ends = {}
    for one in points:
        ends.setdefault(one["of"], []).append(one["ms"])
    for one in points:
        its = ends[one["of"]]
        one["right"] = one["ms"] ** 2 > min(its) * max(its)


def drawn(points):
    drawing = charts.Drawing()
    selected, only = charts.choice("frontier_of", "Layer", [one["of"] for one in points], "of")
    x = altair.X(
        "ms:Q",
        title="ms",
        scale=altair.Scale(type="log", nice=False, padding=56),
        axis=altair.Axis(format="~g", tickCount=6, labelBound=True),  # none is cut at the edge
    )
    y = altair.Y(
        "MiB:Q",
        title="workspace, MiB",
        scale=altair.Scale(padding=15),
        axis=altair.Axis(labelExpr="datum.value < 0 ? '' : datum.label"),
    )
    base = drawing.chart(points).transform_filter(only.filter)
    errors = [one["error"] for one in points if one["error"]]
    domain = [min(errors), max(errors) * 1.001] if errors else [1e-9, 1]
    scale = altair.Scale(type="log", scheme="viridis", domain=domain)
    # One legend for fill and stroke has symbols and no gradient.
    legend = altair.Legend(title="measured error", format=".0e", values=decades(*domain))
    tip = [
        "algorithm:N",
        altair.Tooltip("ms:Q", format=".4~g"),
        altair.Tooltip("MiB:Q", title="workspace, MiB", format=".4~g"),
        altair.Tooltip("error:Q", format=".2e"),
        altair.Tooltip("deterministic:N", title=" "),
        altair.Tooltip("on:N", title="  "),
        altair.Tooltip("picked:N", title="   "),
    ]
    big = altair.Size(
        "on:O",
        title=None,
        scale=altair.Scale(domain=["on the frontier", "beaten"], range=[220, 70]),
        legend=altair.Legend(symbolFillColor="var(--muted)", symbolStrokeColor="var(--muted)"),
    )
    bars = base.mark_rule(strokeWidth=1.5).encode(x=altair.X("low:Q"), x2="high:Q", y=y)
    marks = base.mark_point(strokeWidth=2, opacity=1, cursor="pointer").encode(
        x=x,
        y=y,
        fill=altair.Fill("error:Q", scale=scale, legend=legend if errors else None),
        stroke=altair.Stroke("error:Q", scale=scale, legend=legend if errors else None),
        fillOpacity=altair.condition("datum.deterministic == 'deterministic'", altair.value(1), altair.value(0)),
        size=big,
        tooltip=tip,
    )
    names = [  # towards the middle, so that none is cut
        base.transform_filter(where)
        .mark_text(align=align, dx=dx, dy=-9, limit=150)
        .encode(x=x, y=y, text="algorithm:N")
        for where, align, dx in (("!datum.right", "left", 11), ("datum.right", "right", -11))
    ]
    whole = (
        altair.layer(bars, marks, *names)
        .add_params(selected, charts.zoom("frontier_zoom"))
        .properties(width="container", height=charts.HEIGHT)
    )
    return drawing.spec(
        whole, "Time of each algorithm of a layer against its workspace, coloured by its measured error."
    )


def decades(low, high):
    """Powers of ten from one to the other; of fewer than two, the ends."""
    found = [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    return found if len(found) > 1 else [low, high]


def table(found):
    rows = []
    for its in found:
        for line in its["lines"]:
            for one in line["tried"]:
                name = [
                    its.title,
                    Cell(line["node"], note=f"x {line['layers']}" if line["layers"] > 1 else ""),
                    line["pass"],
                    one["algorithm"],
                ]
                run = again.layer_command(its.key, line["node"], line["pass"], its.origin.context)
                if not one["seconds"]:
                    rows.append(Row([*name, Cell(one["failure"] or "no time", mark="tie"), "", "", ""], run))
                    continue
                ends = intervals.Interval(one["low"] or one["seconds"], one["seconds"], one["high"] or one["seconds"])
                said = ", ".join(
                    filter(
                        None,
                        (
                            "on the frontier" if one["on_frontier"] else "",
                            "picked" if one["picked"] else "",
                            "by rule" if one["by_rule"] else "",
                            "not deterministic" if one["deterministic"] is False else "",
                        ),
                    )
                )
                rows.append(
                    Row(
                        [
                            *name,
                            Cell(milliseconds(one["seconds"]), one["seconds"], between(ends)),
                            Cell(size(one["workspace_bytes"] or 0), one["workspace_bytes"] or 0),
                            Cell(f"{one['error']:.1e}", one["error"]) if one["error"] is not None else "",
                            said,
                        ],
                        run,
                    )
                )
    return Table(
        "Algorithms by layer",
        ["network", "layer", "pass", "algorithm", "ms", "workspace", "error", "remarks"],
        rows,
        numeric=4,
    )
