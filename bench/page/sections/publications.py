"""The published tables, whole, joined by network and pass with ours."""

from page import published
from page.parts import between, cell, digits, figure, row, section, table

LEAD = (
    "All that bench/published has. Beside each published line are our forward, backward and total, where the files have them: "
    "of the run and batch with the least total for an image."
)


def make(model):
    ours = fastest(model)
    return section(
        "published",
        "Published tables",
        "Published",
        LEAD,
        tables=[best(ours)],
        folded=[joined(ours), *(plain(name) for name in published.TITLES if name != "published.csv")],
        folded_title="Show the published tables",
    )


def fastest(model):
    """{network: {pass: our row}}: of the run, program and batch with the least time for an image of a training pass."""
    runs = {}
    for one in model.of("net"):
        if one.seconds and one.run.is_ours and not one.size:
            whose = (one.key["network"], one.run, one.who, one.batch, one.differs.get("threads"))
            runs.setdefault(whose, {}).setdefault(one.key["part"], one)
    found = {}
    for (network, *_), parts in sorted(runs.items(), key=lambda its: pace(its[1])):
        found.setdefault(network, parts)
    return found


def pace(parts):
    """By the total; runs without one come last."""
    one = parts.get("total") or next(iter(parts.values()))
    return "total" not in parts, one.median / one.batch


def scale(one):
    return 1e3 * published.BATCH / one.batch


def our_time(one):
    if one is None:
        return ""
    ms = scale(one) * one.median
    return cell(digits(ms), ms, title=f"{one.name}: {between(one.quartiles, scale(one))}")


def speed_up(theirs, one):
    if one is None:
        return ""
    ratio = theirs / (scale(one) * one.median)
    return cell(f"×{digits(ratio)}", ratio)


def joined(ours):
    rows = []
    for line in published.lines("published.csv"):
        mine = ours.get(line["network"], {})
        theirs = {part: float(line[f"{part}_ms"]) for part in published.PASSES}
        cells = [line["source"], line["network"], line["device"], line["cudnn"]]
        cells += [cell(line[f"{part}_ms"], theirs[part]) for part in published.PASSES]
        cells += [our_time(mine.get(part)) for part in published.PASSES]
        cells += [speed_up(theirs[part], mine.get(part)) for part in published.PASSES]
        rows.append(row(cells, mine["total"].rerun if "total" in mine else ""))
    head = ["source", "network", "device", "cuDNN", *(f"{part}, ms" for part in published.PASSES)]
    head += [f"ours, {part}, ms" for part in published.PASSES] + [f"{part} ×" for part in published.PASSES]
    return table(f"{published.TITLES['published.csv']}; ours for 16 images, and its speed-up (×)", head, rows, 4)


def best(ours):
    """The fastest published machine of each network and pass, beside our fastest."""
    rows = []
    for network in published.networks():
        lines = [line for line in published.lines("published.csv") if line["network"] == network]
        for part in published.PASSES:
            line = min(lines, key=lambda one: float(one[f"{part}_ms"]))
            theirs, mine = float(line[f"{part}_ms"]), ours.get(network, {}).get(part)
            if part == "total" or mine:
                cells = [network, part, published.label(line), mine.who if mine else "", figure(theirs)]
                rows.append(row([*cells, our_time(mine), speed_up(theirs, mine)], mine.rerun if mine else ""))
    head = ["network", "pass", "published machine", "our machine", "ms", "ours, ms", "speed-up of ours"]
    return table("The fastest published time of each network and pass, and ours for 16 images", head, rows, 4)


def plain(name):
    lines = published.lines(name)
    return table(published.TITLES[name], list(lines[0]), [row([text or "" for text in one.values()]) for one in lines], 99)
