"""All networks of a sweep in one chart: which share of its best rate each has at each batch."""

import collections

import altair

from page import charts
from page.parts import Chart


def chart(swept):
    """None where no machine has two networks."""
    points = records(swept)
    if max(len({one["series"] for one in points if one["of"] == of}) for of in {one["of"] for one in points}) < 2:
        return None
    return Chart(
        "gains",
        "All networks: images per second, as a share of the best batch",
        "Above the dashed line, at 95 %, a larger batch gains little. Where a line ends, memory or time did.",
        drawn(points),
    )


def records(swept):
    found = []
    for (network, part, who), its in swept.items():
        fitting = {batch: one.per_image for batch, one in sorted(its.items()) if one.seconds}
        best = min(one.middle for one in fitting.values())
        found += [
            {
                "of": f"{who}, {part}",
                "series": network,
                "batch": batch,
                "share": 100 * best / image.middle,
                "low": 100 * best / image.high,
                "high": 100 * best / image.low,
                "run": its[batch].command,
            }
            for batch, image in fitting.items()
        ]
    return found


def drawn(points):
    drawing = charts.Drawing()
    networks = collections.Counter(of for of, _ in {(one["of"], one["series"]) for one in points})
    machines = sorted((one["of"] for one in points), key=lambda of: -networks[of])  # that with the most comes first
    selected, only = charts.choice("gains_of", "Machine", machines, "of")
    series = charts.series(name="gains_series")
    x = charts.batches(points)
    y = altair.Y("share:Q", title="% of the best", scale=altair.Scale(zero=False, nice=False, padding=12))
    color, lit = altair.Color("series:N", title=None, sort=None), charts.chosen(series)
    base = drawing.chart(points).transform_filter(only.filter)
    enough = altair.Chart(drawing.data([{"share": 95}])).mark_rule(strokeDash=[4, 3]).encode(y="share:Q")
    bars = base.mark_rule(strokeWidth=1.5).encode(x=x, y=altair.Y("low:Q"), y2="high:Q", color=color, opacity=lit)
    line = base.mark_line().encode(x=x, y=y, color=color, opacity=lit)
    tip = [
        altair.Tooltip("series:N", title="network"),
        "batch:Q",
        altair.Tooltip("share:Q", title="% of the best", format=".1f"),
        altair.Tooltip("low:Q", title="from", format=".1f"),
        altair.Tooltip("high:Q", title="to", format=".1f"),
    ]
    dots = (
        base.mark_point(filled=True, size=45, opacity=1, cursor="pointer")
        .encode(x=x, y=y, color=color, opacity=lit, tooltip=tip)
        .add_params(charts.zoom("gains_zoom"))
    )
    whole = (
        altair.layer(enough, line, bars, dots)
        .add_params(selected, series)
        .properties(width="container", height=charts.HEIGHT)
    )
    return drawing.spec(whole, "Images per second as a share of the best, against the batch; a line for each network.")
