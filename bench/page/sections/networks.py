"""The table of cnn-benchmarks: the published machines beside ours, and the speed-up against any of them.
assets/networks.js draws it."""

import math

from page import charts, published
from page.parts import digits, section, sentence

PASSES = (*published.PASSES, "inference")
LEAD = (
    "Milliseconds of one pass over a minibatch of 16 images of 3x224x224 in f32, as in cnn-benchmarks: forward in training "
    "mode, backward with the gradients of all parameters, no update. Another batch is shown per 16 images."
)
CHART_SAYS = (
    "Right of the dashed line is faster than the chosen row. Bars: of programs that took turns, the interval that "
    "lamina_bench compare found; else the least and the most that the middle halves of both times allow."
)


def make(model):
    measured, ids = shown(model)
    compare(model, ids)
    machines = measured + [
        {
            "label": one["label"],
            "source": one["source"],
            "ours": False,
            "measured": False,
            "times": {net: {part: {"ms": ms} for part, ms in parts.items()} for net, parts in one["times"].items()},
        }
        for one in published.machines()
    ]
    known = published.networks()
    mine = list(dict.fromkeys(net for one in measured for net in one["times"]))
    networks = sorted(mine, key=lambda net: known.index(net) if net in known else len(known))
    networks += [net for net in known if net not in networks]
    first = "resnet50" if "resnet50" in (mine or networks) else networks[0]
    return section(
        "networks",
        "Networks, beside the published machines",
        "Networks",
        LEAD,
        "" if measured else "lamina_bench run --backend=eigen --passes=9 --benchmark_out=networks.json",
        charts=[speedups()] if measured else [],
        answers=[*spans(measured), *means(model), *nearest(measured, machines, first)],
        data={
            "networks": networks,
            "machines": machines,
            "passes": PASSES,
            "network": first,
            "reference": reference(machines, first),
        },
    )


def shown(model):
    """The measured machines and programs, and the place of each row among them. The published batch is shown where a
    network has it; else each batch alone."""
    rows = [
        one
        for one in model.of("net")
        if one.key["part"] in PASSES and one.seconds and not one.size and "threads" not in one.differs
    ]
    whose = lambda one: (one.run, one.who, one.key["network"])
    with_published = {whose(one) for one in rows if one.batch == published.BATCH}
    found, ids = {}, {}
    for one in rows:
        if whose(one) in with_published and one.batch != published.BATCH:
            continue
        label = one.who + (f", batch {one.batch}" if one.batch != published.BATCH else "")
        machine = found.setdefault(
            (label, one.run.file),
            {"label": label, "source": one.run.file, "ours": one.run.is_ours, "measured": True, "times": {}},
        )
        time = time_of(one)
        machine["times"].setdefault(one.key["network"], {})[one.key["part"]] = time
        ids[one.run.file, one.name, one.run.name] = (list(found).index((label, one.run.file)), time)
    return list(found.values()), ids


def time_of(one):
    scale = 1e3 * published.BATCH / one.batch
    low, high = one.quartiles
    about = {"samples": len(one.seconds), "run": one.rerun, "name": one.name, "grade": one.get("grade", "")}
    return {"ms": one.median * scale, "low": low * scale, "high": high * scale, "MiB": one.reading("plan_MiB")} | about


def compare(model, ids):
    """Puts what lamina_bench compare found into the times of programs that took turns: by the other's place in the
    list, the speed-up over it with its interval."""
    for one in model.comparisons:
        rows = [ids.get((one.run.file, one["name"], one[side])) for side in ("first", "second")]
        if None in rows or not (one.get("ratio") and one.get("low") and one.get("high")):
            continue
        (first, first_time), (second, time) = rows
        ratio, low, high = one["ratio"], one["low"], one["high"]
        first_time.setdefault("turns", {})[second] = {"ratio": ratio, "low": low, "high": high}
        time.setdefault("turns", {})[first] = {"ratio": 1 / ratio, "low": 1 / high, "high": 1 / low}


