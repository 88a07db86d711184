"""The published tables, whole, joined by network and pass with ours."""

from page import published
from page.parts import Cell, Row, Section, Table
from page.text import between, digits


def make(model):
    section = Section("published", "Published tables", short="Published")
    section.lead = (
        "All that bench/published has. Beside each published line are our forward, backward and total, where the files "
        "have them: of the run and batch with the least total for an image."
    )
    section.folded = [joined(model), *(plain(name) for name in published.TITLES if name != "published.csv")]
    section.folded_title = "Show the published tables"
    section.tables = [best(model)]
    return section


def fastest(model):
    """{network: {pass: our row}}: of the run, program and batch with the least time for an image of a training pass."""
    runs = {}
    for one in model.of("net"):
        if one.seconds and one.is_lamina and not one.size:
            whose = (one.key["network"], one.origin, one.who, one.key["batch"], str(one.key.get("differs")))
            runs.setdefault(whose, {}).setdefault(one.key["part"], one)
    found = {}
    for (network, *_), parts in runs.items():
        if network not in found or pace(parts) < pace(found[network]):
            found[network] = parts
    return found


def pace(parts):
    """By the total; runs without one come last."""
    one = parts.get("total") or next(iter(parts.values()))
    return "total" not in parts, one.per_image.middle


def ours_ms(timing):
    return 1e3 * published.BATCH * timing.per_image.middle


def joined(model):
    ours, rows = fastest(model), []
    for line in published.lines("published.csv"):
        mine = ours.get(line["network"], {})
        theirs = {part: float(line[f"{part}_ms"]) for part in published.PASSES}
        cells = [line["source"], line["network"], line["device"], line["cudnn"]]
        cells += [Cell(line[f"{part}_ms"], theirs[part]) for part in published.PASSES]
        cells += [our_time(mine.get(part)) for part in published.PASSES]
        cells += [speed_up(theirs[part], mine.get(part)) for part in published.PASSES]
        rows.append(Row(cells, mine["total"].command if "total" in mine else ""))
    head = ["source", "network", "device", "cuDNN", *(f"{part}, ms" for part in published.PASSES)]
    head += [f"ours, {part}, ms" for part in published.PASSES] + [f"{part} ×" for part in published.PASSES]
    caption = f"{published.TITLES['published.csv']}; ours for 16 images, and its speed-up (×)"
    return Table(caption, head, rows, numeric=4)


def our_time(timing):
    if timing is None:
        return ""
    ends = timing.per_image
    return Cell(
        digits(ours_ms(timing)),
        ours_ms(timing),
        title=f"{timing.name}: {between(ends, 1e3 * published.BATCH)}",
    )


def speed_up(theirs, timing):
    if timing is None:
        return ""
    ratio = theirs / ours_ms(timing)
    return Cell(f"×{digits(ratio)}", ratio)


def best(model):
    """The fastest published machine of each network and pass, beside our fastest."""
    ours, rows = fastest(model), []
    for network in published.networks():
        lines = [line for line in published.lines("published.csv") if line["network"] == network]
        for part in published.PASSES:
            line = min(lines, key=lambda one: float(one[f"{part}_ms"]))
            theirs, mine = float(line[f"{part}_ms"]), ours.get(network, {}).get(part)
            if part == "total" or mine:
                rows.append(
                    Row(
                        [
                            network,
                            part,
                            f"{line['device']}, {published.with_kernels(line['cudnn'])}",
                            mine.who if mine else "",
                            Cell(digits(theirs), theirs),
                            our_time(mine),
                            speed_up(theirs, mine),
                        ],
                        mine.command if mine else "",
                    )
                )
    return Table(
        "The fastest published time of each network and pass, and ours for 16 images",
        ["network", "pass", "published machine", "our machine", "ms", "ours, ms", "speed-up of ours"],
        rows,
        numeric=4,
    )


def plain(name):
    lines = published.lines(name)
    head = list(lines[0])
    return Table(
        published.TITLES[name], head, [Row([value or "" for value in line.values()]) for line in lines], numeric=99
    )
