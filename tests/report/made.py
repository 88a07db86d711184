"""Result files that the tests make: rows, races, ledgers and the others, small and with times that were chosen."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.normpath(os.path.join(HERE, "../../bench"))
sys.path[:0] = [BENCH, os.path.join(BENCH, "race")]
import rows

NEAR = (1.0, 1.01, 0.99, 1.02, 0.98, 1.005)


def context(**more):
    return {
        "processor": "Test CPU",
        "processor_cores": "2",
        "commit": "0123456789abcdef",
        "lamina_format": 1,
        "load_average_start": "0.10 0.20 0.30",
    } | more


def key(part="total", network="resnet50", what="net", backend="eigen", batch=16, **more):
    return {
        "what": what,
        "network": network,
        **({"layer": more.pop("layer")} if "layer" in more else {}),
        "part": part,
        "backend": backend,
        **({"algorithm": more.pop("algorithm")} if "algorithm" in more else {}),
        "type": "f32",
        "layout": "nchw",
        "batch": batch,
        **more,
    }


def row(its, milliseconds, factors=NEAR, **more):
    """All repetitions of a row, around a time."""
    return [
        {
            "name": rows.name_of(its),
            "run_name": rows.name_of(its),
            "run_type": "iteration",
            "repetition_index": i,
            "real_time": milliseconds * factor,
            "time_unit": "ms",
            "key": its,
            **more,
        }
        for i, factor in enumerate(factors)
    ]


def failed(its, message, **more):
    return [
        {
            "name": rows.name_of(its),
            "run_name": rows.name_of(its),
            "run_type": "iteration",
            "repetition_index": 0,
            "real_time": 0.0,
            "time_unit": "ms",
            "error_occurred": True,
            "error_message": message,
            "key": its,
            **more,
        }
    ]


def training(name, epochs, share=None):
    its = {
        "what": "train",
        "network": name,
        "part": "epoch",
        "backend": "eigen",
        "type": "f32",
        "layout": "nchw",
        "batch": 128,
        **({"differs": {"synthetic": share}} if share else {}),
    }
    return [
        {
            "name": rows.name_of(its),
            "run_name": rows.name_of(its),
            "run_type": "iteration",
            "repetition_index": i,
            "real_time": one.pop("seconds"),
            "time_unit": "s",
            "epoch": float(i),
            "label": "synthetic glyphs",
            "key": its,
            **one,
        }
        for i, one in enumerate(map(dict, epochs))
    ]


def network(name="resnet50", forward=100, factors=NEAR, **more):
    return [
        *row(key("forward", name, **more), forward, factors),
        *row(key("backward", name, **more), 2 * forward, factors),
        *row(key("total", name, **more), 3 * forward, factors),
    ]


def tried(**more):
    """An algorithm that a frontier has tried."""
    return {
        "algorithm": "a",
        "seconds": 0.002,
        "low": 0.0019,
        "high": 0.0021,
        "workspace_bytes": 2**20,
        "error": 1e-7,
        "deterministic": True,
        "on_frontier": True,
        "picked": True,
        "by_rule": True,
    } | more


def memory_steps():
    return [
        {
            "step": 0,
            "layers": "c",
            "pass": "forward",
            "live_bytes": 3 * 2**20,
            "by_kind": {"values": 2**21, "workspace": 2**20, "saved": 0},
        }
    ]


def document(benchmarks=(), facts=None, **lists):
    return {"context": context(**(facts or {})), "benchmarks": list(benchmarks), **lists}


def write(folder, name, what):
    """A file; of a text as it is, of anything else as JSON."""
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(
            what if isinstance(what, bytes) else what.encode() if isinstance(what, str) else json.dumps(what).encode()
        )
    return path
