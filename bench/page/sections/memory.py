"""Memory over the time of a plan: what is alive while each call runs."""

import collections

from page import charts
from page.parts import cell, figure, row, section, sentence, size, table

PARTS = ("parameters", "state", "optimiser", "inputs", "arena", "prepared", "total")
FEW = 4  # plans that have a sentence each
LEAD = "Bytes of the arena that are in use while each call runs, by what they are for; forward first, then backward."


def make(model):
    found = model.memories
    points = [point for one in found for point in records(one)]
    says = "The highest point is what the arena must hold."
    made = charts.chart(
        "memory",
        "Bytes in use, call by call",
        says,
        layers(points),
        pick=("Plan", "of"),
        legend="kind",
        zoom=False,
        table=by_call(found),
    )
    return section(
        "memory",
        "Memory over the plan's time",
        "Memory",
        LEAD if points else "",
        "" if found else "lamina_bench memory resnet50 --benchmark_out=memory.json",
        charts=[made] if points else [],
        tables=[totals(found)] if found else [],
        answers=list(answers([one for one in found if one.get("total")])),
    )


def mode(one):
    return one.get("mode") or one.key.get("part", "")


def name_of(one):
    return f"{one.title}, {mode(one)}"


def answers(found):
    """A sentence for each plan; of many plans the extremes, and the largest batches together."""
    if len(found) <= FEW:
        for one in found:
            arena = f", of which the arena has {size(one['arena'])}" if one.get("arena") else ""
            yield sentence(f"{name_of(one)}: the plan takes {size(one['total'])}{arena}{largest(one)}.", one.rerun)
        return
    ends = [end(found, key=lambda one: one["total"]) for end in (min, max)]
    texts = [f"{size(one['total'])} ({name_of(one)})" for one in ends]
    yield sentence(f"{len(found)} plans take {' to '.join(texts)}.", *(one.rerun for one in ends))
    limits = collections.defaultdict(list)
    for one in found:
        if one.get("limit_bytes") and one.get("largest_batch") is not None:
            limits[mode(one), one.who, one["limit_bytes"]].append(one)
    for (which, who, limit), its in limits.items():
        batches = dict.fromkeys(f"{one['largest_batch']:.0f} ({one.key['network']})" for one in its)
        text = f"Largest batch by prediction within {size(limit)}, {which}, {who}: {', '.join(batches)}."
        yield sentence(text, *(one.rerun for one in its))


def largest(one):
    if one.get("largest_batch") is None or not one.get("limit_bytes"):
        return ""
    within = f"within {size(one['limit_bytes'])}"
    if one["largest_batch"] == 0:
        return f"; not even one image fits {within}"
    return f"; the largest batch {within} is {one['largest_batch']:.0f}"


def records(one):
    """The bytes of each kind, call by call, where there are any."""
    for place, step in enumerate(one["steps"]):
        for kind, count in (step.get("by_kind") or {"in use": step["live_bytes"]}).items():
            if count:
                yield {
                    "of": name_of(one),
                    "step": place,
                    "layers": step.get("layers", ""),
                    "part": step.get("pass", ""),
                    "kind": kind,
                    "MiB": count / 2**20,
                    "all": step["live_bytes"] / 2**20,
                    "run": one.rerun,
                }


def layers(points):
    if not points:
        return [charts.layer(points, "bar")]
    tip = charts.tips(layers="call", part="pass", kind="kind", MiB=("MiB", ".4~g"), all=("in all, MiB", ".4~g"))
    step = {"field": "step", "type": "ordinal", "title": "calls, in their order", "scale": {"paddingInner": 0}}
    return [
        charts.layer(
            points,
            {"type": "bar", "binSpacing": 0, "cursor": "pointer"},
            x=step | {"axis": {"labels": False, "ticks": False}},
            y=charts.number("MiB", "MiB in use") | {"stack": True},
            color=charts.name("kind"),
            opacity=charts.lit("memory_lit", 0.15),
            tooltip=tip,
        )
    ]


def totals(found):
    rows = []
    for one in found:
        batch = one.get("largest_batch")
        cells = [figure(one.get(part), scale=2**-20) for part in PARTS]
        rows.append(row([name_of(one), *cells, "" if batch is None else cell(f"{batch:.0f}", batch)], one.rerun))
    return table("Memory of a plan, MiB", ["network and machine", *PARTS, "largest batch"], rows)


def by_call(found):
    rows = [
        row(
            [
                name_of(one),
                cell(str(place), place),
                step.get("layers", ""),
                step.get("pass", ""),
                figure(step["live_bytes"], scale=2**-20),
            ],
            one.rerun,
        )
        for one in found
        for place, step in enumerate(one["steps"])
    ]
    return table("Bytes in use", ["of", "call", "layers", "pass", "MiB"], rows, 4)
