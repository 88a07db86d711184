"""The section of training curves: accuracy and loss by epoch or by seconds, beside the published runs."""

import collections

from page import charts, published
from page.parts import section

LEAD = (
    "Loss and accuracy of the six known trainings, against epochs or seconds. The grey band spans the published runs "
    "of 2017, on real data: against epochs from the first to the last epoch, against seconds only at the last epoch."
)
CURVES = {
    "loss": ("loss", "training"),
    "accuracy": ("accuracy", "training"),
    "validation_loss": ("loss", "validation"),
    "validation_accuracy": ("accuracy", "validation"),
}


def make(model):
    found = [one for one in model.trainings if records(one)]  # trainings of a race have only seconds, no curves
    posts = bands({one.key["network"] for one in found})
    points = [point for one in found for point in records(one)]
    fill = "lamina_bench train mnist_mlp --benchmark_out=mnist_mlp.json"
    return section("training", "Training curves", "Training", LEAD, fill,
                   charts=[chart(points, posts)] if found else [], notes=list(map(note, found)))


def note(one):
    said = [f"{one.key['network']}, {one.who}: {one.get('label') or 'data not named'}", one.get("optimiser")]
    best = one.get("best_possible")
    if best:
        ends = f"loss {best['loss']:.4f}, accuracy {best['accuracy']:.4f}"
        said.append(f"the best possible classifier of this set: {ends}")
    return f"{'; '.join(filter(None, said))}."


def records(one):
    points, total = [], 0
    for place, (epoch, seconds) in enumerate(zip(one.entries, one.seconds)):
        total += seconds
        number = int(epoch.get("epoch", place)) + 1  # files count from 0
        where = {"workload": one.key["network"], "series": one.who, "epoch": number, "seconds": total, "run": one.rerun}
        for name, (what, part) in CURVES.items():
            if epoch.get(name) is not None:
                points.append(where | {"what": what, "part": part, "value": epoch[name]})
    return points


def bands(workloads):
    """The least and the greatest value of the published runs at the published epochs, the first and the last."""
    values = collections.defaultdict(list)
    for (workload, _), epochs in published.trainings().items():
        for line in epochs if workload in workloads else ():
            for column, what in (("loss", "loss"), ("val_acc", "accuracy")):
                if line[column]:
                    values[workload, what, int(line["epoch"]) + 1].append(float(line[column]))
    end = {(workload, what): epoch for workload, what, epoch in sorted(values)}
    found = []
    for (workload, what, epoch), its in sorted(values.items()):
        where = {"workload": workload, "what": what, "epoch": epoch, "last": epoch == end[workload, what]}
        found.append(where | {"low": min(its), "high": max(its), "runs": len(its)})
    return found


def chart(points, posts):
    x = charts.free("x", "epoch, or seconds of training", {"format": "~g", "tickCount": 8})
    y = charts.free("value", "accuracy, or loss")
    common = {"x": x, "y": y, "color": charts.name("series"), "opacity": charts.lit("training_lit")}
    dash = charts.name("part", legend=None, scale={"domain": ["training", "validation"], "range": [[1, 0], [5, 3]]})
    names = {"series": "machine", "what": "what", "part": "of", "epoch": "epoch"}
    tip = charts.tips(names, seconds="seconds", value=("value", ".4f"))
    shown = ["datum.what == training_y"]
    layers = [*published_bands(posts, shown), charts.layer(points, charts.LINE, shown, strokeDash=dash, **common),
              charts.layer(points, charts.DOT | {"size": 45}, shown, tooltip=tip, detail={"field": "part"}, **common)]
    for its in layers:
        its["transform"].append({"calculate": "datum[training_x]", "as": "x"})
    shows = charts.option("training_y", "Show", ["accuracy", "loss"])
    against = charts.option("training_x", "Against", ["epoch", "seconds"])
    title, says, pick = "Accuracy and loss", "Validation is dashed.", ("Workload", "workload")
    return charts.chart("training", title, says, layers, pick, options=[shows, against])


def published_bands(posts, shown):
    """Bands of the published runs. Their machines differ, so against seconds a band shows only the last epoch."""
    if not posts:
        return []
    look = {"color": "var(--muted)", "opacity": 0.25, "aria": False}
    ends = {"y": charts.number("low", zero=False, nice=False), "y2": {"field": "high"}}
    tip = charts.tips({"runs": "published runs", "epoch": "epoch"}, low="least", high="greatest")
    epochs, whole = [*shown, "training_x == 'epoch'"], [*shown, "training_x == 'seconds' && datum.last"]
    x = charts.number("x")
    return [
        charts.layer(posts, {"type": "area"} | look, epochs, x=x, **ends),
        charts.layer(posts, {"type": "rule", "strokeWidth": 5} | look, epochs, x=x, tooltip=tip, **ends),
        charts.layer(posts, {"type": "rect"} | look, whole, tooltip=tip, **ends),
    ]
