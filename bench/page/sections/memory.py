"""The section of memory: the bytes that are in use while each call of a plan runs."""

from page import charts
from page.parts import cell, figure, row, section, table

PARTS = ("parameters", "state", "optimiser", "inputs", "arena", "prepared", "total")
LEAD = "Bytes of the arena that are in use while each call runs, by kind; forward first, then backward."


def make(model):
    found, raced = model.memories, []
    for one in model.memory:
        cells = [one["net"], one["mode"], one["variant"], figure(one["peak_MiB"]), figure(one.get("plan_MiB"))]
        raced.append(row(cells, one.run.context.get("command", "")))
    head = ["network", "mode", "program", "peak", "its plan"]
    points = [point for one in found for point in records(one)]
    drawn, fill = [chart(points)] if points else [], "lamina_bench memory resnet50 --benchmark_out=memory.json"
    tables = [totals(found), table("Memory that a race measured, MiB", head, raced, 3)]
    lead = LEAD if points else ""
    return section("memory", "Memory over the plan's time", "Memory", lead, fill, tables, charts=drawn)


def name_of(one):
    return f"{one.title}, {one.get('mode') or one.key.get('part', '')}"


def records(one):
    """A record for each call and each kind of which bytes are in use."""
    for place, step in enumerate(one["steps"]):
        about = {"of": name_of(one), "step": place, "layers": step["layers"], "part": step["pass"], "run": one.rerun}
        for kind, count in step["by_kind"].items():
            if count:
                yield about | {"kind": kind, "MiB": count / 2**20, "all": step["live_bytes"] / 2**20}


def chart(points):
    tip = charts.tips({"layers": "call", "part": "pass", "kind": "kind"}, MiB="MiB", all="in all, MiB")
    bar = {"type": "bar", "binSpacing": 0, "cursor": "pointer"}
    x = {"field": "step", "type": "ordinal", "title": "calls, in their order", "scale": {"paddingInner": 0},
         "axis": {"labels": False, "ticks": False}}
    y = charts.number("MiB", "MiB in use") | {"stack": True}
    color, opacity = charts.name("kind"), charts.lit("memory_lit", 0.15)
    bars = charts.layer(points, bar, x=x, y=y, color=color, opacity=opacity, tooltip=tip)
    title, says = "Bytes in use, call by call", "The highest point is what the arena must hold."
    return charts.chart("memory", title, says, [bars], ("Plan", "of"), "kind", zoom=False)


def totals(found):
    rows = []
    for one in found:
        batch = one.get("largest_batch")
        cells = [figure(one.get(part), scale=2**-20) for part in PARTS]
        rows.append(row([name_of(one), *cells, "" if batch is None else cell(f"{batch:.0f}", batch)], one.rerun))
    return table("Memory of a plan, MiB", ["network and machine", *PARTS, "largest batch"], rows)
