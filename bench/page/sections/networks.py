"""The table of cnn-benchmarks: the published machines beside ours, and the speed-up against any of them."""

import itertools
import math
from statistics import geometric_mean

import altair

import intervals
from page import again, charts, published
from page.parts import Chart, Section, Sentence
from page.text import digits

PASSES = (*published.PASSES, "inference")


def make(model):
    ours, timings = shown(model)
    known = published.networks()
    networks = [net for net in known if any(net in its["times"] for its in ours)]
    networks += [net for net in known if net not in networks]
    more = dict.fromkeys(net for its in ours for net in its["times"])
    networks += [net for net in more if net not in networks]
    machines = ours + [
        {
            "label": one.label,
            "source": one.source,
            "ours": False,
            "measured": False,
            "batch": published.BATCH,
            "times": {net: {part: {"ms": ms} for part, ms in parts.items()} for net, parts in one.milliseconds.items()},
        }
        for one in published.machines()
    ]
    for number, machine in enumerate(machines):
        machine["id"] = number
    add_rounds(timings)
    measured = [net for net in networks if any(net in its["times"] for its in ours)]
    first = "resnet50" if "resnet50" in (measured or networks) else (measured or networks)[0]
    lead = (
        "Milliseconds of one pass over a minibatch of 16 images of 3x224x224 in f32, as in cnn-benchmarks: forward "
        "in training "
        "mode, backward with the gradients of all parameters, no update. Another batch is shown per 16 images."
    )
    return Section(
        "networks",
        "Networks, beside the published machines",
        lead,
        short="Networks",
        charts=[speedups(ours[0])] if ours else [],
        answers=[said for one in sorted(ours, key=count) if one["ours"] for said in answers(one, machines)],
        template="networks.html",
        fill="" if ours else "lamina_bench run --backend=eigen --passes=9 --benchmark_out=networks.json",
        data={
            "networks": networks,
            "machines": machines,
            "passes": [*published.PASSES, "inference"],
            "network": first,
            "reference": reference(machines, first),
            "first": static(machines, networks),
        },
    )


def shown(model):
    """Ours by machine and program, and the rows that are shown. Of a network with several batches the published one is;
    else each batch alone."""
    rows = [
        one
        for one in model.of("net")
        if one.key["part"] in PASSES and one.seconds and not one.size and not sweeps_threads(one)
    ]
    published_batch = {whose(one) for one in rows if one.key["batch"] == published.BATCH}
    found, timings = {}, []
    for one in rows:
        batch = one.key["batch"]
        if whose(one) in published_batch and batch != published.BATCH:
            continue
        label = one.who + (f", batch {batch}" if batch != published.BATCH else "")
        machine = found.setdefault(
            (label, one.origin.source.number),
            {
                "label": label,
                "program": label.removeprefix(one.origin.machine(one.key["backend"]) + one.origin.suffix + ", "),
                "source": one.origin.source.name,
                "ours": one.is_lamina,
                "measured": True,
                "batch": batch,
                "times": {},
            },
        )
        machine["times"].setdefault(one.key["network"], {})[one.key["part"]] = time_of(one)
        timings.append((machine, one))
    return list(found.values()), timings


def add_rounds(timings):
    """Of rows that were measured in turns: by how much the other took longer, round by round, by the other's id. A race
    on a GPU has each precision separately."""
    together = {}
    for machine, one in timings:
        if one.origin.in_turns:
            turns = (id(one.origin.in_turns), one.key["network"], one.key["part"], one.key["type"])
            together.setdefault(turns, []).append((machine, one))
    for (_, network, part, _), its in together.items():
        for (machine, one), (other, beside) in itertools.permutations(its, 2):
            if len(one.seconds) == len(beside.seconds) and one.key["batch"] == beside.key["batch"]:
                ratio = intervals.of_ratio(one.seconds, beside.seconds)
                machine["times"][network][part].setdefault("rounds", {})[other["id"]] = ratio._asdict()


def whose(timing):
    return timing.origin, timing.who, timing.key["network"]


def sweeps_threads(timing):
    return "threads" in timing.key.get("differs", {})


def time_of(timing):
    scale = 1e3 * published.BATCH / timing.key["batch"]
    its = timing.interval
    return {
        "ms": its.middle * scale,
        "low": its.low * scale,
        "high": its.high * scale,
        "samples": len(timing.seconds),
        "run": timing.command,
        "name": timing.name,
        "grade": timing.grade,
        "MiB": timing.counters.get("plan_MiB"),
    }


def count(machine):
    """Those with the most networks come first."""
    return -len(machine["times"])


def answers(mine, machines):
    """Of a row of ours: its range, its speed-up over the other programs of its file, the nearest published machine."""
    times = totals(mine)
    if not times:
        return []
    least, most = (end(times, key=times.get) for end in (min, max))
    spans = f"{spell(least, times)} to {spell(most, times)}" if least != most else spell(least, times)
    said = [Sentence(f"{mine['label']}: a training pass over an image takes {spans}.", runs([mine], (least, most)))]
    ratios = {one["id"]: speed(mine, one) for one in machines if one is not mine}
    beside = [one for one in machines if is_peer(one, mine) and ratios[one["id"]]]
    if beside:
        peers = ", ".join(f"{one['program']} ×{span(ratios[one['id']])}" for one in beside)
        text = f"{mine['label']}, speed-up of total, geometric mean of the networks and range: against {peers}."
        said.append(Sentence(text, runs(beside, times)))
    whole = [one for one in machines if not one["measured"] and len(ratios[one["id"]]) == len(times)]
    if whole:
        near = min(whole, key=lambda one: abs(math.log(geometric_mean(ratios[one["id"]]))))
        text = (
            f"{mine['label']}: the nearest published machine in total time is {near['label']} "
            f"(×{digits(geometric_mean(ratios[near['id']]))})."
        )
        said.append(Sentence(text, runs([mine], times)))
    return said


