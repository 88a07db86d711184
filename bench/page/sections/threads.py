"""Threads: images per second against their number, beside the straight line that nobody reaches."""

import re

import altair

from page import again, answers, charts
from page.measured import differences, program
from page.parts import Cell, Chart, Head, Row, Sentence, Table
from page.text import between, digits, milliseconds


HEAD = Head(
    "threads",
    "Threads",
    "Threads",
    "Images per second against the number of threads; the dashed line is that of one thread, times their number.",
    "lamina_bench sweep resnet18 --benchmark_out=sweep.json",
)


def make(model):
    rows = [
        one
        for one in model.of("net")
        if one.key["part"] in ("total", "inference") and threads_of(one) and one.seconds
    ]
    commits = {}
    for one in rows:
        commits.setdefault(machine(one), set()).add(one.origin.commit)
    series = {}
    for one in rows:
        what = f"{one.key['network']}, {one.key['part']}, batch {one.key['batch']}"
        who = machine(one)
        if len(commits[who]) > 1:  # a line is of one program
            who += f" ({one.origin.commit or 'no commit'})"
        series.setdefault((what, who), {})[threads_of(one)] = one
    swept = {key: its for key, its in series.items() if len(its) > 1}
    section = HEAD.section(swept)
    if not swept:
        return section
    section.charts = [
        Chart("threads", "Images per second by threads", "Bars are the 95 % intervals.", drawn(swept), table(swept))
    ]
    said = {key: answered(its) for key, its in swept.items()}
    section.tables = [study(said)]
    section.answers = [
        Sentence(f"{', '.join(key)}: {one.whole}", command) for key, (one, command) in said.items()
    ]
    return section


def answered(its):
    """The best number of threads, and the command that finds it again."""
    points = [
        answers.Point(one.key["batch"], threads, one.seconds, one.others_share) for threads, one in sorted(its.items())
    ]
    command = again.swept_command([one for _, one in sorted(its.items())], thread_counts=sorted(its))
    return answers.best_threads(points), command


def study(said):
    rows = [
        Row([Cell(what, note=who), Cell(one.short, one.value, one.whole)], command)
        for (what, who), (one, command) in said.items()
    ]
    return Table("Which number of threads is the fastest?", ["network", "answer"], rows, numeric=99)


def threads_of(timing):
    """Of the row, or of its run; 0: all that there are, or not known."""
    text = timing.key.get("differs", {}).get("threads") or timing.origin.context.get("threads", "")
    return int(text) if re.fullmatch("[0-9]{1,6}", text) else 0


def machine(timing):
    """Runs of one machine with different threads are often different files."""
    names = [timing.origin.machine(timing.key["backend"]), program(timing.key["backend"])]
    return " ".join([", ".join(names), *differences(timing.key, without=("threads",))])


def drawn(swept):
    drawing = charts.Drawing()
    points, ideal = [], []
    for (what, who), its in swept.items():
        fewest = min(its)
        single = rate(its[fewest]) / fewest
        for threads, one in sorted(its.items()):
            batch = one.key["batch"]
            points.append(
                {
                    "what": what,
                    "series": who,
                    "threads": threads,
                    "rate": rate(one),
                    "low": batch / one.interval.high,
                    "high": batch / one.interval.low,
                    "of_ideal": rate(one) / (single * threads),
                    "run": one.command,
                }
            )
            ideal.append({"what": what, "series": who, "threads": threads, "rate": single * threads})
    selected, only = charts.choice("threads_what", "Network", [one["what"] for one in points], "what")
    series = charts.series(name="threads_series")
    x = altair.X(
        "threads:Q",
        title="threads",
        scale=altair.Scale(zero=False, padding=12),
        axis=altair.Axis(values=sorted({one["threads"] for one in points}), format="d"),
    )
    y = altair.Y("rate:Q", title="images/s", scale=altair.Scale(zero=True))
    color, lit = altair.Color("series:N", title=None), charts.chosen(series)
    base = drawing.chart(points).transform_filter(only.filter)
    tip = [
        altair.Tooltip("series:N", title="machine"),
        "threads:Q",
        altair.Tooltip("rate:Q", title="images/s", format=".4~g"),
        altair.Tooltip("of_ideal:Q", title="of the ideal", format=".0%"),
    ]
    line = base.mark_line().encode(x=x, y=y, color=color, opacity=lit)
    bars = base.mark_rule(strokeWidth=2).encode(x=x, y=altair.Y("low:Q"), y2="high:Q", color=color, opacity=lit)
    dots = base.mark_point(filled=True, size=60, opacity=1, cursor="pointer").encode(
        x=x, y=y, color=color, opacity=lit, tooltip=tip
    )
    dashed = (
        drawing.chart(ideal)
        .transform_filter(only.filter)
        .mark_line(strokeDash=[5, 4])
        .encode(x=x, y=y, color=color, opacity=charts.chosen(series))
    )
    whole = (
        altair.layer(dashed, line, bars, dots)
        .add_params(selected, series, charts.zoom("threads_zoom"))
        .properties(width="container", height=charts.HEIGHT)
    )
    return drawing.spec(whole, "Images per second against threads, one line for each machine, with a dashed ideal line.")


def rate(timing):
    return timing.key["batch"] / timing.interval.middle


def table(swept):
    rows = []
    for (what, who), its in swept.items():
        single = rate(its[min(its)]) / min(its)
        for threads, one in sorted(its.items()):
            rows.append(
                Row(
                    [
                        what,
                        who,
                        Cell(str(threads), threads),
                        Cell(digits(rate(one)), rate(one)),
                        Cell(f"{100 * rate(one) / (single * threads):.0f} %"),
                        Cell(milliseconds(one.interval.middle), one.interval.middle, between(one.interval)),
                    ],
                    one.command,
                )
            )
    return Table("Threads", ["network", "machine", "threads", "images/s", "of the ideal", "ms"], rows, numeric=2)
