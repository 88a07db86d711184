"""What all charts share: data inline, zoom, series that are switched by their legend, a click that copies the command.
Colours are the page's: assets/charts.js."""

import altair

HEIGHT = 320


class Drawing:
    """A chart in the making, and its records. They go into it by name when it is done: Altair would copy and check each
    of them several times."""

    def __init__(self):
        self.records = {}

    def data(self, records):
        """Of a list; once, however many layers draw it."""
        known = [name for name, its in self.records.items() if its is records]
        name = known[0] if known else f"records_{len(self.records)}"
        self.records[name] = records
        return altair.NamedData(name=name)

    def chart(self, records, height=HEIGHT):
        return altair.Chart(self.data(records)).properties(width="container", height=height)

    def spec(self, drawn, description):
        """As plain JSON, checked against Vega-Lite's schema."""
        made = drawn.properties(description=description).to_dict()
        made.pop("config", None)
        return made | {"datasets": self.records}


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


def batches(points):
    """The axis of batches, by powers of two, with a mark at each that is drawn."""
    return altair.X(
        "batch:Q",
        title="batch",
        scale=altair.Scale(type="log", base=2, nice=False, padding=16),
        axis=altair.Axis(values=sorted({one["batch"] for one in points}), format="d", labelOverlap="greedy"),
    )
