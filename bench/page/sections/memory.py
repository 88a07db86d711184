"""Memory over the time of a plan: what is alive while each call runs."""

import altair

from page import again, charts
from page.parts import Cell, Chart, Head, Row, Sentence, Table
from page.text import mebibytes, size

PARTS = ("parameters", "state", "optimiser", "inputs", "arena", "prepared", "total")


HEAD = Head(
    "memory",
    "Memory over the plan's time",
    "Memory",
    "Bytes of the arena that are in use while each call runs, by what they are for; forward first, then backward.",
    "lamina_bench memory resnet50 --benchmark_out=memory.json",
)


def make(model):
    found = model.memories
    points = used(found)
    section = HEAD.section(points)
    if not found:
        return section
    section.tables = [totals(found)]
    section.answers = answers([one for one in found if one["total"]])
    if points:
        section.charts = [
            Chart(
                "memory",
                "Bytes in use, call by call",
                "The highest point is what the arena must hold.",
                drawn(points),
                table(found),
            )
        ]
    return section


def mode_of(one):
    return one.key.get("mode") or one.key.get("part", "")


def name_of(one):
    return f"{one.title}, {mode_of(one)}"


FEW = 4  # plans that have a sentence each


def answers(found):
    """A sentence for each plan; of many, the extremes, and the largest batches together."""
    if len(found) <= FEW:
        return [Sentence(in_words(one), command_of(one)) for one in found]
    least, greatest = (end(found, key=lambda one: one["total"]) for end in (min, max))
    of_plans = Sentence(
        f"{len(found)} plans take {size(least['total'])} ({name_of(least)}) to {size(greatest['total'])} "
        f"({name_of(greatest)}).",
        commands_of((least, greatest)),
    )
    limits = {}
    for one in found:
        if one["limit_bytes"] and one["largest_batch"] is not None:
            limits.setdefault((mode_of(one), one.who, one["limit_bytes"]), []).append(one)
    return [of_plans] + [
        Sentence(
            f"Largest batch by prediction within {size(limit)}, {mode}, {who}: "
            + ", ".join(dict.fromkeys(f"{one['largest_batch']:.0f} ({one.key['network']})" for one in its))
            + ".",
            commands_of(its),
        )
        for (mode, who, limit), its in limits.items()
    ]


def in_words(one):
    arena = f", of which the arena has {size(one['arena'])}" if one["arena"] else ""
    return f"{name_of(one)}: the plan takes {size(one['total'])}{arena}{largest(one)}."


def largest(one):
    if one["largest_batch"] is None or not one["limit_bytes"]:
        return ""
    within = f"within {size(one['limit_bytes'])}"
    if one["largest_batch"] == 0:
        return f"; not even one image fits {within}"
    return f"; the largest batch {within} is {one['largest_batch']:.0f}"


def command_of(one):
    """With the limit without which there is no largest batch."""
    limit = [f"--memory_limit={one['limit_bytes']:.0f}"] if one["limit_bytes"] else []
    return again.found_command("memory", one.key, one.origin.context, *limit)


def commands_of(found):
    return again.together((one.key["network"], command_of(one)) for one in found)


def used(found):
    """The bytes of each kind, step by step, where there are any."""
    points = []
    for one in found:
        run = command_of(one)
        for place, step in enumerate(one["steps"]):
            for kind, count in (step["by_kind"] or {"in use": step["live_bytes"]}).items():
                if not count:
                    continue
                points.append(
                    {
                        "of": name_of(one),
                        "step": place,
                        "layers": step["layers"],
                        "part": step["pass"],
                        "kind": kind,
                        "MiB": count / 2**20,
                        "all": step["live_bytes"] / 2**20,
                        "run": run,
                    }
                )
    return points


def drawn(points):
    drawing = charts.Drawing()
    selected, only = charts.choice("memory_of", "Of", [one["of"] for one in points], "of")
    series = charts.series("kind", "memory_series")
    tip = [
        altair.Tooltip("layers:N", title="call"),
        altair.Tooltip("part:N", title="pass"),
        "kind:N",
        altair.Tooltip("MiB:Q", format=".4~g"),
        altair.Tooltip("all:Q", title="in all, MiB", format=".4~g"),
    ]
    whole = (
        drawing.chart(points)
        .transform_filter(only.filter)
        .mark_bar(binSpacing=0, cursor="pointer")
        .encode(
            x=altair.X(
                "step:O",
                title="calls, in their order",
                axis=altair.Axis(labels=False, ticks=False),
                scale=altair.Scale(paddingInner=0),
            ),
            y=altair.Y("MiB:Q", title="MiB in use", stack=True),
            color=altair.Color("kind:N", title=None),
            opacity=charts.chosen(series, 0.15),
            tooltip=tip,
        )
        .add_params(selected, series)
    )
    return drawing.spec(whole, "Stacked bars of the bytes that are in use while each call of the plan runs.")


def totals(found):
    rows = [
        Row(
            [
                name_of(one),
                *(Cell(mebibytes(one[part]), one[part]) if one[part] is not None else "" for part in PARTS),
                Cell(f"{one['largest_batch']:.0f}", one["largest_batch"]) if one["largest_batch"] is not None else "",
            ],
            command_of(one),
        )
        for one in found
    ]
    return Table("Memory of a plan, MiB", ["network and machine", *PARTS, "largest batch"], rows)


def table(found):
    rows = []
    for one in found:
        rows += [
            Row(
                [
                    name_of(one),
                    Cell(str(place), place),
                    step["layers"],
                    step["pass"],
                    Cell(mebibytes(step["live_bytes"]), step["live_bytes"]),
                ],
                command_of(one),
            )
            for place, step in enumerate(one["steps"])
        ]
    return Table("Bytes in use", ["of", "call", "layers", "pass", "MiB"], rows, numeric=4)
