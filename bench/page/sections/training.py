"""Training curves: accuracy and loss by epoch and by seconds, with what was published."""

import altair

from page import charts, published, training_command
from page.parts import Cell, Chart, Head, Row, Sentence, Table
from page.sections import turns
from page.text import digits


HEAD = Head(
    "training",
    "Training curves",
    "Training",
    "Loss and accuracy of the six known trainings, against epochs or seconds. The grey band is from the least to the "
    "greatest of the published runs of 2017, on real data: their first and last epochs, joined; against seconds, where "
    "they ended.",
    "lamina_bench train mnist_mlp --benchmark_out=mnist_mlp.json",
)


def make(model):
    found = [one for one in model.trainings if records([one])]  # those of a race have seconds alone
    section = HEAD.section(found)
    if not found:
        return section
    section.charts = [Chart("training", "Accuracy and loss", "Validation is dashed.", drawn(found), table(found))]
    section.notes = [note(one) for one in found if not one.origin.in_turns]
    in_turns = turns.pairs(model.trainings)
    section.tables = [turns.table(in_turns)] if in_turns else []
    section.answers = turns.answers(in_turns)
    section.answers += [Sentence(last(one), training_command.of(one)) for one in found if not one.origin.in_turns]
    section.notes += [ended(one) for one in bands({its.key["network"] for its in found}) if one["last"]]
    return section


def ended(one):
    return (
        f"Published, {one['workload']}, after {one['epoch']} epochs: "
        f"{'validation accuracy' if one['what'] == 'accuracy' else 'loss'} {one['low']:.4f} to {one['high']:.4f} "
        f"in {one['runs']} runs."
    )


def last(one):
    """Where a training ended, and how long it took."""
    epochs = one["epochs"]
    known = [
        f"{what} {epochs[-1][name]:.4f}"
        for name, what in (("validation_accuracy", "validation accuracy"), ("accuracy", "accuracy"), ("loss", "loss"))
        if epochs[-1][name] is not None
    ]
    seconds = sum(epoch["seconds"] for epoch in epochs)
    return (
        f"{one.key['network']}, {one.who}: {', '.join(known)} after {len(epochs)} epoch{'s' * (len(epochs) > 1)}, "
        f"{digits(seconds)} s."
    )


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


def bands(workloads):
    """From the least to the greatest of the published runs, at the epochs that were published: the first and the last."""
    values = {}
    for (workload, _), epochs in published.trainings().items():
        for line in epochs if workload in workloads else ():
            for column, what in (("loss", "loss"), ("val_acc", "accuracy")):
                if line[column]:
                    values.setdefault((workload, what, int(line["epoch"]) + 1), []).append(float(line[column]))
    last = {}
    for workload, what, epoch in values:
        last[workload, what] = max(epoch, last.get((workload, what), 0))
    return [
        {
            "workload": workload,
            "what": what,
            "epoch": epoch,
            "low": min(its),
            "high": max(its),
            "runs": len(its),
            "last": epoch == last[workload, what],
        }
        for (workload, what, epoch), its in sorted(values.items())
    ]


def drawn(found):
    drawing = charts.Drawing()
    points = records(found)
    posts = bands({one["workload"] for one in points})
    selected, only = charts.choice("training_of", "Workload", [one["workload"] for one in points], "workload")
    against = altair.param(
        name="training_x", value="epoch", bind=altair.binding_select(options=["epoch", "seconds"], name="Against ")
    )
    which = altair.param(
        name="training_y", value="accuracy", bind=altair.binding_select(options=["accuracy", "loss"], name="Show ")
    )
    series = charts.series(name="training_series")
    lit = charts.chosen(series)
    x = altair.X(
        "x:Q",
        title="epoch, or seconds of training",
        scale=altair.Scale(zero=False, nice=False, padding=12),
        axis=altair.Axis(format="~g", tickCount=8),
    )
    y = altair.Y("value:Q", title="accuracy, or loss", scale=altair.Scale(zero=False, nice=False, padding=12))
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
            drawing.chart(values)
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
    layers = [*published_bands(base(posts)), line, dots] if posts else [line, dots]
    whole = (
        altair.layer(*layers)
        .add_params(selected, which, against, series, charts.zoom("training_zoom"))
        .properties(width="container", height=charts.HEIGHT)
    )
    return drawing.spec(whole, "Accuracy or loss of each training against epochs or seconds.")


def published_bands(base):
    """Against epochs from the first to the last; against seconds, which were other machines', where the runs ended."""
    look = {"color": "var(--muted)", "opacity": 0.25, "aria": False}  # one of the two is empty; the notes have the numbers
    low, high = altair.Y("low:Q", scale=altair.Scale(zero=False, nice=False)), altair.Y2("high:Q")
    tip = [
        altair.Tooltip("runs:Q", title="published runs"),
        "epoch:Q",
        altair.Tooltip("low:Q", title="least", format=".4f"),
        altair.Tooltip("high:Q", title="greatest", format=".4f"),
    ]
    by_epoch = base.transform_filter("training_x == 'epoch'")
    ends = by_epoch.mark_rule(strokeWidth=5, color="var(--muted)", aria=False).encode(x="x:Q", y=low, y2=high, tooltip=tip)
    whole = base.transform_filter("training_x == 'seconds' && datum.last").mark_rect(**look)
    return [
        by_epoch.mark_area(**look).encode(x="x:Q", y=low, y2=high),
        ends,
        whole.encode(y=low, y2=high, tooltip=tip),
    ]


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
