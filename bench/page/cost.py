"""What images and epochs cost: seconds and joules of the files, times prices by the hour that are chosen now."""

import dataclasses

from page import measured, prices, published, training_command
from page.text import digits

PARTS = {"total": "training pass", "inference": "inference"}
MILLION = 10**6
IMAGENET = 1281167  # images of its training set


@dataclasses.dataclass
class Item:
    """A machine that does something. `seconds` and `joules`: for a million images, or for an epoch."""

    what: str
    unit: str
    who: str
    machine: str
    seconds: float
    low: float
    high: float
    joules: float
    ours: bool
    run: str = ""
    lamina: bool = False
    configuration: str = ""  # its line of the published prices, where that is known
    idle_watts: float = None  # of its device


def items(model):
    found = [*of_rows(model), *of_trainings(model)]
    return found + of_posts({one.what for one in found})


def of_rows(model):
    """Of each machine and program the batch with the least time for an image."""
    best = {}
    for one in model.of("net"):
        key = (one.key["network"], one.key["part"], one.who)
        if (
            one.key["part"] in PARTS
            and one.seconds
            and (key not in best or one.per_image.middle < best[key].per_image.middle)
        ):
            best[key] = one
    for (network, part, who), one in best.items():
        low, middle, high = (MILLION * end for end in one.per_image)
        joules = one.joules_per_image
        yield Item(
            f"{' '.join(filter(None, (network, one.size)))}, {PARTS[part]}",
            "million images",
            f"{who}, batch {one.key['batch']}",
            one.origin.machine(one.key["backend"]),
            middle,
            low,
            high,
            MILLION * joules if joules else None,
            True,
            one.command,
            one.is_lamina,
            idle_watts=one.origin.idle_watts(one.key["backend"]),
        )


def of_trainings(model):
    for one in model.trainings:
        epochs = one["epochs"]
        if epochs:
            seconds = [epoch["seconds"] for epoch in epochs]
            joules = [epoch["joules"] for epoch in epochs if epoch["joules"]]
            yield Item(
                trained(one),
                "epoch",
                one.who,
                one.origin.machine(one.key["backend"]),
                sum(seconds) / len(seconds),
                min(seconds),
                max(seconds),
                sum(joules) / len(joules) if len(joules) == len(epochs) else None,
                True,
                training_command.of(one),
                one.key["backend"] in measured.OURS,
                idle_watts=one.origin.idle_watts(one.key["backend"]),
            )


def trained(training):
    """A part of the samples is not an epoch of the posts."""
    share = training.key.get("differs", {}).get("synthetic")
    return f"{training.key['network']}, training" + (
        f" on {share} of the samples" if share not in (None, "", "1") else ""
    )


def of_posts(wanted):
    """The published machines, for what is in the files; for every network, where nothing is."""
    found = []
    for machine in published.machines():
        for network, times in machine.milliseconds.items():
            what = f"{network}, {PARTS['total']}"
            if not wanted or what in wanted:
                seconds = MILLION * 1e-3 * times["total"] / published.BATCH
                found.append(
                    Item(what, "million images", machine.label, machine.device, seconds, seconds, seconds, None, False)
                )
    for (workload, platform), epochs in published.trainings().items():
        what = f"{workload}, training"
        if what in wanted or not wanted:
            seconds = [float(line["elapsed"]) for line in epochs]
            label, configuration = published.PLATFORMS[platform]
            found.append(
                Item(
                    what,
                    "epoch",
                    label,
                    label,
                    sum(seconds) / len(seconds),
                    min(seconds),
                    max(seconds),
                    None,
                    False,
                    configuration=configuration,
                )
            )
    return found


def fitting(listed, item):
    """The prices that are for a machine, best first: the places in the list."""
    if item.configuration:
        found = [place for place, price in enumerate(listed) if price.configuration == item.configuration]
    else:
        found = [place for place, price in enumerate(listed) if prices.fits(price, item.machine)]
    return sorted(found, key=lambda place: listed[place].date, reverse=True)


def usd(item, usd_per_hour, usd_per_kwh=0):
    return item.seconds / 3600 * usd_per_hour + (item.joules or 0) / 3.6e6 * usd_per_kwh


def ranking(model, listed=None):
    """{what: [(item, price or None, dollars or None, break-even price or None)]}, the cheapest first. `listed`: the
    prices that count, if not all of the model's."""
    found, listed = {}, listed or model.prices
    for item in items(model):
        places = fitting(listed, item)
        regular = [place for place in places if not listed[place].preemptible] or places
        price = listed[regular[0]] if regular else None
        found.setdefault(item.what, []).append([item, price, usd(item, price.usd_per_hour) if price else None, None])
    for its in found.values():
        for line in its:
            others = [other[2] for other in its if other[2] is not None and other[0].machine != line[0].machine]
            line[3] = min(others) / (line[0].seconds / 3600) if others else None
        its.sort(key=lambda line: (line[2] is None, line[2] if line[2] is not None else line[0].seconds))
    return found


def by_file(model):
    """{file of prices: the ranking by its prices}."""
    files = {}
    for price in model.prices:
        files.setdefault(price.file, []).append(price)
    return {file: ranking(model, listed) for file, listed in files.items()}


def texts(model):
    """The ranking for a terminal, for each file of prices."""
    rankings = by_file(model)
    return "".join(
        (f"Prices of {file}\n\n" if len(rankings) > 1 else "") + text(its) for file, its in rankings.items()
    )


def text(found):
    """A ranking: ours, and whoever has a price."""
    lines = []
    for what, its in found.items():
        if not any(item.ours for item, *_ in its):
            continue
        unit = its[0][0].unit
        rows = [("machine", f"USD / {unit}", "hours", "USD/h", "price of", "wins below USD/h")]
        for item, price, dollars, even in its:
            if item.ours or price:
                rows.append(
                    (
                        item.who,
                        digits(dollars) if dollars is not None else "no price",
                        digits(item.seconds / 3600),
                        f"{price.usd_per_hour:g}" if price else "",
                        f"{price.date}{', ' + price.note if price.note else ''}" if price else "",
                        digits(even) if even is not None else "",
                    )
                )
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines += [
            what,
            *(
                "  ".join(
                    cell.ljust(width) if i in (0, 4) else cell.rjust(width)
                    for i, (cell, width) in enumerate(zip(row, widths))
                ).rstrip()
                for row in rows
            ),
            "",
        ]
    if not lines:
        return "No times of networks or trainings in these files.\n"
    if not any(item.ours and price for its in found.values() for item, price, *_ in its):
        lines.append(
            "None of the prices is for a machine of these files; --prices FILE has others (docs/report.md, Cost).\n"
        )
    return "\n".join(lines)
