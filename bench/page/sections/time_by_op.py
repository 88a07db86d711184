"""The section of ledgers: time by kind of layer, then by call."""

import collections

from page import charts
from page.parts import digits, figure, percent, row, section, table

SHOWN = 15  # number of calls of a ledger that are shown at once; a click shows all calls
FILL = "lamina_bench ledger resnet50 --benchmark_out=ledger.json"
LEAD = "Every call of a network's plan, timed separately: first summed by kind of layer, then one by one."


def make(model):
    ledgers = [one for one in model.ledgers if total(one)]
    points = [point for one in ledgers for point in records(one)]
    return section("time", "Where the time goes", "Time", LEAD, FILL, map(biggest, ledgers),
                   [ledger(one, one["calls"], "in order") for one in ledgers], folded_title="All calls",
                   charts=[chart(points)] if ledgers else [],
                   notes=[remark for one in ledgers for remark in remarks(one)])


def total(one):
    return sum(call["seconds"] for call in one["calls"])


def remarks(one):
    """Notes on a ledger: the sum of its calls against the whole pass, and whether it was interrupted."""
    whole = one.get("forward_seconds", 0) + one.get("backward_seconds", 0)
    if whole:
        text = f"{one.title}: the calls sum to {digits(1e3 * total(one))} ms, {100 * total(one) / whole:.1f} % of the "
        yield f"{text}whole timed without stamps ({digits(1e3 * whole)} ms)."
    if one.get("passes") is not None and one["passes"] < one.get("passes_asked", 0):
        yield f"{one.title}: interrupted after {one['passes']:.0f} of {one['passes_asked']:.0f} passes."


def records(one):
    """A record for each kind of layer and pass, with the time of its calls."""
    sums, whole = collections.Counter(), total(one)
    for call in one["calls"]:
        sums[call["op"], "forward" if call["pass"] == "forward" else "backward"] += call["seconds"]
    for (kind, part), seconds in sums.most_common():
        of = {"ledger": one.title, "kind": kind, "part": part, "run": one.rerun}
        yield of | {"ms": 1e3 * seconds, "share": seconds / whole}


def chart(points):
    kinds = collections.Counter()
    for one in points:
        kinds[one["kind"]] += one["ms"]
    bars = charts.layer(
        points, {"type": "bar", "cursor": "pointer"},
        x=charts.number("size", "ms, or % of the sum", {"tickCount": 8}) | {"stack": True},
        y=charts.name("part", sort=["forward", "backward"]),
        color=charts.kinds(kind for kind, _ in kinds.most_common()), opacity=charts.lit("kinds_lit", 0.15),
        order={"field": "ms", "type": "quantitative", "sort": "descending"},
        tooltip=charts.tips({"part": "pass", "kind": "kind"}, ms="ms", share=("share", ".1%")),
    )
    size = "kinds_as == 'milliseconds' ? datum.ms : 100 * datum.share"
    bars["transform"].append({"calculate": size, "as": "size"})
    says = "One bar for each pass, from the sums of its calls."
    shows = charts.option("kinds_as", "Show", ["share of the whole", "milliseconds"])
    return charts.chart("kinds", "Time by kind of layer", says, [bars], ("Ledger", "ledger"), "kind", zoom=False,
                        options=[shows], height=90)


def biggest(one):
    calls = sorted(one["calls"], key=lambda call: -call["seconds"])
    return ledger(one, calls[:SHOWN], f"the biggest of {len(calls)}")


def ledger(one, calls, which):
    whole, peak, memory = total(one), one.get("peak_flops_per_second"), one.get("memory_bytes_per_second")
    rows = []
    for call in calls:
        seconds = call["seconds"]
        rate, bandwidth = (call[what] / seconds if call.get(what) and seconds else None for what in ("flops", "bytes"))
        cells = [
            figure(seconds, scale=1e3), percent(seconds / whole, 1), figure(rate, scale=1e-9),
            percent(rate / peak if rate and peak else None), figure(bandwidth, scale=1e-9),
            percent(bandwidth / memory if bandwidth and memory else None),
        ]
        rows.append(row([call["layers"], call["pass"], call["algorithm"], *cells], call.get("rerun", one.rerun)))
    head = ["layer", "pass", "algorithm", "ms", "% of sum", "GFLOP/s", "% of peak", "GB/s", "% of memory"]
    return table(f"Calls of {one.title}: {which}", head, rows, 3)
