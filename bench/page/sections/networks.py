"""The section of networks: measured and published machines, and speed-ups. assets/networks.js draws it."""

import collections

from page import charts, published
from page.parts import section

PASSES = (*published.PASSES, "inference")
FILL = "lamina_bench run --backend=eigen --passes=9 --benchmark_out=networks.json"
NOTE = (
    "A time is of one pass over 16 images of 3x224x224 in f32, as in cnn-benchmarks: forward in training mode, "
    "backward with the gradients of all parameters, no update. Times of another batch are scaled to 16 images."
)
RACED_SAYS = "A dot for each network, a diamond with its interval for the geometric mean, by lamina_bench compare."


def make(model):
    measured, places = shown(model)
    add_comparisons(model, places)
    machines = measured + list(map(as_measured, published.machines()))
    mine = dict.fromkeys(net for one in measured for net in one["times"])
    networks = [net for net in published.networks() if net in mine]
    networks += [net for net in [*mine, *published.networks()] if net not in networks]
    first = "resnet50" if "resnet50" in mine or not mine else networks[0]
    parts = [part for part in ("total", *PASSES) if any(part in one["times"].get(first, ()) for one in measured)]
    raced = sorted(races(model), key=lambda one: ("total", *PASSES, "epoch").index(one["part"]))
    data = {"networks": networks, "machines": machines, "passes": PASSES, "network": first,
            "pass": (parts or PASSES)[0], "raced": raced, "reference": reference(machines, first)}
    return section("networks", "Networks", "Networks", fill=FILL, data=data,
                   charts=[chart(raced)] if raced else [], notes=[NOTE] if measured else [])


def as_measured(machine):
    """A published machine in the form of the measured machines."""
    times = {net: {part: {"ms": ms} for part, ms in parts.items()} for net, parts in machine["times"].items()}
    return machine | {"times": times, "group": machine["device"], "short": machine["device"]}


def shown(model):
    """(measured machines and programs, {key of a row: (index of its machine, its time)})."""
    # A network that was measured at the published batch is shown at this batch only. Other networks are shown at all
    # their batches.
    whose = lambda one: (one.run, one.who, one.key["network"])
    rows = [one for one in model.rows_of("net")
            if one.key["part"] in PASSES and one.seconds and not one.size and "threads" not in one.differs]
    with_published = {whose(one) for one in rows if one.batch == published.BATCH}
    found, places, one_machine = {}, {}, len({one.machine for one in rows}) == 1
    for one in rows:
        if one.batch == published.BATCH or whose(one) not in with_published:
            label = one.who + (f", batch {one.batch}" if one.batch != published.BATCH else "")
            group = label if one.run.is_ours else f"{one.machine}, {one.run.variant.get('engine')}"
            short = label.removeprefix(f"{one.machine} ") if one_machine else label  # may begin with the run's suffix
            about = {"label": label, "short": short, "source": one.run.file, "group": group, "ours": one.run.is_ours}
            machine = found.setdefault(label, about | {"measured": True, "times": {}})
            time = machine["times"].setdefault(one.key["network"], {})[one.key["part"]] = time_of(one)
            places[one.run.file, one.name, one.run.name] = list(found).index(label), time
    return list(found.values()), places


def time_of(one):
    scale = 1e3 * published.BATCH / one.batch
    low, high = one.quartiles
    letter = one.get("grade", "")
    why = [reason[3:] for reason in one.get("grade_reasons", []) if reason.startswith(f"{letter}: ")]
    grade = ": ".join(filter(None, [f"grade {letter}", "; ".join(why)])) if letter else "not graded"
    about = {"samples": len(one.seconds), "run": one.rerun, "name": one.name, "grade": grade}
    return {"ms": one.median * scale, "low": low * scale, "high": high * scale, "MiB": one.reading("plan_MiB")} | about


def add_comparisons(model, places):
    """Adds the speed-ups by lamina_bench compare to the times of programs that took turns."""
    for one in model.comparisons:
        rows = [places.get((one.run.file, one["name"], one[side])) for side in ("first", "second")]
        if one.get("ratio") and None not in rows:
            (first, first_time), (second, time) = rows
            first_time.setdefault("turns", {})[second] = {name: one.get(name) for name in ("ratio", "low", "high")}
            time.setdefault("turns", {})[first] = inverse(one)


def inverse(one):
    """The speed-up and its interval, from a ratio of times; without an interval if the ratio has none."""
    return {to: 1 / one[name] for to, name in (("ratio", "ratio"), ("low", "high"), ("high", "low")) if one.get(name)}


def races(model):
    """The verdicts of lamina_bench compare on other programs that took turns with ours, by network, and the means."""
    runs = {(run.file, run.name): run for run in model.runs}
    several = len({run.machine() for run in model.runs}) > 1
    for one in [*model.comparisons, *model.means]:
        first, second = (runs.get((one.run.file, one[side])) for side in ("first", "second"))
        raced = not first.is_ours if first else one["first"] == "fastest"
        if one.get("ratio") and raced and second and second.is_ours:
            other, networks = first.program("") if first else "the fastest other program", one.get("networks", 0)
            other += f", {second.machine()}" if several else ""
            about = {"other": other, "series": second.program(""), "networks": networks, "file": one.run.file}
            about["part"] = one.get("part") or one.key["part"]
            about["network"] = f"mean of {networks} networks" if networks else one.key["network"]
            yield about | {"verdict": one.get("verdict", ""), "run": one.rerun} | inverse(one)


def reference(machines, network):
    """The index of the machine to compare with: another program in the files, or a well-known published machine."""
    has = [place for place, one in enumerate(machines) if not one["ours"] and network in one["times"]]
    known = [place for place in has if machines[place]["label"] == "Pascal Titan X, cuDNN 5.1.05"]
    return next((place for place in has if machines[place]["measured"]), (known or [0])[0])


def chart(points):
    """The chart of races. Names stand above the marks, because a phone has no room beside the marks."""
    x = charts.logarithmic("ratio", "times as fast as the other", {"format": "~g", "tickCount": 6}, padding=16)
    y = charts.name("other", axis=None, sort=None)
    names = {"series": "ours", "network": "network", "verdict": "verdict", "file": "file"}
    common = {"x": x, "y": y, "color": charts.name("series"), "opacity": charts.lit("raced_lit")}
    tip = charts.tips(names, ratio="times as fast", low="from", high="to")
    low, dot, bar = {"yOffset": 7}, charts.DOT | {"size": 30}, {"x": charts.number("low"), "x2": {"field": "high"}}
    text, mean = {"type": "text", "align": "left", "dx": 2, "dy": -10}, charts.DOT | {"shape": "diamond", "size": 170}
    others = [dict(one) for one in dict.fromkeys((("part", one["part"]), ("other", one["other"])) for one in points)]
    layers = [
        charts.layer([{"ratio": 1}], charts.DASHED, x=x),
        charts.layer(others, text, x={"value": 0}, y=y, text=charts.name("other")),
        charts.layer(points, dot | low, ["!datum.networks"], tooltip=tip, **common),
        charts.layer(points, charts.BAR | low, ["datum.networks"], **common | bar),
        charts.layer(points, mean | low, ["datum.networks"], tooltip=tip, **common),
    ]
    title = "Other programs, in turns: right of the dashed line Lamina is faster"
    height = 90 + 36 * max(collections.Counter(one["part"] for one in others).values())
    return charts.chart("raced", title, RACED_SAYS, layers, ("Pass", "part"), zoom=False, height=height)
