"""The table of cnn-benchmarks: the published machines beside ours, and the speed-up against any of them.
assets/networks.js draws it."""

from page import charts, published
from page.parts import digits, section, sentence

PASSES = (*published.PASSES, "inference")
LEAD = (
    "Milliseconds of one pass over a minibatch of 16 images of 3x224x224 in f32, as in cnn-benchmarks: forward in "
    "training mode, backward with the gradients of all parameters, no update. Another batch is shown per 16 images."
)
CHART_SAYS = (
    "Right of the dashed line is faster than the chosen row. Bars: of programs that took turns, the interval that "
    "lamina_bench compare found; others have none, and their ratio is that of the medians."
)


def make(model):
    measured, places = shown(model)
    add_comparisons(model, places)
    machines = measured + [one | {"times": published_times(one)} for one in published.machines()]
    mine = dict.fromkeys(net for one in measured for net in one["times"])
    networks = [net for net in published.networks() if net in mine]
    networks += [net for net in [*mine, *published.networks()] if net not in networks]
    said = list(spans(measured))
    first = "resnet50" if "resnet50" in mine or not mine else networks[0]
    fill = "" if measured else "lamina_bench run --backend=eigen --passes=9 --benchmark_out=networks.json"
    data = {"networks": list(dict.fromkeys(networks)), "machines": machines, "passes": PASSES, "network": first,
            "reference": reference(machines, first)}
    return section("networks", "Networks, beside the published machines", "Networks", LEAD, fill, data=data,
                   charts=[speedups()] if measured else [], answers=[*said[:1], *means(model), *said[1:]])


def published_times(machine):
    return {net: {part: {"ms": ms} for part, ms in parts.items()} for net, parts in machine["times"].items()}


def shown(model):
    """The measured machines and programs, and the place of each row among them. The published batch is shown where a
    network has it; else each batch alone."""
    whose = lambda one: (one.run, one.who, one.key["network"])
    rows = [one for one in model.rows_of("net")
            if one.key["part"] in PASSES and one.seconds and not one.size and "threads" not in one.differs]
    with_published = {whose(one) for one in rows if one.batch == published.BATCH}
    found, places = {}, {}
    for one in rows:
        if one.batch == published.BATCH or whose(one) not in with_published:
            label = one.who + (f", batch {one.batch}" if one.batch != published.BATCH else "")
            about = {"label": label, "source": one.run.file, "ours": one.run.is_ours, "measured": True, "times": {}}
            machine = found.setdefault((label, one.run.file), about)
            time = machine["times"].setdefault(one.key["network"], {})[one.key["part"]] = time_of(one)
            places[one.run.file, one.name, one.run.name] = list(found).index((label, one.run.file)), time
    return list(found.values()), places


def time_of(one):
    scale = 1e3 * published.BATCH / one.batch
    low, high = one.quartiles
    about = {"samples": len(one.seconds), "run": one.rerun, "name": one.name, "grade": one.get("grade", "")}
    return {"ms": one.median * scale, "low": low * scale, "high": high * scale, "MiB": one.reading("plan_MiB")} | about


def add_comparisons(model, places):
    """Puts what lamina_bench compare found into the times of programs that took turns: by the place of the other, the
    speed-up over it with its interval."""
    for one in model.comparisons:
        rows = [places.get((one.run.file, one["name"], one[side])) for side in ("first", "second")]
        if one.get("ratio") and None not in rows:
            (first, first_time), (second, time) = rows
            ratio, low, high = one["ratio"], one["low"], one["high"]
            first_time.setdefault("turns", {})[second] = {"ratio": ratio, "low": low, "high": high}
            time.setdefault("turns", {})[first] = {"ratio": 1 / ratio, "low": 1 / high, "high": 1 / low}


def spans(measured):
    """The least and the greatest time of an image, of each row of ours; those with the most networks come first."""
    for one in sorted(measured, key=lambda one: -len(one["times"])):
        times = {net: parts["total"] for net, parts in one["times"].items() if "total" in parts}
        if one["ours"] and times:
            ends = sorted(times, key=lambda net: times[net]["ms"])
            ends = dict.fromkeys((ends[0], ends[-1]))
            texts = [f"{digits(times[net]['ms'] / published.BATCH)} ms ({net})" for net in ends]
            text = f"{one['label']}: a training pass over an image takes {' to '.join(texts)}."
            yield sentence(text, *(times[net]["run"] for net in ends))


def means(model):
    """The geometric means that lamina_bench compare found, as speed-ups."""
    for one in sorted(model.means, key=lambda one: -one["networks"]):
        if one["part"] in ("total", "inference", "epoch"):
            ends = f" ({digits(1 / one['high'])} to {digits(1 / one['low'])})" if one.get("low") else ""
            text = (f"{one.run.file.removesuffix('.json')}, {one['part']}: {one['second']} is "
                    f"{digits(1 / one['ratio'])} times as fast as {one['first']}{ends}, geometric mean of "
                    f"{one['networks']} networks.")
            whose = lambda its: (its.run.file, its["first"], its["second"])
            yield sentence(text, *(its.rerun for its in model.comparisons
                                   if whose(its) == whose(one) and its.key.get("part") == one["part"]))


def reference(machines, network):
    """Another program of the files, or the published machine that most people know."""
    has = [place for place, one in enumerate(machines) if not one["ours"] and network in one["times"]]
    known = [place for place in has if machines[place]["label"] == "Pascal Titan X, cuDNN 5.1.05"]
    return next((place for place in has if machines[place]["measured"]), (known or [0])[0])


def speedups():
    """The page's script gives the chart its data, as the row is chosen."""
    x = charts.logarithmic("ratio", "times as fast", {"format": "~g", "tickCount": 8}, padding=16)
    names = {"series": "machine", "network": "network"}
    tip = charts.tips(names, ratio="times as fast", low="from", high="to", ms="its ms", base="ms of the chosen row")
    common = {"y": charts.name("network", sort=None), "yOffset": {"field": "series"}, "color": charts.name("series"),
              "opacity": charts.lit("speedups_lit")}
    points = [{"network": "", "series": "", "ratio": 1, "low": 1, "high": 1}]
    layers = [
        charts.layer([{"ratio": 0.9}, {"ratio": 1.1}], {"type": "point", "opacity": 0, "aria": False}, x=x),
        charts.layer([{"ratio": 1}], charts.DASHED, x=x),
        charts.layer(points, charts.BAR, x=charts.number("low"), x2={"field": "high"}, **common),
        charts.layer(points, charts.DOT, x=x, tooltip=tip, **common),
    ]
    return charts.chart("speedups", "All networks that were measured", CHART_SAYS, layers, zoom=False)
