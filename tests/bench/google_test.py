#!/usr/bin/env python3
"""lamina_bench has the flags and files of Google Benchmark. Google Benchmark's script compare.py compares two programs
or two files. This test does the same steps with lamina_bench. usage: google_test.py LAMINA_BENCH"""

import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

BENCH = os.path.abspath(sys.argv.pop(1))
ROWS = ["mnist_mlp", "--backend=eigen", "--batch=2"]
SECONDS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def screen(*flags):
    return subprocess.run([BENCH, *ROWS, *flags], capture_output=True, text=True, check=True).stdout


def measured(*flags):
    """What the script reads from a program: the program writes its results into an existing empty file."""
    with tempfile.NamedTemporaryFile() as file:
        shown = screen(*flags, f"--benchmark_out={file.name}", "--benchmark_out_format=json")
        with open(file.name, encoding="utf-8") as again:
            return shown, json.load(again)


def changes(before, after):
    """The relative changes of the two times by row name, and the geometric mean of the ratios of mean times."""
    by_name = lambda file: {one["name"]: one for one in file["benchmarks"] if one["run_type"] == "aggregate"}
    first, second = by_name(before), by_name(after)
    assert list(first) == list(second) and first
    change = lambda a, b: 0 if a == b else (b - a) / abs(a)
    found = {name: [change(first[name][time], second[name][time]) for time in ("real_time", "cpu_time")]
             for name in first}
    product, means = 1, [name for name in first if name.endswith("_mean")]
    for name in means:
        seconds = [file[name]["real_time"] * SECONDS[file[name]["time_unit"]] for file in (first, second)]
        product *= seconds[1] / seconds[0]
    return found, product ** (1 / len(means))


class Google(unittest.TestCase):
    def test_two_programs_are_compared(self):
        shown, first = measured("--benchmark_display_aggregates_only=true", "--passes=3")
        _, second = measured("--passes=3")
        self.assertEqual(first["context"].get("json_schema_version", 1), 1)
        found, ratio = changes(first, second)
        self.assertEqual(len(found), 3 * 4)
        self.assertGreater(ratio, 0)
        lines = [line.split()[0] for line in shown.splitlines() if line.startswith("net/")]
        self.assertEqual(lines, list(found))
        for file in first, second:
            passes = [one for one in file["benchmarks"] if one["run_type"] == "iteration"]
            self.assertEqual([one["repetition_index"] for one in passes], 3 * [0, 1, 2])
            for row in file["benchmarks"][:: 3 + 4]:
                its = [one for one in file["benchmarks"] if one["run_name"] == row["name"]]
                for time in "real_time", "cpu_time":
                    mean = sum(one[time] for one in its[:3]) / 3
                    self.assertAlmostEqual(its[3][time], mean, delta=1e-9 * mean)

    def test_two_files_are_compared(self):
        _, first = measured("--passes=2")
        second = copy.deepcopy(first)
        for one in second["benchmarks"]:
            one["real_time"] *= 2
        found, ratio = changes(first, second)
        self.assertAlmostEqual(ratio, 2)
        for name, (real, cpu) in found.items():
            self.assertTrue(real in (0, 1) and cpu == 0, name)

    def test_flags_mean_what_they_mean_there(self):
        _, file = measured("--passes=2", "--benchmark_report_aggregates_only", "--benchmark_time_unit=us",
                           "--benchmark_context=who=me")
        self.assertEqual({one["run_type"] for one in file["benchmarks"]}, {"aggregate"})
        self.assertEqual({one["time_unit"] for one in file["benchmarks"]}, {"us"})
        self.assertEqual(file["context"]["who"], "me")
        _, file = measured("--benchmark_repetitions=2", "--benchmark_min_time=0.02")
        passes = [one for one in file["benchmarks"] if one["run_type"] == "iteration"]
        self.assertEqual(len(passes), 6)
        self.assertGreater(min(one["iterations"] for one in passes), 1)
        # A pass predicts the number of iterations. A busy machine may slow that pass, so half of the rows may be short.
        seconds = sorted(one["iterations"] * one["real_time"] * SECONDS[one["time_unit"]] for one in passes)
        self.assertGreater(seconds[3], 0.005)
        _, file = measured("--passes=3", "--benchmark_enable_random_interleaving=true")
        self.assertEqual(len(file["benchmarks"]), 3 * (3 + 4))
        for form in "--benchmark_format=csv", "--benchmark_out_format=csv":
            with tempfile.NamedTemporaryFile() as out:
                shown = screen("--passes=1", form, f"--benchmark_out={out.name}")
                if "out" in form:
                    with open(out.name, encoding="utf-8") as file:
                        shown = file.read()
            header, *rows = shown.splitlines()
            self.assertTrue(header.startswith("name,iterations,real_time,cpu_time,time_unit,"))
            self.assertTrue(len(rows) == 3 and rows[0].startswith('"net/mnist_mlp/forward/eigen/f32/nchw/batch:2",1,'))
        for flag, shown in (("color=true", "\033["), ("counters_tabular", "Iterations flops_per_second")):
            self.assertIn(shown, screen("--passes=1", f"--benchmark_{flag}"))
            self.assertNotIn(shown, screen("--passes=1", "--v=1"))
        names = screen("--benchmark_list_tests=true", "--benchmark_filter=-net").splitlines()
        self.assertTrue(names and all(name.startswith("layer/") for name in names))
        with unittest.mock.patch.dict(os.environ, BENCHMARK_FILTER="total", BENCHMARK_REPETITIONS="2",
                                      BENCHMARK_FORMAT="csv", BENCHMARK_TIME_UNIT="us", BENCHMARK_CONTEXT="who=me",
                                      BENCHMARK_LIST_TESTS="true"):
            self.assertEqual(screen(), "net/mnist_mlp/total/eigen/f32/nchw/batch:2\n")
            shown, file = measured("--benchmark_list_tests=false", "--benchmark_format=console")
            self.assertIn("Benchmark", shown)
            self.assertEqual([one["time_unit"] for one in file["benchmarks"] if one["run_type"] == "iteration"], ["us", "us"])
            self.assertEqual(file["context"]["who"], "me")
        _, file = measured("--noise=900%")
        self.assertGreaterEqual(min(one["repetitions"] for one in file["benchmarks"]), 6)


if __name__ == "__main__":
    unittest.main()
