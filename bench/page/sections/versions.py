"""Two versions, builds or machines: the ratio of each row, sorted, with its interval. The verdicts are those of
`lamina_bench compare` and of bench/race/versions, as their files have them; nothing is judged here."""

import math

import altair

from page import again, charts
from page.measured import Comparison
from page.parts import Cell, Chart, Head, Row, Sentence, Table
from page.text import milliseconds

UNJUDGED = "not judged"
MARKS = {"slower": "slower", "faster": "faster", "fails": "failed", "missing": "failed"}
COLORS = {
    "faster": "var(--good)",
    "slower": "var(--bad)",
    "equal": "var(--tie)",
    UNJUDGED: "var(--c7)",
    "not decided": "var(--c5)",
}


HEAD = Head(
    "versions",
    "Two versions",
    "Versions",
    "Time of the second over time of the first, by row: below 1 the second is faster. Intervals and verdicts are "
    "those of lamina_bench compare and bench/race/versions; what is equal is grey.",
    "lamina_bench compare BEFORE AFTER --benchmark_out=compared.json",
)


def make(model):
    found = [*model.comparisons, *across(model)]
    section = HEAD.section(found)
    if not found:
        return section
    timed = [one for one in found if one.ratio]
    if timed:
        section.charts = [
            Chart("versions", "Ratio of each row", "Sorted; bars are the intervals.", drawn(timed), table(found))
        ]
    else:
        section.tables = [table(found)]
    section.notes = [counted(pair, its) for pair, its in by_pair(found).items()]
    section.answers = [
        Sentence(verdicts(pair, its), its[0].origin.context.get("command", ""))
        for pair, its in by_pair(found).items()
        if its[0].verdict != UNJUDGED
    ]
    if any(one.verdict == UNJUDGED for one in found):
        section.notes.append(
            "Ratios of medians that nothing has judged yet: lamina_bench compare FIRST SECOND "
            "--benchmark_out=compared.json, with a folder of files of several processes for each, does, and its file is "
            "one more file of a page. bench/race/versions lets both versions take turns."
        )
    return section


def pair_of(one):
    return f"{one.other} against {one.against}"


def by_pair(found):
    pairs = {}
    for one in found:
        pairs.setdefault(pair_of(one), []).append(one)
    return dict(sorted(pairs.items(), key=lambda pair: (pair[1][0].verdict == UNJUDGED, -len(pair[1]))))


def counted(pair, its):
    counts = {}
    for one in its:
        counts[one.verdict] = counts.get(one.verdict, 0) + 1
    return (
        f"{pair}: {len(its)} row{'s' * (len(its) > 1)}, "
        + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        + "."
    )


def verdicts(pair, its):
    """The counts, with the greatest changes that were found."""
    text = counted(pair, its).removesuffix(".")
    for verdict, end, greatest in (("slower", max, "slowdown"), ("faster", min, "gain")):
        changed = [one for one in its if one.verdict == verdict and one.ratio]
        if changed:
            one = end(changed, key=lambda one: one.ratio)
            text += f"; the greatest {greatest}: {one.name}, {one.ratio:.3f} times"
    return f"{text}."


def across(model):
    """Rows of every run against the run before it that has most of them; of no file that has verdicts."""
    runs, judged = {}, {id(one.origin.source) for one in model.comparisons}
    for one in model.timings:
        if one.key["what"] in ("net", "layer") and one.seconds and id(one.origin.source) not in judged:
            runs.setdefault((one.origin.source.number, one.origin.variant), {})[one.name] = one
    runs, found = list(runs.values()), []
    for place, its in enumerate(runs):
        shared = [[name for name in its if alike(its[name], before.get(name))] for before in runs[:place]]
        if any(shared):
            most = max(shared, key=len)  # of equals, the first
            found += pair(runs[shared.index(most)], its, most)
    return found


def alike(one, before):
    """Whether a row before is of the same threads; some files do not say of how many theirs are."""
    if before is None:
        return False
    threads = [its.origin.threads for its in (one, before)]
    return threads[0] == threads[1] or not all(map(str.isdigit, threads))


