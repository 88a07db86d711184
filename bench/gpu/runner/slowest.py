#!/usr/bin/env python3
"""Nsight Compute on the slowest kernels of a program: one run that times every launch, then one run for the longest
launch of each of the slowest kernels, with the details of its report as text. Leaves the clocks alone.

usage: slowest.py NCU COUNT INPUT PROGRAM [ARGUMENT...], INPUT being what the program reads

Was never run on a device. Exit status 77 where ncu does not work here, with its first complaint."""

import csv
import subprocess
import sys

UNAVAILABLE = 77
METRIC = "gpu__time_duration.sum"
MOST_LAUNCHES = "4000"  # that are timed: each takes milliseconds
COMMON = ["--clock-control", "none", "--target-processes", "all"]


def launches(table):
    """[(kernel, nanoseconds)] in the order of launches, from ncu's table of one metric."""
    lines = [line for line in table.splitlines() if not line.startswith("==")]
    start = next((i for i, line in enumerate(lines) if "Kernel Name" in line), None)
    if start is None:
        return []
    found = []
    for row in csv.DictReader(lines[start:]):
        try:
            if row.get("Metric Name") == METRIC:
                found.append((row["Kernel Name"], float(row["Metric Value"].replace(",", ""))))
        except (KeyError, ValueError, AttributeError):
            continue
    return found


def slowest(found, count):
    """[(kernel, total nanoseconds, launches, number of its longest launch)], the longest total first."""
    kernels = {}
    for name, time in found:
        kernels.setdefault(name, []).append(time)
    order = sorted(kernels.items(), key=lambda item: -sum(item[1]))[:count]
    return [(name, sum(times), len(times), times.index(max(times))) for name, times in order]


def main(words):
    (ncu, count, given), program = words[:3], words[3:]

    def profiled(*options):
        done = subprocess.run([ncu, *COMMON, *options, *program], input=(given + "\n").encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout.decode("utf-8", "replace")

    _, output = profiled("--csv", "--print-units", "base", "--metrics", METRIC, "--launch-count", MOST_LAUNCHES)
    picked = slowest(launches(output), int(count))
    if not picked:
        complaint = next((line for line in output.splitlines() if "==ERROR==" in line), output.strip()[-300:])
        print(f"not available: ncu timed no kernel: {complaint}")
        return UNAVAILABLE
    whole = sum(time for _, time in launches(output))
    for name, total, times, _ in picked:
        print(f"{total / 1e6:10.3f} ms {100 * total / whole:5.1f} %  {times:5} launches  {name}")
    failed = 0
    for name, _, _, longest in picked:
        print(f"\n---- {name}, its launch number {longest}", flush=True)
        status, report = profiled("--set", "full", "--print-details", "all", "--kernel-name-base", "demangled",
                                  "--kernel-name", name, "--launch-skip", str(longest), "--launch-count", "1")
        print(report, flush=True)
        failed += status != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
