"""The published tables: bench/published/*.csv."""

import csv
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
# {platform in trainings.csv: (its machine, its configuration in prices.csv)}.
PLATFORMS = {
    "k80": ("Tesla K80 (2017-11 post)", "K80 + n1-standard-1"),
    "p100": ("Tesla P100 (2017-11 post)", "P100 + n1-standard-1"),
    "cpu32": ("32 vCPU Skylake (2017-11 post)", "32 vCPU Skylake"),
    "cpu16": ("16 vCPU Skylake (2017-11 post)", "16 vCPU Skylake"),
}


@functools.cache
def lines(name):
    """The lines of a table, as dictionaries."""
    with open(os.path.join(FOLDER, name), encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def label(line):
    cudnn = line["cudnn"]
    return f"{line['device']}, {({'cpu': 'Torch nn', 'None': 'no cuDNN'}.get(cudnn, f'cuDNN {cudnn}'))}"


@functools.cache
def machines():
    """A record for each device and cuDNN: label, device, sources, and times as {network: {pass: milliseconds}}."""
    found = {}
    for line in lines("published.csv"):
        about = {"label": label(line), "device": line["device"], "source": [], "times": {}}
        one = found.setdefault(label(line), about | {"ours": False, "measured": False})
        one["source"] += [line["source"]] if line["source"] not in one["source"] else []
        one["times"][line["network"]] = {part: float(line[f"{part}_ms"]) for part in PASSES}
    return [one | {"source": ", ".join(one["source"])} for one in found.values()]


def networks():
    """The networks, in the order of their first lines."""
    return list(dict.fromkeys(line["network"] for line in lines("published.csv")))


@functools.cache
def trainings():
    """{(workload, platform): list of its epochs}."""
    found = {}
    for line in lines("trainings.csv"):
        found.setdefault((line["workload"], line["platform"]), []).append(line)
    return found
