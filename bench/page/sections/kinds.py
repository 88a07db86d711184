"""Where the time goes: by kind of layer, and then every call."""

import altair

from page import again, charts
from page.parts import Cell, Chart, Head, Row, Sentence, Table
from page.text import digits, milliseconds

SHOWN = 15  # calls of a ledger that are shown at once; the others when their line is opened


HEAD = Head(
    "kinds",
    "Where the time goes",
    "Time",
    "Every call of a network's plan, timed separately: first summed by kind of layer, then one by one, the biggest"
    " first.",
    "lamina_bench ledger resnet50 --benchmark_out=ledger.json",
)


def make(model):
    ledgers = [one for one in model.ledgers if one["calls"]]
    section = HEAD.section(ledgers)
    if not ledgers:
        return section
    section.charts = [
        Chart(
            "kinds",
            "Time by kind of layer",
            "One bar for each network and machine, from the sums of its calls.",
            drawn(ledgers),
            by_kind(ledgers),
        )
    ]
    for one in ledgers:
        calls = sorted(one["calls"], key=lambda call: -call["seconds"])
        section.tables.append(
            table(
                one,
                calls[:SHOWN],
                f"The ledger of {one.title}"
                + (f": the {SHOWN} biggest of {len(calls)} calls" if len(calls) > SHOWN else ""),
            )
        )
        if len(calls) > SHOWN:
            section.folded.append(table(one, calls, f"All calls of {one.title}"))
    section.folded_title = "All calls"
    section.notes = [Sentence(adds_up(one), command(one)) for one in ledgers if one["forward_seconds"]]
    section.notes += [
        f"{one.title}: interrupted after {one['passes']:.0f} of {one['passes_asked']:.0f} passes."
        for one in ledgers
        if one["passes"] is not None and one["passes"] < (one["passes_asked"] or 0)
    ]
    section.answers = [Sentence(most(one), command(one)) for one in ledgers]
    return section


def command(ledger):
    return again.found_command("ledger", ledger.key, ledger.origin.context)


def total(ledger):
    return sum(call["seconds"] for call in ledger["calls"])


def adds_up(ledger):
    whole = ledger["forward_seconds"] + (ledger["backward_seconds"] or 0)
    return (
        f"{ledger.title}: the calls sum to {milliseconds(total(ledger))} ms, {100 * total(ledger) / whole:.1f} % of "
        "the whole "
        f"timed without stamps ({milliseconds(whole)} ms)."
    )


def sums(ledger):
    """Seconds by kind, the biggest first."""
    found = {}
    for call in ledger["calls"]:
        kind = (call["op"], "forward" if call["pass"] == "forward" else "backward")
        found[kind] = found.get(kind, 0) + call["seconds"]
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def most(ledger):
    """Its biggest kinds of layers, both passes together, and its biggest call."""
    kinds = {}
    for (kind, _), seconds in sums(ledger).items():
        kinds[kind] = kinds.get(kind, 0) + seconds
    shares = [
        f"{kind} {100 * seconds / total(ledger):.0f} %"
        for kind, seconds in sorted(kinds.items(), key=lambda one: -one[1])[:3]
        if seconds >= 0.005 * total(ledger)
    ]
    call = max(ledger["calls"], key=lambda call: call["seconds"])
    return (
        f"{ledger.title}: {', '.join(shares)}; the biggest call is {call['layers']}, {call['pass']}, "
        f"{milliseconds(call['seconds'])} ms ({100 * call['seconds'] / total(ledger):.1f} %)."
    )


def records(ledgers):
    return [
        {
            "ledger": one.title,
            "kind": kind,
            "part": part,
            "ms": 1e3 * seconds,
            "share": seconds / total(one),
            "run": command(one),
        }
        for one in ledgers
        for (kind, part), seconds in sums(one).items()
    ]


def drawn(ledgers):
    drawing = charts.Drawing()
    found = records(ledgers)
    shares = altair.param(
        name="kinds_as",
        value="share of the whole",
        bind=altair.binding_select(options=["share of the whole", "milliseconds"], name="Show "),
    )
    series = charts.series("kind", "kinds_series")
    bars = (
        altair.Chart(drawing.data(found))
        .transform_calculate(size="kinds_as == 'milliseconds' ? datum.ms : 100 * datum.share")
        .mark_bar(cursor="pointer")
        .encode(
            x=altair.X("size:Q", title="ms, or % of the sum", stack=True, axis=altair.Axis(tickCount=8)),
            y=altair.Y("part:N", title=None, sort=["forward", "backward"]),
            color=altair.Color("kind:N", title=None, sort=[kind for kind, _ in kinds_in_order(found)]),
            opacity=charts.chosen(series, 0.15),
            order=altair.Order("ms:Q", sort="descending"),
            tooltip=[
                altair.Tooltip("ledger:N", title="of"),
                altair.Tooltip("part:N", title="pass"),
                "kind:N",
                altair.Tooltip("ms:Q", format=".4~g"),
                altair.Tooltip("share:Q", format=".1%"),
            ],
        )
    )
    several = len({one["ledger"] for one in found}) > 1
    whole = bars.properties(width="container", height=90).add_params(shares, series)
    if several:
        selected, only = charts.choice("kinds_ledger", "Ledger", [one["ledger"] for one in found], "ledger")
        whole = whole.transform_filter(only.filter).add_params(selected)
    return drawing.spec(whole, "Stacked bars of the time by kind of layer, forward and backward.")


def kinds_in_order(found):
    by_kind = {}
    for one in found:
        by_kind[one["kind"]] = by_kind.get(one["kind"], 0) + one["ms"]
    return sorted(by_kind.items(), key=lambda one: -one[1])


def by_kind(ledgers):
    rows = [
        Row(
            [
                one["ledger"],
                one["kind"],
                one["part"],
                Cell(digits(one["ms"]), one["ms"]),
                Cell(f"{100 * one['share']:.1f}", one["share"]),
            ],
            one["run"],
        )
        for one in records(ledgers)
    ]
    return Table(
        "Time by kind of layer", ["network and machine", "kind", "pass", "ms", "% of the sum"], rows, numeric=3
    )


def table(ledger, calls, caption):
    whole, peak, memory = total(ledger), ledger["peak_flops_per_second"], ledger["memory_bytes_per_second"]
    rows = []
    for call in calls:
        rate = call["flops"] / call["seconds"] if call["flops"] else None
        bandwidth = call["bytes"] / call["seconds"] if call["bytes"] else None
        cells = [
            Cell(milliseconds(call["seconds"]), 1e3 * call["seconds"]),
            Cell(f"{100 * call['seconds'] / whole:.1f}"),
            Cell(digits(1e-9 * rate), rate) if rate else "",
            Cell(f"{100 * rate / peak:.0f}") if rate and peak else "",
            Cell(digits(1e-9 * bandwidth), bandwidth) if bandwidth else "",
            Cell(f"{100 * bandwidth / memory:.0f}") if bandwidth and memory else "",
        ]
        rows.append(
            Row(
                [call["layers"], call["pass"], call["algorithm"], *cells],
                again.layer_command(ledger.key, call["node"], call["pass"], ledger.origin.context)
                if call["node"]
                else "",
            )
        )
    return Table(
        caption,
        ["layer", "pass", "algorithm", "ms", "% of sum", "GFLOP/s", "% of peak", "GB/s", "% of memory"],
        rows,
        numeric=3,
    )
