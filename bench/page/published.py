"""The published tables: bench/published/*.csv."""

import csv
import dataclasses
import functools
import os

FOLDER = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../published"))
BATCH = 16
PASSES = ("forward", "backward", "total")
TITLES = {
    "published.csv": "Times of cnn-benchmarks and of its page on cloud GPUs, batch 16, 3x224x224",
    "devices.csv": "The machines of these times",
    "accuracy.csv": "Errors of the networks on ImageNet",
    "trainings.csv": "Epochs of the 2017-11 cost post",
    "prices.csv": "Prices as published",
}
# Of the cost post's platforms: their machine, and their line of the prices.
PLATFORMS = {
    "k80": ("Tesla K80 (2017-11 post)", "K80 + n1-standard-1"),
    "p100": ("Tesla P100 (2017-11 post)", "P100 + n1-standard-1"),
    "cpu32": ("32 vCPU Skylake (2017-11 post)", "32 vCPU Skylake"),
    "cpu16": ("16 vCPU Skylake (2017-11 post)", "16 vCPU Skylake"),
}


@dataclasses.dataclass
class Machine:
    """A device with a cuDNN; one, where several sources print the same."""

    label: str
    source: str
    device: str
    milliseconds: dict  # by network, then by pass


@functools.cache
def lines(name):
    """The lines of a table, as dictionaries."""
    with open(os.path.join(FOLDER, name), encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def with_kernels(cudnn):
    return {"cpu": "Torch nn", "None": "no cuDNN"}.get(cudnn, f"cuDNN {cudnn}")


@functools.cache
def machines():
    found = {}
    for line in lines("published.csv"):
        key = (line["source"], line["device"], line["cudnn"])
        times = {part: float(line[f"{part}_ms"]) for part in PASSES}
        found.setdefault(key, {})[line["network"]] = times
    merged = {}
    for (source, device, cudnn), times in found.items():
        alike = [
            one
            for one in merged.get((device, cudnn), ())
            if all(one.milliseconds[net] == times[net] for net in {*times} & {*one.milliseconds})
        ]
        if alike:
            alike[0].source += f", {source}"
            alike[0].milliseconds |= times
        else:
            merged.setdefault((device, cudnn), []).append(
                Machine(f"{device}, {with_kernels(cudnn)}", source, device, times)
            )
    return tuple(one for several in merged.values() for one in several)


def networks():
    """In the order of their first line."""
    return tuple(dict.fromkeys(line["network"] for line in lines("published.csv")))


@functools.cache
def trainings():
    """{(workload, platform): its epochs}."""
    found = {}
    for line in lines("trainings.csv"):
        found.setdefault((line["workload"], line["platform"]), []).append(line)
    return found


@functools.cache
def workloads():
    """The names of the trainings that were published."""
    return frozenset(workload for workload, _ in trainings())
