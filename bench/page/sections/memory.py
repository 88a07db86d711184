"""Memory over the time of a plan: what is alive while each call runs."""

import altair

from page import again, charts
from page.parts import Cell, Chart, Head, Row, Table
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
    section.answers = [in_words(one) for one in found if one["total"]]
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


def name_of(one):
    return f"{one.title}, {one.key.get('mode') or one.key.get('part', '')}"


def in_words(one):
    arena = f", of which the arena has {size(one['arena'])}" if one["arena"] else ""
    largest = (
        f"; the largest batch within {size(one['limit_bytes'])} is {one['largest_batch']:.0f}"
        if one["largest_batch"] and one["limit_bytes"]
        else ""
    )
    return f"{name_of(one)}: the plan takes {size(one['total'])}{arena}{largest}."


def used(found):
    """The bytes of each kind, step by step, where there are any."""
    points = []
    for one in found:
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
        .mark_bar(binSpacing=0)
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
            again.found_command("memory", one.key, one.origin.context),
            "",
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
                ]
            )
            for place, step in enumerate(one["steps"])
        ]
    return Table("Bytes in use", ["of", "call", "layers", "pass", "MiB"], rows, numeric=4)