def totals(machine):
    return {net: parts["total"] for net, parts in machine["times"].items() if "total" in parts}


def spans(measured):
    """The least and the greatest time of an image, of each row of ours; those with the most networks come first."""
    for one in sorted(measured, key=lambda one: -len(one["times"])):
        times = totals(one)
        if one["ours"] and times:
            ends = sorted(times, key=lambda net: times[net]["ms"])
            texts = [f"{digits(times[net]['ms'] / published.BATCH)} ms ({net})" for net in dict.fromkeys((ends[0], ends[-1]))]
            reruns = [times[net]["run"] for net in (ends[0], ends[-1])]
            yield sentence(f"{one['label']}: a training pass over an image takes {' to '.join(texts)}.", *reruns)


def means(model):
    """The geometric means that lamina_bench compare found, as speed-ups."""
    for one in model.means:
        if one["part"] in ("total", "inference", "epoch") and one["ratio"]:
            ends = f" ({digits(1 / one['high'])} to {digits(1 / one['low'])})" if one.get("low") and one.get("high") else ""
            nets = one.get("networks")
            count = f" of {len(nets) if isinstance(nets, list) else nets} networks" if nets else ""
            yield sentence(
                f"{one['part']}: {one['second']} is ×{digits(1 / one['ratio'])}{ends} as fast as {one['first']}, geometric "
                f"mean{count}, in {one.run.file}.",
                one.run.context.get("command", ""),
            )


def nearest(measured, machines, network):
    """The published machine with the most similar total time of a network."""
    for one in measured:
        mine = one["times"].get(network, {}).get("total")
        others = [its for its in machines if not its["measured"] and "total" in its["times"].get(network, {})]
        if one["ours"] and mine and others:
            ratio = lambda its: its["times"][network]["total"]["ms"] / mine["ms"]
            near = min(others, key=lambda its: abs(math.log(ratio(its))))
            text = f"{one['label']}: the nearest published machine in {network}'s training pass is {near['label']}"
            yield sentence(f"{text} (×{digits(ratio(near))}).", mine["run"])
            return


def reference(machines, network):
    """Another program of the files, or the published machine that most people know."""
    has = [number for number, one in enumerate(machines) if not one["ours"] and network in one["times"]]
    known = [number for number in has if machines[number]["label"] == "Pascal Titan X, cuDNN 5.1.05"]
    return next((number for number in has if machines[number]["measured"]), (known or [0])[0])


def speedups():
    """The page's script gives the chart its data, as the row is chosen."""
    x = charts.logarithmic("ratio", "times as fast", {"format": "~g", "tickCount": 8}, padding=16)
    common = {
        "y": charts.name("network", sort=None),
        "yOffset": {"field": "series"},
        "color": charts.name("series"),
        "opacity": charts.lit("speedups_lit"),
    }
    tip = charts.tips(
        series="machine",
        network="network",
        ratio=("times as fast", ".4~g"),
        low=("from", ".4~g"),
        high=("to", ".4~g"),
        ms=("its ms", ".4~g"),
        base=("ms of the chosen row", ".4~g"),
    )
    points = [{"network": "", "series": "", "ratio": 1, "low": 1, "high": 1}]
    layers = [
        charts.layer([{"ratio": 0.9}, {"ratio": 1.1}], {"type": "point", "opacity": 0, "aria": False}, x=x),
        charts.layer([{"ratio": 1}], charts.DASHED, x=x),
        charts.layer(points, charts.BAR, x=charts.number("low"), x2={"field": "high"}, **common),
        charts.layer(points, charts.DOT, x=x, tooltip=tip, **common),
    ]
    made = charts.chart("speedups", "All networks that were measured", CHART_SAYS, layers, zoom=False, height=120)
    made["spec"]["datasets"]["speedups"] = made["spec"]["datasets"].pop("records_2")
    for its in layers[2:]:
        its["data"] = {"name": "speedups"}
    return made
