"""What all charts share: data inline, zoom, series that are switched by their legend, a click that copies the command.
Colours are the page's: assets/charts.js."""

import altair

import contextlib

HEIGHT = 320


@contextlib.contextmanager
def unlimited():
    with altair.data_transformers.disable_max_rows():
        yield


def data(records):
    return altair.Data(values=list(records))


def chart(records, height=HEIGHT):
    return altair.Chart(data(records)).properties(width="container", height=height)


def zoom(name="zoom"):
    """Drag with a mouse, pinch, or turn the wheel with Ctrl: a page still scrolls over a chart."""
    return altair.selection_interval(
        name=name,
        bind="scales",
        translate="[mousedown, window:mouseup] > window:mousemove!",
        zoom="wheel![event.ctrlKey]",
        clear="dblclick",
    )


def series(field="series", name="series"):
    """Those chosen in the legend; all, where none is."""
    return altair.selection_point(name=name, fields=[field], bind="legend", toggle="true")


def chosen(selection, low=0.08):
    return altair.condition(selection, altair.value(1), altair.value(low))


def choice(name, label, values, field):
    """A box to choose one value of a field from, with the filter that goes with it."""
    values = list(dict.fromkeys(values))
    selected = altair.param(name=name, value=values[0], bind=altair.binding_select(options=values, name=f"{label} "))
    return selected, altair.FilterTransform(f"datum.{field} == {name}")


def spec(drawn, description):
    """As plain JSON, checked against Vega-Lite's schema."""
    with unlimited():
        made = drawn.properties(description=description).to_dict()
    made.pop("config", None)
    return made
