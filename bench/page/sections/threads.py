"""Threads: images per second against their number, beside the ideal straight line."""

import collections

from page import charts
from page.parts import section
from page.sections import batches

LEAD = "Images per second against the number of threads; the dashed line is that of one thread, times their number."


def make(model):
    swept = series(model)
    answers = batches.answers_of(model, {"best_threads": "Which number of threads is the fastest?"})
    fill = "" if swept or answers[0]["rows"] else batches.FILL
    return section("threads", "Threads", "Threads", LEAD, fill, folded=answers, folded_title=batches.ANSWERS,
                   charts=[chart(swept)] if swept else [])


def threads_of(one):
    """The threads of the row, or of its run; 0 where that is not known."""
    text = one.differs.get("threads") or one.run.context.get("threads", "")
    return int(text) if text.isdecimal() else 0


def series(model):
    """{(what, who): {threads: its row}} of those with several numbers. Runs of one machine with different threads are
    often different files; a line is of one commit."""
    rows = [one for one in model.rows_of("net")
            if one.key["part"] in ("total", "inference") and one.run.is_ours and threads_of(one) and one.seconds]
    machine = lambda one: " ".join([f"{one.machine}, {one.run.program(one.key['backend'])}", *one.settings("threads")])
    commits = collections.defaultdict(set)
    for one in rows:
        commits[machine(one)].add(one.run.commit)
    found = collections.defaultdict(dict)
    for one in rows:
        who = machine(one) + (f" ({one.run.commit or 'no commit'})" if len(commits[machine(one)]) > 1 else "")
        found[f"{one.key['network']}, {one.key['part']}, batch {one.batch}", who][threads_of(one)] = one
    return {key: dict(sorted(its.items())) for key, its in found.items() if len(its) > 1}


def chart(swept):
    points = []
    for (what, who), its in swept.items():
        first = its[min(its)]
        single = first.batch / first.median / min(its)
        for threads, one in its.items():
            high, rate, low = (one.batch / end for end in (one.quartiles[0], one.median, one.quartiles[1]))
            point = {"what": what, "series": who, "threads": threads, "rate": rate, "low": low, "high": high}
            points.append(point | {"ideal": single * threads, "of_ideal": rate / (single * threads), "run": one.rerun})
    axis = {"values": sorted({one["threads"] for one in points}), "format": "d"}
    x = charts.number("threads", "threads", axis, zero=False, padding=12)
    y = charts.number("rate", "images/s", zero=True)
    names, share = {"series": "machine", "threads": "threads"}, ("of the ideal", ".0%")
    tip = charts.tips(names, rate="images/s", low="middle half from", high="to", of_ideal=share)
    color = {"color": charts.name("series"), "opacity": charts.lit("threads_lit")}
    layers = [
        charts.layer(points, charts.LINE | {"strokeDash": [5, 4]}, x=x, y=charts.number("ideal"), **color),
        *charts.ranged(points, "threads_lit", x, y, tip),
    ]
    says = "Bars span the middle half of the passes."
    return charts.chart("threads", "Images per second by threads", says, layers, ("Network", "what"))
