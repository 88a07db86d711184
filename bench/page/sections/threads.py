"""The section of threads and ranks: images per second against the number of threads, or of ranks."""

import collections

from page import charts
from page.parts import section
from page.sections import batches

LEAD = "Images per second against the number of threads, or of ranks. The dashed line is the ideal: proportional."


def make(model):
    swept = {by: series(model, by) for by in ("threads", "ranks")}
    answers = batches.answers_of(model, {"best_threads": "Which number of threads is the fastest?"})
    return section("threads", "Threads and ranks", "Threads", LEAD, batches.FILL, folded=answers,
                   folded_title=batches.ANSWERS, charts=[chart(by, its) for by, its in swept.items() if its])


def count_of(one, by):
    """The number of threads or ranks of a row, from the row or from its run; 0: not known."""
    text = one.differs.get(by) or one.run.context.get(by, "1" if by == "ranks" else "")
    return int(text) if text.isdecimal() else 0


def machine(one, by):
    who = " ".join([f"{one.machine}, {one.run.program(one.key['backend'])}", *one.settings("threads", by)])
    return who if by == "threads" else f"{who}, {count_of(one, 'threads') or 'all'} threads each"


def series(model, by):
    """{(what, who): {number: row}}, without keys that have only one number."""
    # Runs with different numbers of threads are often in different files. A line has only rows of one commit.
    rows = [one for one in model.rows_of("net")
            if one.key["part"] in ("total", "inference") and one.run.is_ours and count_of(one, by) and one.seconds]
    commits = collections.defaultdict(set)
    for one in rows:
        commits[machine(one, by)].add(one.run.commit)
    found = collections.defaultdict(dict)
    for one in rows:
        who = machine(one, by)
        who += f" ({one.run.commit or 'no commit'})" if len(commits[who]) > 1 else ""
        found[f"{one.key['network']}, {one.key['part']}, batch {one.batch}", who][count_of(one, by)] = one
    return {key: dict(sorted(its.items())) for key, its in found.items() if len(its) > 1}


def chart(by, swept):
    points = []
    for (what, who), its in swept.items():
        first = its[min(its)]
        single = first.batch / first.median / min(its)
        for count, one in its.items():
            high, rate, low = (one.batch / end for end in (one.quartiles[0], one.median, one.quartiles[1]))
            point = {"what": what, "series": who, by: count, "rate": rate, "low": low, "high": high}
            points.append(point | {"ideal": single * count, "of_ideal": rate / (single * count), "run": one.rerun})
    axis = {"values": sorted({one[by] for one in points}), "format": "d"}
    x = charts.number(by, by, axis, zero=False, padding=12)
    y = charts.number("rate", "images/s", zero=True)
    names, share = {"series": "machine", by: by}, ("of the ideal", ".0%")
    tip = charts.tips(names, rate="images/s", low="middle half from", high="to", of_ideal=share)
    color = {"color": charts.name("series"), "opacity": charts.lit(f"{by}_lit")}
    layers = [charts.layer(points, charts.LINE | {"strokeDash": [5, 4]}, x=x, y=charts.number("ideal"), **color),
              *charts.ranged(points, f"{by}_lit", x, y, tip)]
    says = "Bars span the middle half of the passes."
    return charts.chart(by, f"Images per second by {by}", says, layers, ("Network", "what"))
