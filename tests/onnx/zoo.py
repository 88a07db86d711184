#!/usr/bin/env python3
"""Writes every network of the zoo as ONNX. onnxruntime's logits must equal ours within 1e-4 of the largest.

The program `onnx_cases` writes a network with random weights, reads it back, and runs it on eigen. pip fetches
onnxruntime once, into a virtual environment in --folder (default: build/onnx).
"""

import pathlib
import sys
import tempfile

import environment


def check(name):
    with tempfile.TemporaryDirectory(prefix="lamina-zoo-") as folder:
        model = pathlib.Path(folder) / "model.onnx"
        program.call(options.program, "write", name, model)
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        its = session.get_inputs()[0]
        inputs = {its.name: numpy.random.default_rng(7).standard_normal([2, *its.shape[1:]], dtype=numpy.float32)}
        return program.check_logits(name, options.program, model, inputs, session.run(None, inputs)[0])


parser = environment.parser(__doc__)
parser.add_argument("--nets", default="", help="networks, separated by commas; default: all")
options = parser.parse_args()
environment.enter(options.folder, "numpy", "onnx", "onnxruntime")
import numpy  # noqa: E402  in the environment
import onnxruntime  # noqa: E402

import program  # noqa: E402

names = [net for net in options.nets.split(",") if net] or program.call(options.program, "zoo").split()
sys.exit(0 if names and all([check(name) for name in names]) else 1)
