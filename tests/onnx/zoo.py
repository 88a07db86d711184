#!/usr/bin/env python3
"""Every network of the zoo, written as ONNX: onnxruntime's logits are ours, within 1e-4 of the largest.

The program `onnx_cases` writes a network with random weights, reads it back, and runs that on eigen.
onnxruntime is fetched once, with pip, into a virtual environment in --folder (default: build/onnx).
"""

import argparse
import math
import pathlib
import sys
import tempfile

import environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOUND = 1e-4


def check_logits(label, onnx_cases, model, inputs, logits):
    """Whether the model makes these logits when it is read for the batch of its one input."""
    import program

    batch = len(next(iter(inputs.values())))
    y = program.run(onnx_cases, model, inputs, batch=batch)
    difference = abs(y - logits).max() / abs(logits).max() if y.shape == logits.shape else math.inf
    good = difference <= BOUND
    print(f"{label:24}logits     {difference:8.1e}  bound {BOUND:.1e}  {'ok' if good else 'FAIL'}", flush=True)
    return good


def check(name, onnx_cases):
    import numpy
    import onnxruntime
    import program

    with tempfile.TemporaryDirectory(prefix="lamina-zoo-") as folder:
        model = pathlib.Path(folder) / "model.onnx"
        program.call(onnx_cases, "write", name, model)
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        its = session.get_inputs()[0]
        inputs = {its.name: numpy.random.default_rng(7).standard_normal([2, *its.shape[1:]], dtype=numpy.float32)}
        return check_logits(name, onnx_cases, model, inputs, session.run(None, inputs)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="onnx_cases")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "onnx")
    parser.add_argument("--nets", default="", help="joined by commas; default: all")
    options = parser.parse_args()
    environment.enter(options.folder, "numpy", "onnx", "onnxruntime")
    import program

    names = [net for net in options.nets.split(",") if net] or program.call(options.program, "zoo").split()
    return 0 if names and all([check(name, options.program) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
