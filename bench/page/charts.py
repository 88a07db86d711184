"""Vega-Lite charts as plain dictionaries. assets/charts.js sets the colours."""

# Kinds of layers. A kind has the same colour in every chart: one of the page's eight colours, or a tint of one.
KINDS = """conv fully_connected batch_norm max_pool lrn lstm relu add
global_average_pool dropout softmax embedding average_pool concat multiply clip
softmax_cross_entropy sigmoid_cross_entropy sigmoid tanh hard_sigmoid hard_swish silu slice
pad channel_shuffle resize conv_transpose""".split()
COLORS = [f"color-mix(in srgb, var(--c{i}) {tint}%, var(--paper))" for tint in (100, 60, 35, 20) for i in range(1, 9)]
DASHED = {"type": "rule", "strokeDash": [4, 3]}
LINE = {"type": "line"}
BAR = {"type": "rule", "strokeWidth": 2}
DOT = {"type": "point", "filled": True, "size": 60, "opacity": 1, "cursor": "pointer"}


def number(field, title=None, axis=None, **scale):
    """A channel of numbers. `scale`: properties of the channel's scale."""
    made = {"field": field, "type": "quantitative"} | ({"title": title} if title else {})
    return made | ({"axis": axis} if axis else {}) | ({"scale": scale} if scale else {})


def logarithmic(field, title, axis=None, **scale):
    return number(field, title, axis, type="log", nice=False, **scale)


def free(field, title, axis=None):
    """A linear axis that need not begin at 0."""
    return number(field, title, axis, zero=False, nice=False, padding=12)


def name(field, title=None, **more):
    """A channel of names."""
    return {"field": field, "type": "nominal", "title": title, **more}


def kinds(names):
    """The channel of kinds of layers, in the order of `names`. Other names, of algorithms, share the kinds' colours."""
    names = list(dict.fromkeys(names))
    others = [one for one in names if one not in KINDS]
    places = [KINDS.index(one) if one in KINDS else others.index(one) % len(COLORS) for one in names]
    return name("kind", scale={"domain": names, "range": [COLORS[place] for place in places]})


def batches(points):
    """The axis of batches, by powers of two, with a tick at each batch of the points."""
    axis = {"values": sorted({one["batch"] for one in points}), "format": "d", "labelOverlap": "greedy"}
    return logarithmic("batch", "batch", axis, base=2, padding=16)


def tips(names, **numbers):
    """The tooltip of a mark. names: {field: title}. numbers: {field: title, or (title, format)}."""
    found = [name(field, title) for field, title in names.items()]
    for field, title in numbers.items():
        title, form = title if isinstance(title, tuple) else (title, ".4~g")
        found.append(number(field, title) | {"format": form})
    return found


def lit(param, low=0.08, high=1):
    """Full opacity for the series that the reader has chosen in the legend, or for all if none is chosen."""
    return {"condition": {"param": param, "value": high}, "value": low}


def layer(records, mark, where=(), **encoding):
    """A layer of a chart. where: expressions; only records that fulfil all of them are drawn."""
    return {"data": records, "mark": mark, "transform": [{"filter": one} for one in where], "encoding": encoding}


def option(param, label, values):
    """A box on the page from which the reader chooses a value."""
    return {"name": param, "value": values[0], "bind": {"input": "select", "options": values, "name": f"{label} "}}


def ranged(points, param, x, y, tooltip, mark=DOT, line=True, **color):
    """Layers with a line through the middle values, bars from `low` to `high`, and dots."""
    common = {"x": x, "color": name("series", **color), "opacity": lit(param)}
    return [
        *([layer(points, LINE, y=y, **common)] if line else []),
        layer(points, BAR, y=number("low"), y2={"field": "high"}, **common),
        layer(points, mark, y=y, tooltip=tooltip, **common),
    ]


def chart(chart_name, title, says, layers, pick=None, legend="series", zoom=True, options=(), height=320):
    """A chart of layers, with a title and a sentence below it, `says`."""
    # pick: (label, field): adds a box. The reader chooses one value of the field, and layers that have it show only it.
    # legend: the field whose values the reader chooses by a click in the legend; sets the param NAME_lit. zoom: moves
    # by dragging and zooms by Ctrl and the wheel; without Ctrl, the wheel scrolls the page. options: more boxes. The
    # table below the chart has the values of the tooltips.
    datasets, params = {}, list(options)
    if pick:
        label, field = pick
        values = [one[field] for its in layers for one in its["data"] if field in one]
        params.insert(0, option(f"{chart_name}_pick", label, list(dict.fromkeys(values))))
    for its in layers:
        records = its["data"]
        known = next((key for key, other in datasets.items() if other is records), f"records_{len(datasets)}")
        datasets[known] = records
        its["data"] = {"name": known}
        if pick and records and field in records[0]:
            its["transform"].insert(0, {"filter": f"datum.{field} == {chart_name}_pick"})
    selections = []
    if legend:
        select = {"type": "point", "fields": [legend], "toggle": "true"}
        selections.append({"name": f"{chart_name}_lit", "select": select, "bind": "legend"})
    if zoom:
        select = {"type": "interval", "translate": "[mousedown, window:mouseup] > window:mousemove!",
                  "zoom": "wheel![event.ctrlKey]", "clear": "dblclick"}
        selections.append({"name": f"{chart_name}_zoom", "select": select, "bind": "scales"})
    layers[-1]["params"] = selections
    spec = {"description": f"{title}. {says}", "width": "container", "height": height}
    spec |= {"datasets": datasets, "params": params, "layer": layers}
    return {"name": chart_name, "title": title, "says": says, "spec": spec, "pick": pick}
