"""What lamina_bench compare found: of two versions, builds or files, and of programs that took turns. Nothing is judged
here."""

import collections
import math
import os

from page import charts
from page.parts import cell, figure, row, section, sentence, table

LEAD = (
    "Time of the second over time of the first, by row: below 1 the second is faster. Intervals and verdicts are those of "
    "lamina_bench compare, in the files of races, of bench/race/versions and of comparisons."
)
COLORS = {
    "faster": "var(--good)",
    "slower": "var(--bad)",
    "equal": "var(--tie)",
    "inconclusive": "var(--c5)",
}
MARKS = {"slower": "slower", "faster": "faster", "fails": "failed", "missing": "failed"}


def make(model):
    pairs = collections.defaultdict(list)
    for one in model.comparisons:
        pairs[f"{short(one, 'second')} against {short(one, 'first')}, {one.run.file.removesuffix('.json')}"].append(one)
    timed = [one for its in pairs.values() for one in its if one.get("ratio")]
    return section(
        "comparisons",
        "Comparisons",
        "Comparisons",
        LEAD,
        "" if pairs else "lamina_bench compare BEFORE AFTER --benchmark_out=compared.json",
        charts=[chart(pairs, by_row(pairs))] if timed else [],
        tables=[by_row(pairs)] if pairs and not timed else [],
        answers=[sentence(in_words(pair, its), its[0].run.context.get("command", "")) for pair, its in pairs.items()],
    )


def short(one, side):
    """A variant as it is; a file or folder by the end of its path, unless both sides end alike."""
    names = [os.path.normpath(one[its]).removesuffix(".json") for its in ("first", "second")]
    ends = [os.path.basename(name) for name in names] if os.path.basename(names[0]) != os.path.basename(names[1]) else names
    name = ends[side == "second"]
    return f"{name} ({one['fastest']})" if side == "first" and one.get("fastest") else name


def in_words(pair, its):
    """The counts of the verdicts, with the greatest changes."""
    counts = collections.Counter(one["verdict"] for one in its)
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    text = f"{pair}: {len(its)} row{'s' * (len(its) > 1)}, {said}"
    for verdict, end, greatest in (("slower", max, "slowdown"), ("faster", min, "gain")):
        changed = [one for one in its if one["verdict"] == verdict and one.get("ratio")]
        if changed:
            one = end(changed, key=lambda one: one["ratio"])
            text += f"; the greatest {greatest}: {one['name']}, {one['ratio']:.3f} times"
    return f"{text}."


def chart(pairs, its_table):
    points = [
        {
            "pair": pair,
            "row": one["name"],
            "place": place,
            "ratio": one["ratio"],
            "low": one.get("low") or one["ratio"],
            "high": one.get("high") or one["ratio"],
            "verdict": one["verdict"] if one["verdict"] in COLORS else "inconclusive",
            "why": one.get("reason", ""),
            "run": one.rerun,
        }
        for pair, its in pairs.items()
        for place, one in enumerate(sorted((one for one in its if one.get("ratio")), key=lambda one: one["ratio"]))
    ]
    axis = {"labels": False, "ticks": False, "grid": False}
    y = charts.logarithmic("ratio", "time of the second / first", {"format": ".3~g", "tickCount": 6}, padding=12)
    common = {
        "x": charts.number("place", "rows, sorted by ratio", axis, padding=12),
        "color": charts.name("verdict", scale={"domain": list(COLORS), "range": list(COLORS.values())}),
        "opacity": charts.lit("comparisons_lit"),
    }
    tip = charts.tips(
        row="row", ratio=("ratio", ".4f"), low=("from", ".4f"), high=("to", ".4f"), verdict="verdict", why="reason"
    )
    layers = [
        charts.layer([{"ratio": 1}], charts.DASHED, y=charts.number("ratio")),
        charts.layer(points, charts.BAR, y=charts.number("low"), y2={"field": "high"}, **common),
        charts.layer(points, charts.DOT | {"size": 45}, y=y, tooltip=tip, **common),
    ]
    says = "Sorted; bars are the intervals; what is equal is grey."
    pick = ("Pair", "pair")
    return charts.chart("comparisons", "Ratio of each row", says, layers, pick, legend="verdict", table=its_table)


def by_row(pairs):
    """The rows without a time, with the reason, come first."""
    rows = []
    for pair, its in pairs.items():
        for one in sorted(its, key=lambda one: -(one.get("ratio") or math.inf)):
            ratio, ends = one.get("ratio"), ""
            if one.get("low") and one.get("high"):
                ends = f"{one['low']:.3f} – {one['high']:.3f}"
            cells = [
                pair,
                one["name"],
                cell(one["verdict"], mark=MARKS.get(one["verdict"], "tie")),
                cell(f"{ratio:.3f}", ratio, ends) if ratio else "",
                figure(one.get("first_seconds") or None, scale=1e3),
                figure(one.get("seconds") or None, scale=1e3),
                one.get("reason", ""),
            ]
            rows.append(row(cells, one.rerun))
    return table("Ratios", ["pair", "row", "verdict", "ratio", "first, ms", "second, ms", "reason"], rows, 3)
