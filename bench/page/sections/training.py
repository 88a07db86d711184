"""Training curves: accuracy and loss by epoch and by seconds, with what was published."""

import collections

from page import charts, published
from page.parts import cell, digits, figure, row, section, sentence, table

LEAD = (
    "Loss and accuracy of the six known trainings, against epochs or seconds. The grey band is from the least to the greatest "
    "of the published runs of 2017, on real data: their first and last epochs, joined; against seconds, where they ended."
)
CURVES = {
    "loss": ("loss", "training"),
    "accuracy": ("accuracy", "training"),
    "validation_loss": ("loss", "validation"),
    "validation_accuracy": ("accuracy", "validation"),
}


def make(model):
    found = [one for one in model.trainings if records(one)]  # trainings of a race have seconds alone
    posts = bands({one.key["network"] for one in found})
    return section(
        "training",
        "Training curves",
        "Training",
        LEAD,
        "" if found else "lamina_bench train mnist_mlp --benchmark_out=mnist_mlp.json",
        charts=[chart([point for one in found for point in records(one)], posts, by_epoch(found))] if found else [],
        notes=[*map(note, found), *(ended(one) for one in posts if one["last"])],
        answers=[sentence(last(one), one.rerun) for one in found],
    )


def ended(one):
    what = "validation accuracy" if one["what"] == "accuracy" else "loss"
    return (
        f"Published, {one['workload']}, after {one['epoch']} epochs: {what} {one['low']:.4f} to {one['high']:.4f} in "
        f"{one['runs']} runs."
    )


def last(one):
    """Where a training ended, and how long it took."""
    epoch, count = one.epochs[-1], len(one.epochs)
    names = {"validation_accuracy": "validation accuracy", "accuracy": "accuracy", "loss": "loss"}
    known = [f"{what} {epoch[name]:.4f}" for name, what in names.items() if epoch.get(name) is not None]
    text = f"{one.key['network']}, {one.who}: {', '.join(known)} after {count} epoch{'s' * (count > 1)}"
    return f"{text}, {digits(sum(one.seconds))} s."


def note(one):
    text = f"{one.key['network']}, {one.who}: {one.get('label') or 'data not named'}"
    text += f"; {one['optimiser']}" if one.get("optimiser") else ""
    best = one.get("best_possible")
    if best:
        found = f"loss {best['loss']:.4f}, accuracy {best['accuracy']:.4f}"
        text += f"; the best possible classifier of this set: {found}"
    return f"{text}."


def records(one):
    points, seconds = [], 0
    for number, (epoch, its_seconds) in enumerate(zip(one.epochs, one.seconds), 1):
        seconds += its_seconds
        for name, (what, part) in CURVES.items():
            if epoch.get(name) is not None:
                points.append(
                    {
                        "workload": one.key["network"],
                        "series": one.who,
                        "epoch": number_of(epoch, number),
                        "seconds": seconds,
                        "what": what,
                        "value": epoch[name],
                        "part": part,
                        "run": one.rerun,
                    }
                )
    return points


def number_of(epoch, place):
    """Epochs are counted from 0 in files, and from 1 here."""
    return int(epoch["epoch"]) + 1 if epoch.get("epoch") is not None else place


def bands(workloads):
    """The least and the greatest of the published runs, at the epochs that were published: the first and the last."""
    values = collections.defaultdict(list)
    for (workload, _), epochs in published.trainings().items():
        for line in epochs if workload in workloads else ():
            for column, what in (("loss", "loss"), ("val_acc", "accuracy")):
                if line[column]:
                    values[workload, what, int(line["epoch"]) + 1].append(float(line[column]))
    end = {(workload, what): epoch for workload, what, epoch in sorted(values)}
    return [
        {
            "workload": workload,
            "what": what,
            "epoch": epoch,
            "low": min(its),
            "high": max(its),
            "runs": len(its),
            "last": epoch == end[workload, what],
        }
        for (workload, what, epoch), its in sorted(values.items())
    ]


def chart(points, posts, its_table):
    axis = {"format": "~g", "tickCount": 8}
    x = charts.free("x", "epoch, or seconds of training", axis)
    y = charts.free("value", "accuracy, or loss")
    common = {"x": x, "y": y, "color": charts.name("series"), "opacity": charts.lit("training_lit")}
    dash = {"domain": ["training", "validation"], "range": [[1, 0], [5, 3]]}
    tip = charts.tips(series="machine", part="part", epoch="epoch", seconds=("seconds", ".4~g"), value=("value", ".4f"))
    shown = ["datum.what == training_y"]
    layers = [
        *published_bands(posts, shown),
        charts.layer(points, charts.LINE, shown, strokeDash=charts.name("part", legend=None, scale=dash), **common),
        charts.layer(points, charts.DOT | {"size": 45}, shown, tooltip=tip, detail={"field": "part"}, **common),
    ]
    for its in layers:
        its["transform"].append({"calculate": "datum[training_x]", "as": "x"})
    options = [
        charts.option("training_y", "Show", ["accuracy", "loss"]),
        charts.option("training_x", "Against", ["epoch", "seconds"]),
    ]
    pick = ("Workload", "workload")
    return charts.chart(
        "training", "Accuracy and loss", "Validation is dashed.", layers, pick, options=options, table=its_table
    )


def published_bands(posts, shown):
    """Against epochs from the first to the last; against seconds, which were other machines', where the runs ended."""
    if not posts:
        return []
    look = {"color": "var(--muted)", "opacity": 0.25, "aria": False}  # one of the two is empty; the notes have the numbers
    ends = {"y": charts.number("low", zero=False, nice=False), "y2": {"field": "high"}}
    tip = charts.tips(runs="published runs", epoch="epoch", low=("least", ".4f"), high=("greatest", ".4f"))
    epochs, whole = [*shown, "training_x == 'epoch'"], [*shown, "training_x == 'seconds' && datum.last"]
    x = charts.number("x")
    return [
        charts.layer(posts, {"type": "area"} | look, epochs, x=x, **ends),
        charts.layer(posts, {"type": "rule", "strokeWidth": 5} | look, epochs, x=x, tooltip=tip, **ends),
        charts.layer(posts, {"type": "rect"} | look, whole, tooltip=tip, **ends),
    ]


def by_epoch(found):
    rows = []
    for one in found:
        for place, (epoch, seconds) in enumerate(zip(one.epochs, one.seconds), 1):
            values = [epoch.get(name) for name in CURVES]
            number = number_of(epoch, place)
            cells = [one.key["network"], one.who, cell(str(number), number), figure(seconds)]
            cells += ["" if value is None else cell(f"{value:.4f}", value) for value in values]
            rows.append(row(cells, one.rerun))
    head = ["workload", "machine", "epoch", "seconds", "loss", "accuracy", "validation loss", "validation accuracy"]
    return table("Epochs", head, rows, 2)
