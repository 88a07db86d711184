"""Training curves: accuracy and loss by epoch and by seconds, with what was published."""

import altair

from page import charts, published, training_command
from page.parts import Cell, Chart, Row, Section, Table
from page.text import digits


def make(model):
    found = [one for one in model.trainings if records([one])]  # those of a race have seconds alone
    section = Section(
        "training",
        "Training curves",
        short="Training",
        fill="" if found else "lamina_bench train mnist_mlp --benchmark_out=mnist_mlp.json",
    )
    if not found:
        return section
    section.lead = (
        "Loss and accuracy of the six known trainings, against epochs or seconds. Crosses are the published runs of "
        "2017, on real data."
    )
    section.charts = [Chart("training", "Accuracy and loss", "Validation is dashed.", drawn(found), table(found))]
    section.notes = [note(one) for one in found]
    return section


def note(one):
    best = one.get("best_possible")
    return (
        f"{one.key['network']}, {one.who}: {one['data'] or 'data not named'}"
        + (f"; {one['optimiser']}" if one.get("optimiser") else "")
        + (
            f"; the best possible classifier of this set: loss {best['loss']:.4f}, accuracy {best['accuracy']:.4f}"
            if best
            else ""
        )
        + "."
    )


def name_of(one):
    return one.who


def records(found):
    points = []
    for one in found:
        seconds, run = 0, training_command.of(one)
        for epoch in one["epochs"]:
            seconds += epoch["seconds"]
            for name, what, part in (
                ("loss", "loss", "training"),
                ("accuracy", "accuracy", "training"),
                ("validation_loss", "loss", "validation"),
                ("validation_accuracy", "accuracy", "validation"),
            ):
                if epoch[name] is not None:
                    points.append(
                        {
                            "workload": one.key["network"],
                            "series": name_of(one),
                            "epoch": epoch["epoch"],
                            "seconds": seconds,
                            "what": what,
                            "value": epoch[name],
                            "part": part,
                            "run": run,
                        }
                    )
    return points


def of_posts(workloads):
    """The published epochs that have a loss or an accuracy: the first and the last."""
    points = []
    for (workload, platform), epochs in published.trainings().items():
        seconds = 0
        for line in epochs if workload in workloads else ():
            seconds += float(line["elapsed"])
            for column, what, part in (("loss", "loss", "training"), ("val_acc", "accuracy", "validation")):
                if line[column]:
                    points.append(
                        {
                            "workload": workload,
                            "series": published.PLATFORMS[platform][0],
                            "epoch": int(line["epoch"]) + 1,
                            "seconds": seconds,
                            "what": what,
                            "value": float(line[column]),
                            "part": part,
                        }
                    )
    return points


def drawn(found):
    points = records(found)
    posts = of_posts({one["workload"] for one in points})
    selected, only = charts.choice("training_of", "Workload", [one["workload"] for one in points], "workload")
    against = altair.param(
        name="training_x", value="epoch", bind=altair.binding_select(options=["epoch", "seconds"], name="Against ")
    )
    which = altair.param(
        name="training_y", value="accuracy", bind=altair.binding_select(options=["accuracy", "loss"], name="Show ")
    )
    series = charts.series(name="training_series")
    lit = charts.chosen(series)
    x = altair.X("x:Q", title="epoch, or seconds of training", scale=altair.Scale(zero=False, padding=12))
    y = altair.Y("value:Q", title="accuracy, or loss", scale=altair.Scale(zero=False, padding=12))
    color = altair.Color("series:N", title=None)
    tip = [
        altair.Tooltip("series:N", title="machine"),
        "part:N",
        "epoch:Q",
        altair.Tooltip("seconds:Q", format=".4~g"),
        altair.Tooltip("value:Q", title="value", format=".4f"),
    ]

    def base(values):
        return (
            charts.chart(values)
            .transform_filter(only.filter)
            .transform_filter("datum.what == training_y")
            .transform_calculate(x="datum[training_x]")
        )

    line = (
        base(points)
        .mark_line()
        .encode(
            x=x,
            y=y,
            color=color,
            opacity=lit,
            strokeDash=altair.StrokeDash(
                "part:N", legend=None, scale=altair.Scale(domain=["training", "validation"], range=[[1, 0], [5, 3]])
            ),
        )
    )
    dots = (
        base(points)
        .mark_point(filled=True, size=45, opacity=1, cursor="pointer")
        .encode(x=x, y=y, color=color, opacity=lit, tooltip=tip, detail="part:N")
    )
    layers = [line, dots]
    if posts:
        layers.append(
            base(posts)
            .mark_point(shape="cross", size=80, filled=True, opacity=1)
            .encode(x=x, y=y, color=color, opacity=lit, tooltip=tip)
        )
    whole = (
        altair.layer(*layers)
        .add_params(selected, which, against, series, charts.zoom("training_zoom"))
        .properties(width="container", height=charts.HEIGHT)
    )
    return charts.spec(whole, "Accuracy or loss of each training against epochs or seconds.")


def table(found):
    rows = []
    for one in found:
        for epoch in one["epochs"]:
            values = [
                Cell(f"{epoch[name]:.4f}", epoch[name]) if epoch[name] is not None else ""
                for name in ("loss", "accuracy", "validation_loss", "validation_accuracy")
            ]
            rows.append(
                Row(
                    [
                        one.key["network"],
                        name_of(one),
                        Cell(str(epoch["epoch"]), epoch["epoch"]),
                        Cell(digits(epoch["seconds"]), epoch["seconds"]),
                        *values,
                    ],
                    training_command.of(one),
                )
            )
    return Table(
        "Epochs",
        ["workload", "machine", "epoch", "seconds", "loss", "accuracy", "validation loss", "validation accuracy"],
        rows,
        numeric=2,
    )
