"""Small result files for the tests, with chosen times: rows, ledgers, frontiers and others."""

import json
import os
import sys
import tempfile
import unittest

BENCH = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
sys.path.insert(0, BENCH)
import wheels
from page import packages, prices, results
from race.results import name_of

NEAR = (1.0, 1.01, 0.99, 1.02, 0.98, 1.005)
KEY = {"what": "ledger", "network": "net", "backend": "eigen", "type": "f32", "layout": "nchw", "batch": 4}
CONTEXT = {
    "processor": "Test CPU",
    "commit": "0123456789abcdef",
    "lamina_format": 2,
    "load_average_start": "0.10 0.20 0.30",
    "command": "lamina_bench run",
}


def key(part="total", network="resnet50", what="net", backend="eigen", batch=16, **more):
    its = {"what": what, "network": network, "part": part, "backend": backend, "type": "f32", "layout": "nchw"}
    return its | {"batch": batch} | more


def row(its, milliseconds, factors=NEAR, **more):
    """All repetitions of a row, with times around one time."""
    name = name_of(its)
    common = {"name": name, "run_name": name, "run_type": "iteration", "time_unit": "ms", "key": its}
    common["rerun"] = f"run {name}"
    return [common | {"repetition_index": i, "real_time": milliseconds * one} | more for i, one in enumerate(factors)]


def failed(its, message, **more):
    return row(its, 0.0, factors=[1], error_occurred=True, error_message=message, **more)


def training(name, epochs, share=None):
    its = key("epoch", name, "train", batch=128, **({"differs": {"synthetic": share}} if share else {}))
    found = []
    for place, one in enumerate(epochs):
        more = {name: value for name, value in one.items() if name != "seconds"}
        about = {"time_unit": "s", "epoch": float(place), "label": "synthetic glyphs", "repetition_index": place}
        found += row(its, one["seconds"], factors=[1], **about | more)
    return found


def network(name="resnet50", forward=100, factors=NEAR, more={}, **of):
    times = {"forward": forward, "backward": 2 * forward, "total": 3 * forward}
    return [one for part, ms in times.items() for one in row(key(part, name, **of), ms, factors, **more)]


def race(times, part="total", net="resnet50", what="net"):
    """Rows of variants that took turns, from {variant: milliseconds of each round}."""
    its = key(part, net, what)
    common = {"name": name_of(its), "key": its, "run_type": "iteration", "time_unit": "ms", "rerun": "bench/race/race"}
    return [common | {"variant": name, "real_time": ms[0], "real_times": ms} for name, ms in times.items()]


VARIANTS = [
    {"variant": "eigen", "engine": "lamina", "context": {"threads": "2"}},
    {"variant": "torch+compiled@nhwc", "engine": "torch", "context": {"torch": "2.15.0+cu132"}},
]


def comparison(name="net/x", **more):
    found = {"ratio": 1.2, "low": 1.1, "high": 1.3, "first_seconds": 1, "seconds": 1.2, "verdict": "slower"}
    names = {"name": name, "first": "x/old.json", "second": "x/new.json"}
    return names | {"key": key(), "rerun": f"race {name}"} | found | more


def raced(net="resnet50"):
    """A race in which torch takes 1.5 times as long, with a made-up result of lamina_bench compare."""
    torch = VARIANTS[1]["variant"]
    rows = race({"eigen": [100, 102], torch: [150, 153]}, net=net)
    names = {"name": rows[0]["name"], "first": torch, "second": "eigen", "key": rows[0]["key"]}
    found = comparison(**names, ratio=0.5, low=0.4, high=0.8, verdict="faster")
    fastest = found | {"first": "fastest", "fastest": torch}
    mean = {"part": "total", "first": torch, "second": "eigen", "networks": 2, "ratio": 0.5, "low": 0.4, "high": 0.8}
    return document(rows, {"variants": VARIANTS}, comparisons=[found, fastest], means=[mean])


def call(layers, op, pass_, seconds, flops, count):
    about = {"layers": layers, "node": layers, "op": op, "pass": pass_, "algorithm": "gemm", "samples": [seconds]}
    return about | {"seconds": seconds, "flops": flops, "bytes": count, "rerun": f"call {layers} {pass_}"}


def ledger(**more):
    its = {"passes": 3, "forward_seconds": 0.004, "backward_seconds": 0.004}
    its |= {"forward_samples": [1], "backward_samples": [1]}
    rates = {"peak_flops_per_second": 4e12, "memory_bytes_per_second": 8e9}
    calls = [
        call("c", "conv", "forward", 0.003, 6e9, 3e6),
        call("r", "relu", "forward", 0.001, 1e6, 4e6),
        call("c", "conv", "backward_data", 0.004, 6e9, 3e6),
    ]
    return {"key": KEY, "rerun": "lamina_bench ledger net"} | its | rates | {"calls": calls} | more


def tried(**more):
    """An algorithm in a frontier."""
    its = {"algorithm": "a", "seconds": 0.002, "low": 0.0019, "high": 0.0021, "workspace_bytes": 2**20, "error": 1e-7}
    return its | {"deterministic": True, "on_frontier": True, "picked": True, "by_rule": True} | more


def frontier(*lines):
    """A frontier with lines of (name, layers, algorithms)."""
    its = []
    for node, layers, algorithms in lines:
        about = {"node": node, "op": "conv", "pass": "forward", "rerun": f"layer {node}"}
        its.append(about | {"layers": layers, "algorithms": algorithms})
    return {"key": KEY, "rerun": "lamina_bench frontier net", "complete": True, "limits": {}, "lines": its}


def memory(network="net", **more):
    by_kind = {"values": 2**21, "workspace": 2**20, "saved": 0}
    step = {"step": 0, "layers": "c", "pass": "forward", "live_bytes": 3 * 2**20, "by_kind": by_kind}
    rerun = f"lamina_bench memory {network}"
    return {"key": KEY | {"network": network}, "rerun": rerun, "total": 2**22, "steps": [step]} | more


def answer(what, text, value=None, **of):
    its = {name: value for name, value in key(**of).items() if name != "batch"}
    said = {"network": its["network"], "backend": its["backend"], "what": what, "text": text, "key": its}
    return said | {"rerun": "sweep"} | ({"value": value} if value is not None else {})


def document(benchmarks=(), facts=None, **lists):
    return {"context": CONTEXT | (facts or {}), "benchmarks": list(benchmarks), **lists}


def write(folder, name, what):
    """Writes a file. A text or bytes are written unchanged, anything else as JSON."""
    path = os.path.join(folder, name)
    os.makedirs(folder, exist_ok=True)
    content = what if isinstance(what, (bytes, str)) else json.dumps(what)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


class Case(unittest.TestCase):
    """Tests that have a temporary folder."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())


def model_of(*documents):
    with tempfile.TemporaryDirectory() as folder:
        model, problems = results.read([write(folder, f"file{i}.json", one) for i, one in enumerate(documents)])
    assert not problems, problems
    model.prices = prices.read([])
    return model


def points(section, chart=0):
    """All data of a chart."""
    return [one for its in section["charts"][chart]["spec"]["datasets"].values() for one in its]


def texts(table):
    return [[one if isinstance(one, str) else one["text"] for one in its["cells"]] for its in table["rows"]]


def main():
    """Runs the tests of a file, or prints that they are skipped."""
    try:
        packages.install()
    except wheels.WheelError as error:
        print(f"SKIPPED: {error}")
        sys.exit(77)
    unittest.main()
