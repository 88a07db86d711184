"""Holds the list of test programs that bench/gpu/pack packs against the tests that carry the label gpu.

usage: packed_tests.py CTEST BUILD_TREE LIST"""

import json
import os
import subprocess
import sys


def main(ctest, tree, path):
    listed = json.loads(subprocess.run([ctest, "--test-dir", tree, "--show-only=json-v1", "-L", "^gpu$"], check=True,
                                       stdout=subprocess.PIPE).stdout)
    programs = {os.path.basename(test["command"][0]) for test in listed["tests"] if "command" in test}
    with open(path, encoding="utf-8") as file:
        packed = set(file.read().split(";"))
    missing = sorted(program for program in programs if program not in packed)
    if missing:
        sys.exit(f"tests of {', '.join(missing)} have the label gpu, and bench/gpu/CMakeLists.txt does not pack them")
    print(f"{len(programs)} programs, all of them packed")


if __name__ == "__main__":
    main(*sys.argv[1:])
