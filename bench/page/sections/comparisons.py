"""The section of comparisons: verdicts of lamina_bench compare, which the page only shows."""

import collections
import os

from page import charts
from page.parts import cell, row, section, table

LEAD = (
    "Time of the second over time of the first, by row: below 1 the second is faster. lamina_bench compare made the "
    "intervals and verdicts; files of bench/race/race, of bench/race/versions and of comparisons have them."
)
FILL = "lamina_bench compare BEFORE AFTER --benchmark_out=compared.json"
COLORS = {"faster": "var(--good)", "slower": "var(--bad)", "equal": "var(--tie)", "inconclusive": "var(--c5)"}


def make(model):
    pairs = collections.defaultdict(list)
    for one in model.comparisons:
        first, second = names_of(one)
        pairs[f"{second} against {first}, {one.run.file.removesuffix('.json')}"].append(one)
    drawn = [chart(pairs)] if any(one.get("ratio") for one in model.comparisons) else []
    rest = [row([pair, one["name"], cell(one["verdict"], mark="failed"), one.get("reason", "")], one.rerun)
            for pair, its in pairs.items() for one in its if not one.get("ratio")]
    failures = [row([one["network"], one["variant"], one["reason"]]) for one in model.failures]
    tables = [table("Rows without a ratio", ["pair", "row", "verdict", "reason"], rest, 99),
              table("Left out of a race", ["network", "variant", "reason"], failures, 99)]
    return section("comparisons", "Comparisons", "Comparisons", LEAD, FILL, tables, charts=drawn)


def names_of(one):
    """The names of both sides: names of variants, or the last parts of paths. If these are equal, whole paths."""
    names = [os.path.normpath(one[side]).removesuffix(".json") for side in ("first", "second")]
    short = list(map(os.path.basename, names))
    return short if short[0] != short[1] else names


def chart(pairs):
    points = []
    for pair, its in pairs.items():
        timed = sorted((one for one in its if one.get("ratio")), key=lambda one: one["ratio"])
        for place, one in enumerate(timed):
            times = {"first_ms": 1e3 * one["first_seconds"], "second_ms": 1e3 * one["seconds"]}
            numbers = {name: one[name] for name in ("ratio", "low", "high") if one.get(name)} | times
            about = {"pair": pair, "row": one["name"], "place": place, "run": one.rerun, "why": one.get("reason", "")}
            points.append(numbers | about | {"series": one["verdict"]})
    x = charts.number("place", "rows, sorted by ratio", {"labels": False, "ticks": False, "grid": False}, padding=12)
    y = charts.logarithmic("ratio", "time of the second / first", {"format": ".3~g", "tickCount": 6}, padding=12)
    ratios = {"ratio": ("ratio", ".4f"), "low": ("from", ".4f"), "high": ("to", ".4f")}
    names = {"row": "row", "series": "verdict", "why": "reason"}
    tip = charts.tips(names, **ratios, first_ms="first, ms", second_ms="second, ms")
    scale = {"domain": list(COLORS), "range": list(COLORS.values())}
    layers = [charts.layer([{"ratio": 1}], charts.DASHED, y=charts.number("ratio")),
              *charts.ranged(points, "comparisons_lit", x, y, tip, line=False, scale=scale)]
    says = "Bars are the intervals; equal rows are grey."
    return charts.chart("comparisons", "Ratio of each row", says, layers, ("Pair", "pair"))
