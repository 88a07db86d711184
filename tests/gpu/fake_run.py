"""run-all with steps from a JSON file in place of the real ones, and a device if the file says so. For runner_test.py.

usage: fake_run.py STEPS.json ROOT [flags of run-all]"""

import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/gpu"))

from runner import loop, machine, program, steps  # noqa: E402


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        given = json.load(file)
    fakes = [steps.Step(needs=tuple(step.pop("needs", ())), command=tuple(step.pop("command")),
                        environment=(), **{"part": "A", "rank": 1, "seconds": 1, "kind": "text", **step})
             for step in given["steps"]]
    steps.all_steps = lambda target, parts="ABC": [step for step in fakes if step.part in parts]
    loop.PROBE_SECONDS = 10
    find = machine.pythons
    machine.pythons = lambda named: find(named) if named else []  # what is here is not asked for: it takes seconds
    machine.loader_folders = lambda: []
    return program.main(sys.argv[3:], sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())
