"""The table of cnn-benchmarks: the published machines beside ours, and the speed-up against any of them."""

from page import published
from page.parts import Section
from page.text import between, digits

PASSES = (*published.PASSES, "inference")


def make(model):
    ours = shown(model)
    known = published.networks()
    networks = [net for net in known if any(net in its["times"] for its in ours)]
    networks += [net for net in known if net not in networks]
    more = dict.fromkeys(net for its in ours for net in its["times"])
    networks += [net for net in more if net not in networks]
    machines = ours + [
        {
            "label": one.label,
            "source": one.source,
            "ours": False,
            "batch": published.BATCH,
            "times": {net: {part: {"ms": ms} for part, ms in parts.items()} for net, parts in one.milliseconds.items()},
        }
        for one in published.machines()
    ]
    for number, machine in enumerate(machines):
        machine["id"] = number
    measured = [net for net in networks if any(net in its["times"] for its in ours)]
    first = "resnet50" if "resnet50" in (measured or networks) else (measured or networks)[0]
    lead = (
        "Milliseconds of one pass over a minibatch of 16 images of 3x224x224 in f32, as in cnn-benchmarks: forward "
        "in training "
        "mode, backward with the gradients of all parameters, no update. Another batch is shown per 16 images."
    )
    return Section(
        "networks",
        "Networks, beside the published machines",
        lead,
        short="Networks",
        template="networks.html",
        fill="" if ours else "lamina_bench run --backend=eigen --passes=9 --benchmark_out=networks.json",
        data={
            "networks": networks,
            "machines": machines,
            "passes": [*published.PASSES, "inference"],
            "network": first,
            "reference": reference(machines, first),
            "first": static(machines, networks),
        },
    )


def shown(model):
    """Ours by machine and program. Of a run with several batches the published one; else each batch by itself."""
    rows = [one for one in model.of("net") if one.key["part"] in PASSES and one.seconds and not one.size]
    published_batch = {(one.origin, one.who) for one in rows if one.key["batch"] == published.BATCH}
    found = {}
    for one in rows:
        batch = one.key["batch"]
        if (one.origin, one.who) in published_batch and batch != published.BATCH or sweeps_threads(one):
            continue
        label = one.who + (f", batch {batch}" if batch != published.BATCH else "")
        machine = found.setdefault(
            (label, one.origin.source.number),
            {"label": label, "source": one.origin.source.name, "ours": one.is_lamina, "batch": batch, "times": {}},
        )
        machine["times"].setdefault(one.key["network"], {})[one.key["part"]] = time_of(one)
    return list(found.values())


def sweeps_threads(timing):
    return "threads" in timing.key.get("differs", {})


def time_of(timing):
    scale = 1e3 * published.BATCH / timing.key["batch"]
    its = timing.interval
    return {
        "ms": its.middle * scale,
        "low": its.low * scale,
        "high": its.high * scale,
        "samples": len(timing.seconds),
        "run": timing.command,
        "name": timing.name,
        "grade": timing.grade,
        "text": f"{digits(scale * its.middle)}",
        "between": between(its, scale),
    }


def reference(machines, network):
    """The published machine that most people know: the Pascal Titan X's newest, where it has the network."""
    for one in machines:
        if not one["ours"] and one["label"] == "Pascal Titan X, cuDNN 5.1.05" and network in one["times"]:
            return one["id"]
    return machines[0]["id"]


def static(machines, networks):
    """What stands in the table before its script has run: totals, fastest machine first by its geometric place."""

    def place(machine):
        times = [parts["total"]["ms"] for parts in machine["times"].values() if "total" in parts]
        return sum(times) / len(times) if times else float("inf")

    return [
        {
            "label": one["label"],
            "ours": one["ours"],
            "cells": [cell(one["times"].get(net, {}).get("total")) for net in networks],
        }
        for one in sorted(machines, key=place)
    ]


def cell(time):
    return digits(time["ms"]) if time else ""
