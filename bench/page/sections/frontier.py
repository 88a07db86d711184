"""The frontier of each layer: time against workspace, with the measured error of each algorithm."""

import math

from page import charts
from page.parts import row, section, table

LEAD = (
    "All algorithms of a layer that could be run. An algorithm is on the frontier if no other beats it in time, "
    "workspace, error and determinism."
)
SAYS = "Colour is the measured error; hollow marks are not deterministic; large marks are on the frontier."
INTERRUPTED = "measuring was interrupted, so layers are missing."


def make(model):
    points = [point for its in model.frontiers for line in its["lines"] for point in records(its, line)]
    refused = [row([its.title, node_of(line), line["pass"], one["algorithm"], one.get("failure", "no time")], its.rerun)
               for its in model.frontiers for line in its["lines"] for one in line["algorithms"]
               if not one.get("seconds")]
    head, folded_title = ["network", "layer", "pass", "algorithm", "reason"], "Algorithms without a time"
    fill = "lamina_bench frontier resnet18 --benchmark_out=frontier.json"
    return section("frontier", "Frontier of each layer", "Frontier", LEAD, fill, folded_title=folded_title,
                   folded=[table(folded_title, head, refused, 99)], charts=[chart(points)] if points else [],
                   notes=[f"{its.title}: {INTERRUPTED}" for its in model.frontiers if its.get("complete") is False])


def timed(line):
    return [one for one in line["algorithms"] if one.get("seconds")]


def ends(one):
    return one.get("low") or one["seconds"], one.get("high") or one["seconds"]


def node_of(line):
    return line.get("node") or line["op"]


def records(its, line):
    times = [one["seconds"] for one in timed(line)]
    of = {"of": f"{its.title}: {node_of(line)}, {line['pass']}", "run": line.get("rerun", its.rerun)}
    for one in timed(line):
        low, high = ends(one)
        yield of | {
            "algorithm": one["algorithm"],
            "ms": 1e3 * one["seconds"],
            "low": 1e3 * low,
            "high": 1e3 * high,
            "MiB": one.get("workspace_bytes", 0) / 2**20,
            "error": one.get("error"),
            "deterministic": "not deterministic" if one.get("deterministic") is False else "deterministic",
            "on": "on the frontier" if one.get("on_frontier") else "beaten",
            "picked": "picked" if one.get("picked") else "",
            "right": one["seconds"] ** 2 > min(times) * max(times),  # in the right half of the logarithmic axis
        }


def decades(low, high):
    """The powers of ten from `low` to `high`; if there are fewer than two, `low` and `high`."""
    found = [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    return found if len(found) > 1 else [low, high]


def chart(points):
    axis = {"format": "~g", "tickCount": 6, "labelBound": True}  # no label is cut at the edge
    x = charts.logarithmic("ms", "ms", axis, padding=56)
    y = charts.number("MiB", "workspace, MiB", {"labelExpr": "datum.value < 0 ? '' : datum.label"}, padding=15)
    errors = [one["error"] for one in points if one["error"]]
    domain = [min(errors), max(errors) * 1.001] if errors else [1e-9, 1]
    # Fill and stroke share this legend, so Vega draws it with symbols and not as a gradient.
    legend = {"title": "measured error", "format": ".0e", "values": decades(*domain)} if errors else None
    color = charts.number("error", type="log", scheme="viridis", domain=domain) | {"legend": legend}
    sizes = {"domain": ["on the frontier", "beaten"], "range": [220, 70]}
    symbols = {"symbolFillColor": "var(--muted)", "symbolStrokeColor": "var(--muted)"}
    names = {"algorithm": "algorithm", "deterministic": " ", "on": "  ", "picked": "   "}
    tip = charts.tips(names, ms="ms", MiB="workspace, MiB", error=("error", ".2e"))
    marks = charts.layer(
        points, {"type": "point", "strokeWidth": 2, "opacity": 1, "cursor": "pointer"}, x=x, y=y, fill=color,
        stroke=color,
        fillOpacity={"condition": {"test": "datum.deterministic == 'deterministic'", "value": 1}, "value": 0},
        size=charts.name("on", scale=sizes, legend=symbols) | {"type": "ordinal"}, tooltip=tip,
    )
    layers = [charts.layer(points, charts.BAR, x=charts.number("low"), x2={"field": "high"}, y=y)]
    for where, align, dx in (("!datum.right", "left", 11), ("datum.right", "right", -11)):  # so that no name is cut
        mark = {"type": "text", "align": align, "dx": dx, "dy": -9, "limit": 150}
        layers.append(charts.layer(points, mark, [where], x=x, y=y, text=charts.name("algorithm")))
    title, pick = "Time against workspace", ("Layer", "of")
    return charts.chart("frontier", title, SAYS, [*layers, marks], pick, legend=None)
