"""Common parts of the comparisons with PyTorch: paths of modules, an interpreter that has them, the difference of two
arrays, and the exit status. Scripts must import it before the modules of bench/race."""

import argparse
import json
import math
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../..", folder) for folder in ("bench/race", "bench/race/peers",
                                                                   "tests/data/goldens")]
import pythons  # noqa: E402

try:
    import safetensors_file
except ImportError:  # it needs numpy
    safetensors_file = None


def parser(description, program):
    """A parser with the arguments of all comparisons: our program, and a Python."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--program", required=True, help=program)
    found.add_argument("--python", help="an interpreter that has the modules, if this one lacks them")
    return found


def start_again(wanted, modules):
    """Restarts this script with an interpreter that has the modules. If there is none, the script fails if `wanted`
    names an interpreter, and else ends as skipped."""
    python = next((python for python in ([wanted] if wanted else pythons.USUAL) if pythons.can_import(python, modules)), None)
    if python is None and wanted:
        sys.exit(f"'{wanted}' cannot import {modules}. Name one that can, or install it there.")
    if python is None:
        print(f"skipped: none of {', '.join(pythons.USUAL)} can import {modules}")
        sys.exit(pythons.SKIPPED)
    os.execvp(python, [python, *sys.argv])


def parse(arguments, modules, there):
    """The parsed arguments. Unless the modules are `there`, the script restarts with an interpreter that has them, or
    ends as skipped."""
    found = arguments.parse_args()
    if not there:
        start_again(found.python, modules)
    return found


def difference(ours, theirs):
    """The largest difference of two numpy arrays, relative to the largest number of `theirs`. Infinite if it is NaN or
    if `theirs` is 0."""
    largest = float(abs(theirs).max())
    gap = float(abs(ours.reshape(theirs.shape) - theirs).max()) / largest if largest > 0 else math.inf
    return gap if gap == gap else math.inf


def write_safetensors(path, arrays):
    """Writes named numpy arrays: eight bytes of header length, a JSON header, the numbers."""
    header, offset = {}, 0
    for name, array in arrays.items():
        dtype = next(key for key, code in safetensors_file.TYPES.items() if array.dtype == code)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.tobytes())


def status(results):
    """The exit status for all results. Evaluates every result."""
    return 0 if all(list(results)) else 1
