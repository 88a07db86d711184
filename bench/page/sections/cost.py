"""The section of cost: dollars for a million images or an epoch. assets/cost.js computes them from the prices."""

from page import charts, prices, published
from page.parts import section
from page.sections import networks

PARTS = {"total": "training pass", "inference": "inference"}
MILLION = 10**6
LEAD = (
    "Cost is the time in the files times a price by the hour. Choose a machine and move its price. The machine's line "
    "has the price below which it is the cheapest. Prices change, so each has its date."
)


def make(model):
    measured = [*network_items(model), *training_items(model)]
    found = measured and measured + list(published_items({one["what"] for one in measured}))
    for one in found:
        one["prices"] = fitting(model.prices, one)
    whats = sorted(dict.fromkeys(one["what"] for one in found), key=lambda what: what != "resnet50, training pass")
    data = {"prices": model.prices, "whats": whats, "items": found}
    return section("cost", "Cost", "Cost", LEAD, networks.FILL, charts=[chart()] if found else [], data=data)


def network_items(model):
    """An item for each network, pass, machine and program, at the batch with the least time for an image."""
    best = {}
    for one in model.rows_of("net"):
        key = (one.key["network"], one.key["part"], one.who)
        if one.key["part"] in PARTS and one.seconds:
            if key not in best or one.median / one.batch < best[key].median / best[key].batch:
                best[key] = one
    for (network, part, who), one in best.items():
        what = f"{' '.join(filter(None, (network, one.size)))}, {PARTS[part]}"
        about = {"what": what, "unit": "million images", "who": f"{who}, batch {one.batch}"} | common(one)
        images = MILLION / one.batch
        yield about | {"seconds": images * one.median}


def training_items(model):
    """An item for each training, with its mean epoch. The item's name says if only a share of the samples was used."""
    for one in model.trainings:
        share, count = one.differs.get("synthetic"), len(one.seconds)
        what = f"{one.key['network']}, training"
        what += f" on {share} of the samples" if share not in (None, "", "1") else ""
        yield {"what": what, "unit": "epoch", "who": one.who, "seconds": sum(one.seconds) / count} | common(one)


def common(one):
    return {"machine": one.machine, "measured": True, "ours": one.run.is_ours, "run": one.rerun}


def published_items(wanted):
    """The items of published machines, for the networks and trainings that the files have."""
    for one in published.machines():
        for network, times in one["times"].items():
            what = f"{network}, {PARTS['total']}"
            if what in wanted:
                about = {"what": what, "unit": "million images", "who": one["label"], "machine": one["device"]}
                yield about | {"seconds": MILLION * 1e-3 * times["total"] / published.BATCH}
    for (workload, platform), epochs in published.trainings().items():
        what = f"{workload}, training"
        if what in wanted:
            label, configuration = published.PLATFORMS[platform]
            about = {"what": what, "unit": "epoch", "who": label, "machine": label, "configuration": configuration}
            yield about | {"seconds": sum(float(line["elapsed"]) for line in epochs) / len(epochs)}


def fitting(listed, one):
    """The places in `listed` of the prices for a machine, the newest first."""
    known = one.get("configuration")
    fits = lambda price: price["configuration"] == known if known else prices.fits(price, one["machine"])
    return sorted((i for i, price in enumerate(listed) if fits(price)), key=lambda i: listed[i]["date"], reverse=True)


def chart():
    """The chart without data. The page's script fills it, and fills it again after each change of a price."""
    # Names stand above the bars, because a phone has no room beside the bars.
    x = charts.number("usd", "USD", {"tickCount": 6})
    y = charts.name("who", axis=None, sort={"field": "usd", "op": "min"})
    color = charts.name("whose", scale={"domain": ["measured", "published"], "range": ["var(--c1)", "var(--c7)"]})
    tip = charts.tips({"who": "machine"}, usd="USD", price="USD/h")
    text = {"type": "text", "align": "left"}
    bar = {"type": "bar", "cursor": "pointer", "size": 14, "yOffset": 9}
    points = []
    layers = [
        charts.layer(points, text | {"dx": 2, "dy": -7}, x={"value": 0}, y=y, text=charts.name("who")),
        charts.layer(points, text | {"dx": 4, "dy": 9}, x=x, y=y, text=charts.name("said")),
        charts.layer(points, bar, x=x, y=y, color=color, tooltip=tip),
    ]
    says = "At the prices chosen above. Published machines without a price are in the table only."
    return charts.chart("cost", "Ranking", says, layers, legend=None, zoom=False)