def runs(machines, networks):
    """What measures the totals of these again. A race has ours beside the others."""
    totals_of = [(net, one["times"][net].get("total")) for one in machines for net in networks if net in one["times"]]
    return again.together((net, time["run"]) for net, time in totals_of if time)


def is_peer(one, mine):
    return one["measured"] and not one["ours"] and one["source"] == mine["source"]


def span(ratios):
    """Their geometric mean, and where they are several from the least to the most."""
    middle = digits(geometric_mean(ratios))
    return middle if len(ratios) == 1 else f"{middle} ({digits(min(ratios))} to {digits(max(ratios))})"


def totals(machine):
    return {net: parts["total"]["ms"] for net, parts in machine["times"].items() if "total" in parts}


def speed(mine, other):
    """How many times as fast, network by network: by the rounds in which both took turns, or else by the medians."""
    ours, theirs = totals(mine), totals(other)
    rounds = {net: mine["times"][net]["total"].get("rounds", {}).get(other["id"]) for net in ours}
    return [rounds[net]["middle"] if rounds[net] else theirs[net] / ours[net] for net in ours if net in theirs]


def spell(network, times):
    return f"{digits(times[network] / published.BATCH)} ms ({network})"


def reference(machines, network):
    """Another program of the files; else the published machine that most people know: the Pascal Titan X's newest,
    where it has the network."""
    for one in machines:
        if one["measured"] and not one["ours"] and network in one["times"]:
            return one["id"]
    for one in machines:
        if not one["ours"] and one["label"] == "Pascal Titan X, cuDNN 5.1.05" and network in one["times"]:
            return one["id"]
    return machines[0]["id"]


def speedups(first):
    """Its data come from the page's script, as the row is chosen. Until then it has one point: without any a legend has
    no size."""
    drawing = charts.Drawing()
    point = {"network": next(iter(first["times"])), "series": first["label"], "ratio": 1, "low": 1, "high": 1}
    drawing.records["speedups"] = [point]
    series = charts.series(name="speedups_series")
    lit = charts.chosen(series)
    x = altair.X(
        "ratio:Q",
        title="times as fast",
        scale=altair.Scale(type="log", nice=False, padding=16),
        axis=altair.Axis(format="~g", tickCount=8),
    )
    y = altair.Y("network:N", title=None, sort=None)
    offset, color = altair.YOffset("series:N"), altair.Color("series:N", title=None)
    base = altair.Chart(altair.NamedData(name="speedups"))
    equal = altair.Chart(drawing.data([{"ratio": 1}])).mark_rule(strokeDash=[4, 3]).encode(x="ratio:Q")
    # An axis of one number alone would have no length.
    room = altair.Chart(drawing.data([{"ratio": 0.9}, {"ratio": 1.1}])).mark_point(opacity=0, aria=False)
    bars = base.mark_rule(strokeWidth=2).encode(
        x=altair.X("low:Q"), x2="high:Q", y=y, yOffset=offset, color=color, opacity=lit
    )
    dots = base.mark_point(filled=True, size=70, opacity=1, cursor="pointer").encode(
        x=x,
        y=y,
        yOffset=offset,
        color=color,
        opacity=lit,
        tooltip=[
            altair.Tooltip("series:N", title="machine"),
            "network:N",
            altair.Tooltip("ratio:Q", title="times as fast", format=".4~g"),
            altair.Tooltip("low:Q", title="from", format=".4~g"),
            altair.Tooltip("high:Q", title="to", format=".4~g"),
            altair.Tooltip("ms:Q", title="its ms", format=".4~g"),
            altair.Tooltip("base:Q", title="ms of the chosen row", format=".4~g"),
        ],
    )
    whole = altair.layer(room.encode(x="ratio:Q"), equal, bars, dots).add_params(series)
    whole = whole.properties(width="container", height=120)
    return Chart(
        "speedups",
        "All networks that were measured",
        "Right of the dashed line is faster than the chosen row. Bars: of programs that took turns, the interval of "
        "the rounds' ratios; else the least and the most that the intervals of both times allow.",
        drawing.spec(whole, "How many times as fast each measured program is as the chosen row, by network."),
    )


def static(machines, networks):
    """What the table has before its script has run: totals, by their mean."""

    def place(machine):
        times = [parts["total"]["ms"] for parts in machine["times"].values() if "total" in parts]
        return sum(times) / len(times) if times else float("inf")

    return [
        {
            "label": one["label"],
            "ours": one["ours"],
            "cells": [cell(one["times"].get(net, {}).get("total")) for net in networks],
        }
        for one in sorted(machines, key=place)
    ]


def cell(time):
    return digits(time["ms"]) if time else ""
