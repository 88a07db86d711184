"""The roofline: the rate of each call, under two ceilings, memory and units, measured on the same machine."""

import statistics

from page import charts, prices
from page.parts import section
from page.sections import time_by_op

LEAD = (
    "Operations per second against operations per byte, both logarithmic. Memory limits a call under the slope; the "
    "arithmetic units limit a call under the flat roof. Calls by Winograd, or with data in a cache, can be above it."
)
NO_SLOPE = "the file lacks the rate of the memory, so the roof has no slope."


def make(model):
    found = [one for one in [*map(ledger_points, model.ledgers), *layer_points(model)] if one["points"]]
    return section("roofline", "Roofline", "Roofline", LEAD, time_by_op.FILL, charts=[chart(found)] if found else [],
                   notes=[f"{one['of']}: {NO_SLOPE}" for one in found if not one["memory"]])


def point(name, part, kind, flops, count, seconds, run):
    rates = {"intensity": flops / count, "gflops": 1e-9 * flops / seconds, "gbs": 1e-9 * count / seconds}
    return {"name": name, "part": part, "kind": kind, "ms": 1e3 * seconds, "run": run} | rates


def ledger_points(one):
    points = []
    for call in one["calls"]:
        numbers = [call.get(what) for what in ("flops", "bytes", "seconds")]
        if all(numbers):
            points.append(point(call["layers"], call["pass"], call["op"], *numbers, call.get("rerun", one.rerun)))
    rates = {"peak": one.get("peak_flops_per_second"), "memory": one.get("memory_bytes_per_second")}
    return rates | {"of": f"ledger of {one.title}", "points": points, "run": one.rerun}


def layer_points(model):
    """The points of rows of layers. Each layer and pass is shown by its fastest row."""
    groups = {}
    for one in model.rows_of("layer"):
        if one.seconds and one.amount("flops_per_second") and one.amount("bytes_per_second"):
            best = groups.setdefault(f"rows of {one.key['network']}, batch {one.batch}, {one.who}", {})
            place = one.key["layer"], one.key["part"]
            if place not in best or one.median < best[place].median:
                best[place] = one
    for of, best in groups.items():
        points = []
        for (layer, part), one in best.items():
            numbers = one.amount("flops_per_second"), one.amount("bytes_per_second"), one.median
            algorithm = one.get("algorithm", one.key.get("algorithm", ""))
            points.append(point(layer, part, algorithm, *numbers, one.rerun))
        context, backend = one.run.context, one.key["backend"]
        peaks = [peak for peak in (one.reading("peak_flops_per_second") for one in best.values()) if peak]
        in_context = billions(context.get(f"peak_GFLOPs_{backend}/{one.key['type']}"))
        memory = billions(context.get(f"memory_GBps_{backend}"))
        yield {"peak": statistics.median(peaks) if peaks else in_context, "memory": memory, "of": of, "points": points,
               "run": context.get("command", "")}


def billions(text):
    return 1e9 * prices.number(text) if prices.number(text or "") else None


def ceiling(its, intensity):
    """The height of the roof at this intensity, in GFLOP/s."""
    return min(its["peak"], its["memory"] * intensity) / 1e9


def roof(its):
    """The corners of the roof, from the slope to the flat part."""
    if not its["peak"]:
        return []
    least, most = (end(one["intensity"] for one in its["points"]) for end in (min, max))
    if not its["memory"]:
        return [{"intensity": one, "gflops": 1e-9 * its["peak"]} for one in (least / 2, most * 2)]
    ridge = its["peak"] / its["memory"]
    corners = sorted({min(least, ridge) / 2, ridge, max(most, ridge) * 2})
    return [{"intensity": one, "gflops": ceiling(its, one)} for one in corners]


def chart(found):
    points = [{"of": its["of"]} | one for its in found for one in its["points"]]
    roofs = [{"of": its["of"], "roof": "measured roof", "run": its["run"]} | one for its in found for one in roof(its)]
    axis = {"format": "~g", "tickCount": 6}
    x = charts.logarithmic("intensity", "operations per byte", axis)
    y = charts.logarithmic("gflops", "GFLOP/s", axis, padding=10)
    names = {"name": "layer", "part": "pass", "kind": "kind"}
    tip = charts.tips(names, ms="ms", gflops="GFLOP/s", gbs="GB/s", intensity="operations per byte")
    dot = {"type": "point", "filled": True, "cursor": "pointer"}
    size = charts.number("ms", range=[20, 260]) | {"legend": None}
    kinds = charts.kinds(one["kind"] for one in points)
    opacity, shape = charts.lit("roofline_lit", 0.06, 0.7), charts.name("part", "pass")
    dots = charts.layer(points, dot, x=x, y=y, color=kinds, shape=shape, size=size, opacity=opacity, tooltip=tip)
    mark = {"type": "line", "color": "var(--ink)", "strokeWidth": 2, "cursor": "pointer"}
    line = charts.layer(roofs, mark, x=x, y=y, order=charts.number("intensity"))
    says = "Larger points take more time. The roofs are measured, not from a data sheet."
    layers = [line, dots] if roofs else [dots]
    return charts.chart("roofline", "What each call reaches", says, layers, ("Network", "of"), "kind", height=420)
