#!/usr/bin/env python3
"""Nsight Compute on the slowest kernels of a program: what it says of the longest launch of each. Leaves the clocks
alone. It has never run on a device.

usage: slowest.py NCU PROGRAM [ARGUMENT...]

Exit status 77 where ncu does not work here, with its complaint."""

import csv
import subprocess
import sys

KERNELS = 8
OPTIONS = ("--csv", "--print-units", "base", "--clock-control", "none", "--target-processes", "all", "--launch-count",
           "700", "--section", "SpeedOfLight", "--section", "LaunchStats", "--section", "Occupancy",
           "--section", "WarpStateStats")


def launches(output):
    """[(kernel, nanoseconds, [(metric, unit, value)])] in the order of launches, from ncu's table."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    found = {}
    for row in csv.DictReader(lines):
        found.setdefault(row["ID"], []).append(row)
    return [(rows[0]["Kernel Name"], float(row["Metric Value"].replace(",", "")),
             [(one["Metric Name"], one["Metric Unit"], one["Metric Value"]) for one in rows])
            for rows in found.values() for row in rows if row["Metric Name"] == "Duration"][:700]


def main(ncu, *program):
    done = subprocess.run([ncu, *OPTIONS, *program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode("utf-8", "replace")
    kernels = {}
    for name, time, metrics in launches(output):
        kernels.setdefault(name, []).append((time, metrics))
    if not kernels:
        complaint = [line for line in output.splitlines() if "==ERROR==" in line] or [output.strip()[-300:]]
        print(f"not available: ncu timed no kernel: {complaint[0]}")
        return 77
    times = {name: sum(time for time, _ in its) for name, its in kernels.items()}
    slowest = sorted(times, key=times.get, reverse=True)[:KERNELS]
    for name in slowest:
        print(f"{times[name] / 1e6:10.3f} ms {100 * times[name] / sum(times.values()):5.1f} % "
              f"{len(kernels[name]):5} launches  {name}")
    for name in slowest:
        print(f"\n---- the longest launch of {name}")
        for metric, unit, value in max(kernels[name])[1]:
            print(f"{metric:45} {value:>16} {unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
