#!/usr/bin/env python3
"""Every network of the zoo, written as ONNX: onnxruntime's logits are ours, within 1e-4 of the largest.

The program `onnx_zoo` writes a network with random weights, reads it back, and runs that on eigen.
onnxruntime is fetched once, with pip, into a virtual environment in --folder (default: build/onnx).
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOUND = 1e-4


def compare(program, nets):
    sys.path.insert(0, str(ROOT / "bench" / "race" / "peers"))
    import numpy
    import onnxruntime
    import safetensors_file

    names = nets or subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    print(f"onnxruntime {onnxruntime.__version__}", flush=True)
    good = bool(names)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="lamina-zoo-") as folder:
            model, data = f"{folder}/{name}.onnx", f"{folder}/data"
            subprocess.run([program, name, model, data], check=True)
            arrays = safetensors_file.read(data)
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            theirs = session.run(None, {session.get_inputs()[0].name: numpy.array(arrays["x"])})[0]
            ours = numpy.array(arrays["y"]).reshape(theirs.shape)
        largest = float(numpy.abs(theirs).max())
        difference = float(numpy.abs(ours - theirs).max()) / largest if largest > 0 else float("inf")
        fits = difference <= BOUND  # a NaN does not
        good = good and fits
        print(f"{name:16}{difference:8.1e}  of {largest:.3g}  {'ok' if fits else 'FAIL'}", flush=True)
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="onnx_zoo")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "onnx")
    parser.add_argument("--nets", default="", help="joined by commas; default: all")
    parser.add_argument("--here", action="store_true", help="this Python has onnxruntime")
    options = parser.parse_args()
    if options.here:
        return compare(options.program, [net for net in options.nets.split(",") if net])
    python = environment.python_with(options.folder, "numpy", "onnxruntime")
    return subprocess.run([python, "-B", __file__, *sys.argv[1:], "--here"]).returncode


if __name__ == "__main__":
    sys.exit(main())
