#!/usr/bin/env python3
"""Runs test cases of a Catch2 program: first all in one process; where that fails, each in a separate process,
because an error of the device stays with a process and fails every case after the guilty one.

usage: cases.py --out FILE [--together SECONDS] [--alone SECONDS] [--may-be-none] -- PROGRAM [-#] PATTERN

The one process is killed after the first number of seconds (150), each single case after the second (60).

FILE gets {"passed", "failed", "cases": [{"name", "passed", "error", "seconds"}], "together"} as JSON. Exit status 0
where every case passed in the one process. A skipped case counts as failed: whoever starts this expects a device. A
pattern without cases is an error unless there may be none."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from runner import process, text  # noqa: E402
from runner.results import replace  # noqa: E402

TOGETHER_SECONDS, ALONE_SECONDS = 150.0, 60.0


def names_of(program, arguments):
    """The names of the cases that a pattern picks, as Catch2 2 or 3 lists them."""
    for listing in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):
        done = subprocess.run([program, *arguments, *listing], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        names = [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
        if names and not any("unrecognised" in name.lower() for name in names):
            return names
    return []


def literal(name):
    """A case's name as a pattern of Catch2."""
    for character in "\\,[":
        name = name.replace(character, "\\" + character)
    return name


def run_alone(program, name, seconds):
    """One case in a separate process."""
    start = time.monotonic()
    try:
        done = subprocess.run([program, literal(name)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, check=False,
                              preexec_fn=process.die_with_parent)
        log, status = done.stdout.decode("utf-8", "replace"), done.returncode
    except subprocess.TimeoutExpired as error:
        log, status = (error.output or b"").decode("utf-8", "replace"), None
    counts = text.catch_counts(log)
    passed = status == 0 and counts is not None and counts["passed"] > 0 and counts["skipped"] == 0
    reason = "" if passed else f"hung for {seconds:.0f} s" if status is None else text.first_error(log)
    if status is not None and status < 0:
        reason = f"ended by {signal.Signals(-status).name}: {reason}"
    return {"name": name, "passed": passed, "error": reason, "seconds": round(time.monotonic() - start, 2)}, log


def run_together(command, seconds):
    """All cases in one process: its status, None where it was killed because it hung, and what it printed."""
    together = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                preexec_fn=process.die_with_parent)
    late = threading.Event()

    def end():
        late.set()
        together.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    lines = []
    for line in together.stdout:
        lines.append(line.decode("utf-8", "replace"))
        sys.stdout.write(lines[-1])
        sys.stdout.flush()
    status = together.wait()
    timer.cancel()
    timer.join()  # a thread that is left when Python exits calls pthread_exit, which aborts where there is no libgcc_s
    return (None if late.is_set() else status), "".join(lines)


def ended(status, log, seconds):
    """How a process failed, in one line."""
    if status is None:
        return f"hung for {seconds:.0f} s; {text.cases_ended(log) or text.first_error(log)}"
    return text.first_error(log) if status >= 0 else f"ended by {signal.Signals(-status).name}: {text.first_error(log)}"


def run(program, arguments, out, limits, may_be_none=False):
    """`limits`: seconds for all cases together, and for each alone."""
    status, log = run_together([program, "-d", "yes", *arguments], limits[0])
    counts = text.catch_counts(log)
    if status == 0 and counts is not None and counts["passed"] > 0 and counts["failed"] == counts["skipped"] == 0:
        replace(out, json.dumps({"passed": counts["passed"], "failed": 0, "cases": [], "together": "passed"}))
        return 0
    why = ended(status, log, limits[0])
    if status == 0 and not counts and may_be_none and not names_of(program, arguments):
        replace(out, json.dumps({"passed": 0, "failed": 0, "cases": [], "together": "passed"}))
        return 0
    if status == 0 and not counts:
        why = f"no case matches {arguments[-1]}"
    found = {"passed": 0, "failed": 0, "cases": [], "together": why}
    replace(out, json.dumps(found))
    print(f"\ncases.py: together: {why}\ncases.py: now each case in a separate process", flush=True)
    for name in names_of(program, arguments):
        case, its_log = run_alone(program, name, limits[1])
        found["cases"].append(case)
        found["passed" if case["passed"] else "failed"] += 1
        print(f"cases.py: {'passed' if case['passed'] else 'FAILED'} alone: {name} {case['error']}", flush=True)
        if not case["passed"]:
            print(its_log[-20000:], flush=True)
        replace(out, json.dumps(found))
    return 1


def main(words):
    split = words.index("--")
    options, (program, *arguments) = words[:split], words[split + 1:]
    limits = [float(options[options.index(flag) + 1]) if flag in options else usual
              for flag, usual in (("--together", TOGETHER_SECONDS), ("--alone", ALONE_SECONDS))]
    return run(program, arguments, options[options.index("--out") + 1], limits, "--may-be-none" in options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
