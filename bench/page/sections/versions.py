"""Two versions, builds or machines: the ratio of each row, sorted, with its interval. What is said of a row, and by which
numbers, is bench/race's."""

import altair

import verdicts
from page import again, charts
from page.measured import Comparison
from page.parts import Cell, Chart, Row, Section, Table
from page.text import digits, milliseconds

MARKS = {"slower": "slower", "faster": "faster"}
COLORS = {"faster": "var(--good)", "slower": "var(--bad)", "equal": "var(--tie)", "not decided": "var(--muted)"}


def make(model):
    found = [*model.comparisons, *across(model)]
    found = [one for one in found if one.ratio]
    section = Section("versions", "Two versions", short="Versions", fill="" if found else "lamina_bench compare BEFORE.json AFTER.json --benchmark_out=compared.json")
    if not found:
        return section
    section.lead = ("Time of the second over time of the first, by row, with the 95 % interval of the ratio. Below 1 the second is faster. "
                    f"A difference counts from {100 * verdicts.LEAST:.0f} % on, and only if the interval leaves 1 out; ties are grey.")
    section.charts = [Chart("versions", "Ratio of each row", "Sorted; bars are the intervals.", drawn(found), table(found))]
    section.notes = [counted(pair, its) for pair, its in by_pair(found).items()]
    if any(one.origin is None for one in found):
        section.notes.append("Runs in different files did not take turns: what disturbed one of them is in the ratio. bench/race/versions lets both take turns.")
    return section


def pair_of(one):
    return f"{one.other} against {one.against}"


def by_pair(found):
    pairs = {}
    for one in found:
        pairs.setdefault(pair_of(one), []).append(one)
    return dict(sorted(pairs.items(), key=lambda pair: -len(pair[1])))


def counted(pair, its):
    counts = {}
    for one in its:
        counts[one.verdict] = counts.get(one.verdict, 0) + 1
    return f"{pair}: {len(its)} rows, " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())) + "."


def across(model):
    """Rows of every run against the run before it that has most of them."""
    runs = {}
    for one in model.timings:
        if one.key["what"] in ("net", "layer") and one.seconds:
            runs.setdefault((one.origin.source.number, one.origin.variant), {})[one.name] = one
    runs, found = list(runs.values()), []
    for place, its in enumerate(runs):
        shared = [[name for name in its if name in before] for before in runs[:place]]
        if any(shared):
            most = max(shared, key=len)  # of equals, the first
            found += pair(runs[shared.index(most)], its, most)
    return found


def pair(first, other, shared):
    """By bench/race/verdicts: repetition by repetition, as its rounds."""
    def rounds(timing):
        return [verdicts.Observation(seconds=one, algorithm=timing.algorithm, memory_MiB=timing.counters.get("plan_MiB", 0), key=timing.key)
                for one in timing.seconds]
    found = verdicts.compare({name: rounds(first[name]) for name in shared}, {name: rounds(other[name]) for name in shared})
    a, b = (label(next(iter(its.values())).origin) for its in (first, other))
    return [Comparison(None, one.name, one.key, one.verdict.replace("undecided", "not decided"), a, b, one.ratio, one.low, one.high, one.first_seconds,
                       one.seconds, ", ".join(filter(None, (one.regression, one.evidence)))) for one in found if one.seconds > 0]


def label(origin):
    return f"{origin.variant or origin.source.stem}" + (f" ({origin.commit})" if origin.commit else "")


def command(one):
    return again.line("bench/race/versions", "--programs=BEFORE,AFTER", f"--benchmark_filter={again.exactly(one.name)}")


def drawn(found):
    points = []
    for pair_name, its in by_pair(found).items():
        for place, one in enumerate(sorted(its, key=lambda one: one.ratio)):
            points.append({"pair": pair_name, "row": one.name, "place": place, "ratio": one.ratio, "low": one.low or one.ratio, "high": one.high or one.ratio,
                           "verdict": one.verdict if one.verdict in COLORS else "not decided", "why": one.why, "run": command(one)})
    selected, only = charts.choice("versions_pair", "Versions", [one["pair"] for one in points], "pair")
    base = charts.chart(points, 380).transform_filter(only.filter)
    color = altair.Color("verdict:N", title=None, scale=altair.Scale(domain=list(COLORS), range=list(COLORS.values())))
    series = charts.series("verdict", "versions_series")
    x = altair.X("place:Q", title="rows, sorted by ratio", axis=altair.Axis(labels=False, ticks=False, grid=False), scale=altair.Scale(padding=12))
    y = altair.Y("ratio:Q", title="time of the second / first", scale=altair.Scale(type="log", nice=False, padding=12), axis=altair.Axis(format=".3~g", tickCount=6))
    tip = ["row:N", altair.Tooltip("ratio:Q", format=".4f"), altair.Tooltip("low:Q", title="95 % from", format=".4f"), altair.Tooltip("high:Q", title="to", format=".4f"), "verdict:N", altair.Tooltip("why:N", title="evidence")]
    one = altair.Chart(charts.data([{"ratio": 1}])).mark_rule(strokeDash=[4, 3]).encode(y="ratio:Q")
    bars = base.mark_rule(strokeWidth=2).encode(x=x, y=altair.Y("low:Q"), y2="high:Q", color=color, opacity=charts.chosen(series))
    dots = base.mark_point(filled=True, size=45, opacity=1, cursor="pointer").encode(x=x, y=y, color=color, opacity=charts.chosen(series), tooltip=tip).add_params(charts.zoom("versions_zoom"))
    whole = altair.layer(one, bars, dots).add_params(selected, series).properties(width="container", height=charts.HEIGHT)
    return charts.spec(whole, "The ratio of each row with its interval, sorted; coloured by verdict.")


def table(found):
    rows = []
    for pair_name, its in by_pair(found).items():
        for one in sorted(its, key=lambda one: -one.ratio):
            ends = f"{one.low:.3f} – {one.high:.3f}" if one.low and one.high else ""
            rows.append(Row([pair_name, one.name, Cell(one.verdict, mark=MARKS.get(one.verdict, "tie")), Cell(f"{one.ratio:.3f}", one.ratio, ends),
                             Cell(milliseconds(one.first_seconds), one.first_seconds) if one.first_seconds else "",
                             Cell(milliseconds(one.seconds), one.seconds) if one.seconds else "", one.why], command(one)))
    return Table("Ratios", ["versions", "row", "verdict", "ratio", "first, ms", "second, ms", "evidence"], rows, numeric=3)
