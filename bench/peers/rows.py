"""Rows and context in the JSON form of Google Benchmark, so that its compare.py reads files of any peer."""

import datetime
import json
import os
import platform
import socket

PASSES = {"training": ("forward", "backward", "total"), "inference": ("inference",)}  # of a network, by its mode
LAYER_PASSES = ("forward", "backward_params", "backward_data")


def passes(mode):
    """What is told of a network's mode; a pass of a layer is told as such."""
    return PASSES.get(mode, (mode,))


def row_name(net, what, backend, layout, batch, kind="net"):
    return f"{kind}/{net}/{what}/{backend}/f32/{layout}/batch:{batch}"


def rows_of(net, mode, backend, layout, batch, samples, kind="net"):
    """One row for each pass and sample; a sample maps "forward", ... and "forward_cpu", ... to seconds."""
    rows = []
    for what in passes(mode):
        name = row_name(net, what, backend, layout, batch, kind)
        for i, sample in enumerate(samples):
            seconds = sample["forward"] + sample["backward"] if what == "total" else sample[what]
            cpu = sum(sample[f"{part}_cpu"] for part in (("forward", "backward") if what == "total" else (what,)))
            rows.append({
                "name": name, "run_name": name, "run_type": "iteration", "family_index": 0,
                "per_family_instance_index": 0, "repetitions": len(samples), "repetition_index": i, "threads": 1,
                "iterations": 1, "real_time": seconds * 1e3, "cpu_time": cpu * 1e3, "time_unit": "ms",
                "items_per_second": batch / seconds,
            })
    return rows


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores():
    return len(os.sched_getaffinity(0))


def context(executable, **more):
    """What Google Benchmark says of a run, and what else is known."""
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"), "host_name": socket.gethostname(),
        "executable": executable, "num_cpus": os.cpu_count(), "load_avg": list(os.getloadavg()),
        "library_build_type": "release", "caches": [], "processor": processor(), **more,
    }


def write(path, context_, rows, **more):
    """Writes beside the file first, so that an interrupt leaves the old one whole."""
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path + ".part", "w") as file:
        json.dump({"context": context_, "benchmarks": rows, **more}, file, indent=1)
    os.replace(path + ".part", path)
