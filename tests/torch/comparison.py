"""What the comparisons with PyTorch share: where modules are, an interpreter that has them, the difference of two arrays,
and the exit status. It is imported before the modules of bench/race."""

import argparse
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../..", folder) for folder in ("bench/race", "bench/race/peers",
                                                                   "tests/data/goldens")]
import pythons  # noqa: E402


def parser(description, program):
    """A parser with the arguments of every comparison: our program, and a Python."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--program", required=True, help=program)
    found.add_argument("--python", help="where this one lacks modules: an interpreter that has them")
    return found


def parse(arguments, modules, there):
    """The arguments. Unless the modules are `there`, the script restarts under an interpreter that has them, or ends
    as skipped."""
    found = arguments.parse_args()
    if not there:
        pythons.start_again(found.python, modules)
    return found


def difference(ours, theirs):
    """Largest difference of two arrays of numpy over the largest of theirs; NaN and zero tensors do not pass."""
    largest = float(abs(theirs).max())
    gap = float(abs(ours.reshape(theirs.shape) - theirs).max()) / largest if largest > 0 else math.inf
    return gap if gap == gap else math.inf


def status(results):
    """The exit status for all results. It waits for each result."""
    return 0 if all(list(results)) else 1