def pair(first, other, shared):
    """The medians' ratios, without a verdict."""
    found = []
    for name in shared:
        before, after = (its[name].interval.middle for its in (first, other))
        labels = [label(its[name].origin) for its in (first, other)]
        machines = [its[name].origin.machine(its[name].key["backend"]) for its in (first, other)]
        if machines[0] != machines[1]:
            labels = [f"{text} on {machine}" for text, machine in zip(labels, machines)]
        found.append(
            Comparison(
                other[name].origin,
                name,
                first[name].key,
                UNJUDGED,
                *labels,
                after / before,
                first_seconds=before,
                seconds=after,
            )
        )
    return found


def label(origin):
    return f"{origin.variant or origin.source.stem}" + (f" ({origin.commit})" if origin.commit else "")


def command(one):
    return again.versions_command(one.name, one.key, one.origin.context)


def drawn(found):
    drawing = charts.Drawing()
    points = []
    for pair_name, its in by_pair(found).items():
        for place, one in enumerate(sorted(its, key=lambda one: one.ratio)):
            points.append(
                {
                    "pair": pair_name,
                    "row": one.name,
                    "place": place,
                    "ratio": one.ratio,
                    "low": one.low or one.ratio,
                    "high": one.high or one.ratio,
                    "verdict": one.verdict if one.verdict in COLORS else "not decided",
                    "why": one.why,
                    "run": command(one),
                }
            )
    selected, only = charts.choice("versions_pair", "Versions", [one["pair"] for one in points], "pair")
    base = drawing.chart(points, 380).transform_filter(only.filter)
    color = altair.Color("verdict:N", title=None, scale=altair.Scale(domain=list(COLORS), range=list(COLORS.values())))
    series = charts.series("verdict", "versions_series")
    x = altair.X(
        "place:Q",
        title="rows, sorted by ratio",
        axis=altair.Axis(labels=False, ticks=False, grid=False),
        scale=altair.Scale(padding=12),
    )
    y = altair.Y(
        "ratio:Q",
        title="time of the second / first",
        scale=altair.Scale(type="log", nice=False, padding=12),
        axis=altair.Axis(format=".3~g", tickCount=6),
    )
    tip = [
        "row:N",
        altair.Tooltip("ratio:Q", format=".4f"),
        altair.Tooltip("low:Q", title="from", format=".4f"),
        altair.Tooltip("high:Q", title="to", format=".4f"),
        "verdict:N",
        altair.Tooltip("why:N", title="evidence"),
    ]
    one = altair.Chart(drawing.data([{"ratio": 1}])).mark_rule(strokeDash=[4, 3]).encode(y="ratio:Q")
    bars = base.mark_rule(strokeWidth=2).encode(
        x=x, y=altair.Y("low:Q"), y2="high:Q", color=color, opacity=charts.chosen(series)
    )
    dots = (
        base.mark_point(filled=True, size=45, opacity=1, cursor="pointer")
        .encode(x=x, y=y, color=color, opacity=charts.chosen(series), tooltip=tip)
        .add_params(charts.zoom("versions_zoom"))
    )
    whole = (
        altair.layer(one, bars, dots).add_params(selected, series).properties(width="container", height=charts.HEIGHT)
    )
    return drawing.spec(whole, "The ratio of each row with its interval, sorted; coloured by verdict.")


def table(found):
    rows = []
    for pair_name, its in by_pair(found).items():
        for one in sorted(its, key=lambda one: -(one.ratio or math.inf)):  # first what has no time, with the reason
            ends = f"{one.low:.3f} – {one.high:.3f}" if one.low and one.high else ""
            rows.append(
                Row(
                    [
                        pair_name,
                        one.name,
                        Cell(one.verdict, mark=MARKS.get(one.verdict, "tie")),
                        Cell(f"{one.ratio:.3f}", one.ratio, ends) if one.ratio else "",
                        Cell(milliseconds(one.first_seconds), one.first_seconds) if one.first_seconds else "",
                        Cell(milliseconds(one.seconds), one.seconds) if one.seconds else "",
                        one.why,
                    ],
                    command(one),
                )
            )
    return Table(
        "Ratios", ["versions", "row", "verdict", "ratio", "first, ms", "second, ms", "evidence"], rows, numeric=3
    )
