"""The roofline: what each call reaches, under the two ceilings that were measured on the same machine."""

import re
import statistics

from page import charts
from page.parts import digits, figure, percent, row, section, sentence, table

LEAD = (
    "Operations per second against operations per byte, both logarithmic. A call under the slope waits for memory, one "
    "under the flat roof for the units. Fewer operations than the definition (Winograd), or data in a cache, come above a "
    "roof."
)


def make(model):
    found = [one for one in [*map(of_ledger, model.ledgers), *of_rows(model)] if one["points"]]
    if not found:
        return section("roofline", "Roofline", "Roofline", fill="lamina_bench ledger resnet50 --benchmark_out=ledger.json")
    says = "Larger points take more time. The roofs are measured, not from a data sheet."
    made = charts.chart(
        "roofline",
        "What each call reaches",
        says,
        layers(found),
        pick=("Network", "of"),
        legend="kind",
        height=420,
        table=points_of_rows([one for one in found if not one["is_ledger"]]),
    )
    return section(
        "roofline",
        "Roofline",
        "Roofline",
        LEAD,
        charts=[made],
        answers=[summary(one) for one in found if one["peak"]],
        notes=[
            f"{one['of']}: the rate of the memory is not in its file, so it has no slope." for one in found if not one["memory"]
        ],
    )


def point(layer, part, kind, flops, count, seconds, run):
    rates = {"intensity": flops / count, "gflops": 1e-9 * flops / seconds, "gbs": 1e-9 * count / seconds}
    return {"name": layer, "part": part, "kind": kind, "ms": 1e3 * seconds, "run": run} | rates


def of_ledger(one):
    points = [
        point(its["layers"], its["pass"], its["op"], its["flops"], its["bytes"], its["seconds"], its.get("rerun", one.rerun))
        for its in one["calls"]
        if its.get("flops") and its.get("bytes")
    ]
    rates = {"peak": one.get("peak_flops_per_second"), "memory": one.get("memory_bytes_per_second")}
    return rates | {"is_ledger": True, "of": f"ledger of {one.title}", "points": points, "run": one.rerun}


def of_rows(model):
    """Rows of layers, each by the algorithm that was the fastest."""
    groups = {}
    for one in model.of("layer"):
        if one.seconds and one.amount("flops_per_second") and one.amount("bytes_per_second"):
            of = f"rows of {one.key['network']}, batch {one.batch}, {one.who}"
            best = groups.setdefault(of, {})
            place = one.key["layer"], one.key["part"]
            if place not in best or one.median < best[place].median:
                best[place] = one
    for of, best in groups.items():
        any_row = next(iter(best.values()))
        context, backend = any_row.run.context, any_row.key["backend"]
        peaks = [peak for peak in (one.reading("peak_flops_per_second") for one in best.values()) if peak]
        peak = statistics.median(peaks) if peaks else billions(context.get(f"peak_GFLOPs_{backend}/{any_row.key['type']}"))
        points = [
            point(
                layer,
                part,
                one.get("algorithm", one.key.get("algorithm", "")),
                one.amount("flops_per_second"),
                one.amount("bytes_per_second"),
                one.median,
                one.rerun,
            )
            for (layer, part), one in best.items()
        ]
        rates = {"peak": peak, "memory": billions(context.get(f"memory_GBps_{backend}"))}
        yield rates | {"is_ledger": False, "of": of, "points": points, "run": context.get("command", "")}


def billions(text):
    return 1e9 * float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text or "") and float(text) else None


def ceiling(its, intensity):
    """GFLOP/s."""
    return min(its["peak"], its["memory"] * intensity) / 1e9


def summary(its):
    """All points together, and how many stay below half of their roof."""
    seconds = sum(one["ms"] for one in its["points"]) / 1e3
    rate = sum(one["gflops"] * one["ms"] / 1e3 for one in its["points"]) / seconds
    peak = 1e-9 * its["peak"]
    text = f"{its['of']}: {digits(rate)} GFLOP/s, {100 * rate / peak:.0f} % of the measured peak of {digits(peak)}"
    if its["memory"]:
        low = sum(one["ms"] for one in its["points"] if one["gflops"] < ceiling(its, one["intensity"]) / 2) / 1e3
        text += f"; {100 * low / seconds:.0f} % of the time is in calls that stay below half of their roof"
    return sentence(f"{text}.", its["run"])


def roof(its):
    """The corners of the roof: from the slope to the flat part."""
    if not its["peak"]:
        return []
    least, most = (end(one["intensity"] for one in its["points"]) for end in (min, max))
    peak = 1e-9 * its["peak"]
    if not its["memory"]:
        return [{"intensity": least / 2, "gflops": peak}, {"intensity": most * 2, "gflops": peak}]
    ridge = its["peak"] / its["memory"]
    corners = sorted({min(least, ridge) / 2, ridge, max(most, ridge) * 2})
    return [{"intensity": one, "gflops": ceiling(its, one)} for one in corners]


def layers(found):
    points = [{"of": its["of"]} | one for its in found for one in its["points"]]
    roofs = [{"of": its["of"], "roof": "measured roof", "run": its["run"]} | one for its in found for one in roof(its)]
    axis = {"format": "~g", "tickCount": 6}
    x = charts.logarithmic("intensity", "operations per byte", axis)
    y = charts.logarithmic("gflops", "GFLOP/s", axis, padding=10)
    tip = charts.tips(
        name="layer",
        part="pass",
        kind="kind",
        ms=("ms", ".4~g"),
        gflops=("GFLOP/s", ".4~g"),
        gbs=("GB/s", ".4~g"),
        intensity=("operations per byte", ".4~g"),
    )
    dots = charts.layer(
        points,
        {"type": "point", "filled": True, "cursor": "pointer"},
        x=x,
        y=y,
        color=charts.name("kind"),
        shape=charts.name("part", "pass"),
        size={"field": "ms", "type": "quantitative", "legend": None, "scale": {"range": [20, 260]}},
        opacity=charts.lit("roofline_lit", 0.06, 0.7),
        tooltip=tip,
    )
    line = charts.layer(
        roofs,
        {"type": "line", "color": "var(--ink)", "strokeWidth": 2, "cursor": "pointer"},
        x=x,
        y=y,
        order={"field": "intensity", "type": "quantitative"},
        tooltip=charts.tips(roof=" ", gflops=("GFLOP/s", ".4~g")),
    )
    return [line, dots] if roofs else [dots]


def points_of_rows(found):
    rows = [
        row(
            [
                its["of"],
                one["name"],
                one["part"],
                one["kind"],
                figure(one["intensity"]),
                figure(one["gflops"]),
                percent(1e9 * one["gflops"] / its["peak"] if its["peak"] else None),
                figure(one["gbs"]),
                figure(one["ms"]),
            ],
            one["run"],
        )
        for its in found
        for one in its["points"]
    ]
    head = ["of", "layer", "pass", "kind or algorithm", "operations per byte", "GFLOP/s", "% of peak", "GB/s", "ms"]
    return table("Rows of layers in the roofline", head, rows, 4) if rows else None
