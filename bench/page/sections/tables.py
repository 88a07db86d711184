"""The published tables, whole, joined by network and pass with ours."""

from page import published
from page.parts import Cell, Row, Section, Table
from page.text import digits


def make(model):
    section = Section("published", "Published tables", short="Published")
    section.lead = (
        "All that bench/published has. Our fastest total time of the network is beside each published one, where the "
        "files have it."
    )
    section.folded = [joined(model), *(plain(name) for name in published.TITLES if name != "published.csv")]
    section.folded_title = "Show the published tables"
    section.tables = [best(model)]
    return section


def fastest(model):
    """{(network, pass): our fastest row, per 16 images}."""
    found = {}
    for one in model.of("net"):
        place = (one.key["network"], one.key["part"])
        if (
            one.seconds
            and one.is_lamina
            and not one.size
            and (place not in found or one.per_image.middle < found[place].per_image.middle)
        ):
            found[place] = one
    return found


def ours_ms(timing):
    return 1e3 * published.BATCH * timing.per_image.middle


def joined(model):
    ours, rows = fastest(model), []
    for line in published.lines("published.csv"):
        cells = [line["source"], line["network"], line["device"], line["cudnn"]]
        for part in published.PASSES:
            cells.append(Cell(line[f"{part}_ms"], float(line[f"{part}_ms"])))
        mine = ours.get((line["network"], "total"))
        cells += (
            [
                Cell(digits(ours_ms(mine)), ours_ms(mine)),
                Cell(f"×{digits(float(line['total_ms']) / ours_ms(mine))}", float(line["total_ms"]) / ours_ms(mine)),
            ]
            if mine
            else ["", ""]
        )
        rows.append(Row(cells, mine.command if mine else ""))
    return Table(
        published.TITLES["published.csv"],
        [
            "source",
            "network",
            "device",
            "cuDNN",
            "forward, ms",
            "backward, ms",
            "total, ms",
            "ours, total, ms",
            "speed-up of ours",
        ],
        rows,
        numeric=4,
    )


def best(model):
    """The fastest published machine of each network and pass, beside our fastest."""
    ours, rows = fastest(model), []
    for network in published.networks():
        for part in published.PASSES:
            lines = [line for line in published.lines("published.csv") if line["network"] == network]
            line = min(lines, key=lambda one: float(one[f"{part}_ms"]))
            theirs, mine = float(line[f"{part}_ms"]), ours.get((network, part))
            if part == "total" or mine:
                rows.append(
                    Row(
                        [
                            network,
                            part,
                            f"{line['device']}, {published.with_kernels(line['cudnn'])}",
                            Cell(digits(theirs), theirs),
                            Cell(digits(ours_ms(mine)), ours_ms(mine), title=mine.name) if mine else "",
                            mine.who if mine else "",
                            Cell(f"×{digits(theirs / ours_ms(mine))}", theirs / ours_ms(mine)) if mine else "",
                        ],
                        mine.command if mine else "",
                    )
                )
    rows = [row for row in rows if row.cells[1] == "total"] if len(rows) > 30 else rows
    return Table(
        "The fastest published time of each network, and ours for 16 images",
        ["network", "pass", "published machine", "ms", "ours, ms", "our machine", "speed-up of ours"],
        rows,
        numeric=3,
    )


def plain(name):
    lines = published.lines(name)
    head = list(lines[0])
    return Table(
        published.TITLES[name], head, [Row([value or "" for value in line.values()]) for line in lines], numeric=99
    )
