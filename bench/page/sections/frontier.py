"""The frontier of each layer: time against workspace, with the measured error of each algorithm."""

import math

from page import charts
from page.parts import between, cell, digits, row, section, sentence, size, table

LEAD = (
    "Every algorithm of a layer that could be run. Those that no other beats in time, workspace, error and determinism are "
    "on the frontier."
)
SAYS = "Colour is the measured error; hollow marks are not deterministic; large marks are on the frontier."


def make(model):
    found = [one for one in model.frontiers if one["lines"]]
    points = records(found)
    return section(
        "frontier",
        "Frontier of each layer",
        "Frontier",
        LEAD,
        "" if found else "lamina_bench frontier resnet18 --benchmark_out=frontier.json",
        charts=[chart(points, algorithms(found))] if points else [],
        tables=[] if points or not found else [algorithms(found)],
        answers=[sentence(in_words(one), one.rerun) for one in found],
        notes=[
            f"{one.title}: measuring was interrupted, not all of its layers are here."
            for one in found
            if one.get("complete") is False
        ],
    )


def in_words(its):
    """How often there is something to choose, and what the fastest choices would save."""
    lines = [(line.get("layers", 1), timed(line)) for line in its["lines"] if timed(line)]
    if not lines:
        return f"{its.title}: no algorithm of any layer has a time."
    several = sum(sum(bool(one.get("on_frontier")) for one in tried) > 1 for _, tried in lines)
    text = f"{its.title}: {several} of {len(lines)} layers and passes have several algorithms on the frontier"
    picked = sum(layers * one["seconds"] for layers, tried in lines for one in tried if one.get("picked"))
    fastest = sum(
        layers * min(one["seconds"] for one in tried)
        for layers, tried in lines
        if any(one.get("picked") for one in tried)
    )
    return f"{text}; those that are picked take {picked / fastest:.3f} times as long as the fastest." if picked else f"{text}."


def timed(line):
    return [one for one in line["algorithms"] if one.get("seconds")]


def ends(one):
    return one.get("low") or one["seconds"], one.get("high") or one["seconds"]


def records(found):
    points = []
    for its in found:
        for line in its["lines"]:
            times = [one["seconds"] for one in timed(line)]
            for one in timed(line):
                low, high = ends(one)
                points.append(
                    {
                        "of": f"{its.title}: {line['node']}, {line['pass']}",
                        "algorithm": one["algorithm"],
                        "ms": 1e3 * one["seconds"],
                        "low": 1e3 * low,
                        "high": 1e3 * high,
                        "MiB": (one.get("workspace_bytes") or 0) / 2**20,
                        "error": one.get("error"),
                        "deterministic": "not deterministic" if one.get("deterministic") is False else "deterministic",
                        "on": "on the frontier" if one.get("on_frontier") else "beaten",
                        "picked": "picked" if one.get("picked") else "",
                        "right": one["seconds"] ** 2 > min(times) * max(times),  # half of a logarithmic axis
                        "run": line.get("rerun", its.rerun),
                    }
                )
    return points


def decades(low, high):
    """The powers of ten from one to the other; the ends if there are fewer than two."""
    found = [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    return found if len(found) > 1 else [low, high]


def chart(points, its_table):
    axis = {"format": "~g", "tickCount": 6, "labelBound": True}  # no label is cut at the edge
    x = charts.logarithmic("ms", "ms", axis, padding=56)
    y = charts.number("MiB", "workspace, MiB", {"labelExpr": "datum.value < 0 ? '' : datum.label"}, padding=15)
    errors = [one["error"] for one in points if one["error"]]
    domain = [min(errors), max(errors) * 1.001] if errors else [1e-9, 1]
    # One legend for fill and stroke has symbols and no gradient.
    color = {
        "field": "error",
        "type": "quantitative",
        "scale": {"type": "log", "scheme": "viridis", "domain": domain},
        "legend": {"title": "measured error", "format": ".0e", "values": decades(*domain)} if errors else None,
    }
    big = {
        "field": "on",
        "type": "ordinal",
        "title": None,
        "scale": {"domain": ["on the frontier", "beaten"], "range": [220, 70]},
        "legend": {"symbolFillColor": "var(--muted)", "symbolStrokeColor": "var(--muted)"},
    }
    tip = charts.tips(
        algorithm="algorithm",
        ms=("ms", ".4~g"),
        MiB=("workspace, MiB", ".4~g"),
        error=("error", ".2e"),
        deterministic=" ",
        on="  ",
        picked="   ",
    )
    hollow = {"condition": {"test": "datum.deterministic == 'deterministic'", "value": 1}, "value": 0}
    marks = charts.layer(
        points,
        {"type": "point", "strokeWidth": 2, "opacity": 1, "cursor": "pointer"},
        x=x,
        y=y,
        fill=color,
        stroke=color,
        fillOpacity=hollow,
        size=big,
        tooltip=tip,
    )
    bars = charts.layer(points, charts.BAR, x=charts.number("low"), x2={"field": "high"}, y=y)
    names = [  # towards the middle, so that none is cut
        charts.layer(
            points,
            {"type": "text", "align": align, "dx": dx, "dy": -9, "limit": 150},
            [where],
            x=x,
            y=y,
            text=charts.name("algorithm"),
        )
        for where, align, dx in (("!datum.right", "left", 11), ("datum.right", "right", -11))
    ]
    return charts.chart(
        "frontier", "Time against workspace", SAYS, [bars, *names, marks], ("Layer", "of"), legend=None, table=its_table
    )


def algorithms(found):
    rows = []
    for its in found:
        for line in its["lines"]:
            layers = line.get("layers", 1)
            node = cell(line["node"], note=f"x {layers}" if layers > 1 else "")
            for one in line["algorithms"]:
                cells = [its.title, node, line["pass"], one["algorithm"]]
                if one.get("seconds"):
                    said = {
                        "on the frontier": one.get("on_frontier"),
                        "picked": one.get("picked"),
                        "by rule": one.get("by_rule"),
                        "not deterministic": one.get("deterministic") is False,
                    }
                    workspace, error = one.get("workspace_bytes") or 0, one.get("error")
                    cells += [
                        cell(digits(1e3 * one["seconds"]), one["seconds"], between(ends(one))),
                        cell(size(workspace), workspace),
                        "" if error is None else cell(f"{error:.1e}", error),
                        ", ".join(text for text, holds in said.items() if holds),
                    ]
                else:
                    cells += [cell(one.get("failure") or "no time", mark="tie"), "", "", ""]
                rows.append(row(cells, line.get("rerun", its.rerun)))
    head = ["network", "layer", "pass", "algorithm", "ms", "workspace", "error", "remarks"]
    return table("Algorithms by layer", head, rows, 4)
