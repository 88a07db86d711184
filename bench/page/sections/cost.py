"""Cost and energy: dollars for a million images or for an epoch, at prices that the reader sets. assets/cost.js ranks."""

import collections

from page import charts, prices, published
from page.parts import section, sentence

PARTS = {"total": "training pass", "inference": "inference"}
MILLION = 10**6
IMAGENET = 1281167  # images of its training set
LEAD = (
    "Costs follow from the seconds and joules of the files and from prices by the hour. Choose a machine and move its price; "
    "its line has the price below which it is the cheapest. Prices change: each is dated."
)
IDLE = "idle_power_w_"  # and the backend: the fact of its device


def make(model):
    measured = [*of_rows(model), *of_trainings(model)]
    found = measured + of_posts({one["what"] for one in measured})
    for one in found:
        one["prices"] = fitting(model.prices, one)
    whats = list(dict.fromkeys(one["what"] for one in found))
    first = [what for what in ("resnet50, training pass", "resnet18, training pass") if what in whats] or whats
    return section(
        "cost",
        "Cost and energy",
        "Cost",
        LEAD,
        "" if measured else "lamina_bench run --backend=eigen --passes=9 --benchmark_out=networks.json",
        charts=[chart()],
        notes=[*([] if any(one["joules"] for one in found) else [no_joules(model)]), *idle(model)],
        data={
            "prices": model.prices,
            "whats": whats,
            "what": first[0],
            "measured": list(dict.fromkeys(one["what"] for one in measured)),
            "imagenet": IMAGENET,
            "energy": any(one["joules"] for one in found),
            "items": found,
        },
    )


def item(what, unit, who, machine, seconds, joules=None, **more):
    """seconds, joules: for a million images, or for an epoch."""
    return {"what": what, "unit": unit, "who": who, "machine": machine, "seconds": seconds, "joules": joules} | more


def of_rows(model):
    """The batch with the least time for an image, of each machine and program."""
    best = {}
    for one in model.of("net"):
        key = (one.key["network"], one.key["part"], one.who)
        if one.key["part"] in PARTS and one.seconds:
            if key not in best or one.median / one.batch < best[key].median / best[key].batch:
                best[key] = one
    for (network, part, who), one in best.items():
        joules = one.reading("joules")
        yield item(
            f"{' '.join(filter(None, (network, one.size)))}, {PARTS[part]}",
            "million images",
            f"{who}, batch {one.batch}",
            one.machine,
            MILLION * one.median / one.batch,
            MILLION * joules / one.batch if joules else None,
            **common(one),
        )


def of_trainings(model):
    """The mean epoch. A part of the samples is not an epoch of the posts."""
    for one in model.trainings:
        share = one.differs.get("synthetic")
        joules = [epoch["joules"] for epoch in one.epochs if epoch.get("joules")]
        yield item(
            f"{one.key['network']}, training" + (f" on {share} of the samples" if share not in (None, "", "1") else ""),
            "epoch",
            one.who,
            one.machine,
            sum(one.seconds) / len(one.seconds),
            sum(joules) / len(joules) if len(joules) == len(one.seconds) else None,
            **common(one),
        )


def common(one):
    watts = one.run.context.get(IDLE + one.key["backend"], "")
    return {"measured": True, "ours": one.run.is_ours, "run": one.rerun, "idle_watts": number(watts)}


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def of_posts(wanted):
    """The published machines, for what is in the files; for every network, where nothing is."""
    found = []
    for one in published.machines():
        for network, times in one["times"].items():
            what = f"{network}, {PARTS['total']}"
            if not wanted or what in wanted:
                seconds = MILLION * 1e-3 * times["total"] / published.BATCH
                found.append(item(what, "million images", one["label"], one["device"], seconds))
    for (workload, platform), epochs in published.trainings().items():
        what = f"{workload}, training"
        if not wanted or what in wanted:
            label, configuration = published.PLATFORMS[platform]
            seconds = sum(float(line["elapsed"]) for line in epochs) / len(epochs)
            found.append(item(what, "epoch", label, label, seconds, configuration=configuration))
    return found


def fitting(listed, one):
    """The places of the prices that are for a machine, the newest first."""
    configuration = one.pop("configuration", None)
    found = [
        place
        for place, price in enumerate(listed)
        if (price["configuration"] == configuration if configuration else prices.fits(price, one["machine"]))
    ]
    return sorted(found, key=lambda place: listed[place]["date"], reverse=True)


def idle(model):
    """What each device takes when it is idle, or why that is not known where its joules are."""
    found = {}
    for run in model.runs:
        for name, text in run.context.items():
            backend = name.removeprefix(IDLE)
            counter = run.context.get(f"energy_{backend}", "")
            if backend != name and not counter.startswith("not available"):
                known = f"{text} W when idle" if number(text) is not None else f"power when idle: {text}"
                said = f"{run.machine(backend)}: {known}{f' ({counter})' if counter else ''}."
                found[said] = sentence(said, run.context.get("command", ""))
    return list(found.values())


def no_joules(model):
    """The reasons that the files have: of a whole run, then of epochs."""
    reasons = [
        reason
        for run in model.runs
        for name, reason in run.context.items()
        if name.startswith("energy_") and reason.startswith("not available")
    ]
    reasons += [epoch.get("joules_missing") for one in model.trainings for epoch in one.epochs]
    said = list(collections.Counter(filter(None, reasons)))[:3]
    return ": ".join(["No joules of whole trainings or passes in these files", *said]) + ". Costs are of hours alone."


def chart():
    """The page's script gives the chart its data, as prices change. Names stand above their bars: on a phone there is no
    room beside them."""
    y = charts.name("who", axis=None, sort={"field": "usd", "op": "min"})
    x = charts.number("usd", "USD", {"tickCount": 6})
    color = charts.name("whose", scale={"domain": ["measured", "published"], "range": ["var(--c1)", "var(--c7)"]})
    tip = charts.tips(who="machine", usd=("USD", ".4~g"), price=("USD/h", ".4~g"))
    text = {"type": "text", "align": "left"}
    shown = {"field": "usd", "type": "quantitative", "format": ".3~g"}
    records = []
    layers = [
        charts.layer(records, text | {"dx": 2, "dy": -7}, x={"value": 0}, y=y, text=charts.name("who")),
        charts.layer(records, text | {"dx": 4, "dy": 9}, x=x, y=y, text=shown),
        charts.layer(
            records, {"type": "bar", "cursor": "pointer", "size": 14, "yOffset": 9}, x=x, y=y, color=color, tooltip=tip
        ),
    ]
    says = "At the prices chosen above; machines without a price are in the table only."
    made = charts.chart("cost", "Ranking", says, layers, legend=None, zoom=False, height=120)
    for its in layers:
        its["data"] = {"name": "ranking"}
    made["spec"]["datasets"] = {"ranking": records}
    return made
