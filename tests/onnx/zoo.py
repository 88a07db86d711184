#!/usr/bin/env python3
"""Every network of the zoo, written as ONNX: onnxruntime's logits are ours, within 1e-4 of the largest.

The program `onnx_cases` writes a network with random weights, reads it back, and runs that on eigen.
onnxruntime is fetched once, with pip, into a virtual environment in --folder (default: build/onnx).
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOUND = 1e-4


def check_logits(label, program, folder, x, logits):
    """Whether folder/model.onnx makes these logits of x when it is read."""
    import onnx.numpy_helper

    data = folder / "test_data_set_0"
    data.mkdir()
    for file, array in (("input_0.pb", x), ("output_0.pb", logits)):
        (data / file).write_bytes(onnx.numpy_helper.from_array(array, file).SerializeToString())
    ran = subprocess.run([program, "--logits", folder], capture_output=True, text=True, check=True)
    result = json.loads(ran.stdout)
    good = result["result"] == "passed" and result["difference"] <= BOUND
    print(f"{label:24}logits     {result['difference']:8.1e}  bound {BOUND:.1e}  "
          f"{'ok' if good else 'FAIL ' + result['result'] + ': ' + result['why']}", flush=True)
    return good


def check(name, program):
    import numpy
    import onnxruntime

    with tempfile.TemporaryDirectory(prefix="lamina-zoo-") as folder:
        model = pathlib.Path(folder) / "model.onnx"
        subprocess.run([program, f"--write={name}", model], check=True)
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        its = session.get_inputs()[0]
        x = numpy.random.default_rng(7).standard_normal([2, *its.shape[1:]], dtype=numpy.float32)
        return check_logits(name, program, model.parent, x, session.run(None, {its.name: x})[0])


def compare(program, nets):
    names = nets or subprocess.run([program, "--zoo"], capture_output=True, text=True, check=True).stdout.split()
    return 0 if names and all([check(name, program) for name in names]) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="onnx_cases")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "onnx")
    parser.add_argument("--nets", default="", help="joined by commas; default: all")
    parser.add_argument("--here", action="store_true", help="this Python has onnxruntime")
    options = parser.parse_args()
    if options.here:
        return compare(options.program, [net for net in options.nets.split(",") if net])
    python = environment.python_with(options.folder, "numpy", "onnx", "onnxruntime")
    return subprocess.run([python, "-B", __file__, *sys.argv[1:], "--here"]).returncode


if __name__ == "__main__":
    sys.exit(main())
