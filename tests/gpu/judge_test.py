"""What run-all makes of what programs print: the state of a step, its first error, its numbers; and the page."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER = os.path.join(HERE, "../../bench/gpu/runner")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "../../bench/gpu"))

from runner import judge, slowest, steps, summary, text  # noqa: E402
from runner.process import Ended  # noqa: E402

GOOD, BAD = Ended(0, "", 1.0), Ended(1, "", 1.0)
FAILED = """-------------------------------------------------------------------------------
max pool picks the first
-------------------------------------------------------------------------------
tests/ops/pool_test.cpp:12
...............................................................................

tests/ops/pool_test.cpp:15: FAILED:
  CHECK( a == b )
with expansion:
  1 == 2

===============================================================================
test cases:  4 |  3 passed | 1 failed
assertions: 10 |  9 passed | 1 failed
"""
SANITIZED = "All tests passed (5 assertions in 2 test cases)\n\n========= ERROR SUMMARY: {} errors\n"


def runs(pid):
    """Whether a process is there, and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not so after {seconds} s")
        time.sleep(0.02)


def step(kind):
    return steps.Step("a step", "A", 1, 1, kind, ())


class Texts(unittest.TestCase):
    def test_catch_counts_of_both_versions(self):
        self.assertEqual(text.catch_counts("All tests passed (12 assertions in 1 test case)"),
                         {"passed": 1, "failed": 0, "skipped": 0})
        self.assertEqual(text.catch_counts(FAILED), {"passed": 3, "failed": 1, "skipped": 0})
        self.assertEqual(text.catch_counts("test cases: 6 | 4 passed | 1 failed | 1 skipped"),
                         {"passed": 4, "failed": 1, "skipped": 1})
        self.assertIsNone(text.catch_counts("No tests ran"))

    def test_the_first_error_is_the_assertion_with_its_numbers(self):
        self.assertEqual(text.first_error(FAILED),
                         "tests/ops/pool_test.cpp:15: FAILED: CHECK( a == b ) with expansion: 1 == 2")

    def test_the_first_error_is_the_first_line_that_says_so(self):
        self.assertEqual(text.first_error("well\n0 errors so far\nlamina_bench: no row could run\nerror 7\n"),
                         "lamina_bench: no row could run")
        self.assertEqual(text.first_error("nothing\nspecial\n\n"), "special")
        self.assertEqual(text.first_error(""), "")

    def test_a_long_log_keeps_both_ends(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"head" + b"x" * 10000 + b"tail")
            file.flush()
            short = text.read(file.name, 1000)
        self.assertTrue(short.startswith(b"head") and short.endswith(b"tail"))
        self.assertLess(len(short), 1100)


class Judge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def of(self, kind, ended=GOOD, log="", **files):
        for name, content in files.items():
            with open(os.path.join(self.folder, name + ".json"), "w", encoding="utf-8") as file:
                json.dump(content, file)
        return judge.judge(step(kind), ended, log, self.folder)

    def test_tests_count_a_case_that_fails_alone_and_name_it(self):
        cases = [{"name": "fine", "passed": True, "error": ""}, {"name": "guilty", "passed": False, "error": "why"}]
        found = self.of("tests", BAD, cases={"passed": 1, "failed": 1, "cases": cases, "together": "why"})
        self.assertEqual((found["state"], found["passed"], found["failed"]), ("failed", 1, 1))
        self.assertIn("guilty: why", found["line"])

    def test_tests_that_fail_only_together_have_failed(self):
        cases = [{"name": "fine", "passed": True, "error": ""}]
        found = self.of("tests", BAD, cases={"passed": 1, "failed": 0, "cases": cases, "together": "a leak"})
        self.assertEqual(found["state"], "failed")
        self.assertIn("a leak; alone all 1 pass", found["line"])

    def test_tests_that_pass_in_a_process_that_then_crashes_have_failed_with_its_end(self):
        found = self.of("tests", Ended(-6, "", 1.0), "0.001 s: one\nlibgcc_s.so.1 must be installed\n",
                        cases={"passed": 1, "failed": 0, "cases": [], "together": "passed"})
        self.assertEqual((found["state"], found["line"]),
                         ("failed", "ended by SIGABRT, after all 1 cases had passed: libgcc_s.so.1 must be installed"))

    def test_tests_without_a_verdict_have_failed(self):
        found = self.of("tests", Ended(-15, "timed out after 9 s", 9.0), "0.001 s: one\n0.002 s: two\n")
        self.assertEqual(found["state"], "failed")
        self.assertEqual(found["line"], "timed out after 9 s; 2 cases had ended, the last: two")

    def test_rows_give_medians_and_the_first_error(self):
        def row(name, **more):
            key = {"what": name.partition("/")[0], "network": "a", "part": "total"}
            return {"name": name, "run_name": name, "run_type": "iteration", "key": key, **more}
        rows = [row("net/a/total", real_time=t) for t in (3.0, 1.0, 2.0)]
        refused = row("layer/x", error_message="Unsupported: no such layout", failure="unsupported")
        wrong = row("layer/y", error_message="DeviceError: an illegal address", failure="failed")
        found = self.of("bench", bench={"benchmarks": [*rows, refused]})
        self.assertEqual(found["state"], "passed")
        self.assertEqual(found["medians"], [{"key": rows[0]["key"], "ms": 2.0}])
        self.assertEqual(found["line"], "1 rows, 1 refused")
        two = [{**row("net/a/total", real_time=1.0), "variant": label} for label in "ab"]
        self.assertEqual(self.of("bench", bench={"benchmarks": two})["medians"], [])
        found = self.of("bench", BAD, bench={"benchmarks": [*rows, refused, wrong]})
        self.assertEqual(found["state"], "failed")
        self.assertIn("layer/y: DeviceError: an illegal address", found["line"])
        found = self.of("bench", BAD, bench={"benchmarks": [refused]})
        self.assertIn("no such layout", found["line"])

    def test_a_race_without_ratios_has_failed_and_one_without_pytorch_is_not_available(self):
        self.assertEqual(self.of("peers", GOOD, "")["state"], "failed")
        self.assertEqual(self.of("peers", Ended(77, "", 1.0), "compare: no Python here can import torch")["state"],
                         "not available")
        self.assertEqual(self.of("peers", GOOD, "", peers={"comparison": [{"net": "a"}]})["state"], "passed")

    def test_a_race_that_one_of_ours_had_to_leave_has_failed_with_the_reason(self):
        def failure(name, reason="an illegal address", refused=False, ours=True):
            return {"name": name, "ours": ours, "layout": "nchw", "stage": "open training", "reason": reason,
                    "refused": refused}
        race = {"comparison": [{"net": "a"}], "failures": [failure("torch/f32/compiled", ours=False)]}
        found = self.of("peers", GOOD, "", peers=race)
        self.assertEqual(found["state"], "passed")
        self.assertIn("torch/f32/compiled nchw, open training: an illegal address", found["line"])
        race["failures"].append(failure("lamina/cuda/tf32/plain", "no such math", refused=True))
        self.assertEqual(self.of("peers", GOOD, "", peers=race)["state"], "passed")
        race["failures"].append(failure("lamina/cudnn/strict/graph"))
        found = self.of("peers", GOOD, "", peers=race)
        self.assertEqual((found["state"], found["comparison"]), ("failed", [{"net": "a"}]))
        self.assertIn("lamina/cudnn/strict/graph nchw", found["line"])

    def test_a_sanitizer_passes_only_with_a_count_of_no_errors_and_cases_that_ran(self):
        self.assertEqual(self.of("sanitizer", GOOD, SANITIZED.format(0))["state"], "passed")
        for log in ("========= ERROR SUMMARY: 0 errors\nNo tests ran", SANITIZED.split("\n", maxsplit=1)[0]):
            self.assertEqual(self.of("sanitizer", GOOD, log)["state"], "failed")
        found = self.of("sanitizer", Ended(9, "", 1.0), "========= Invalid __global__ write of size 4 bytes\n"
                        + SANITIZED.format(3))
        self.assertEqual(found["state"], "failed")
        self.assertIn("3 errors", found["line"])
        self.assertIn("Invalid __global__ write", found["line"])

    def test_a_sanitizer_that_refuses_the_device_is_not_available(self):
        found = self.of("sanitizer", BAD, "========= Error: Device not supported. Please refer to the documentation\n")
        self.assertEqual(found["state"], "not available")
        self.assertIn("Device not supported", found["line"])


class Cases(unittest.TestCase):
    """cases.py on a program that lists and runs cases as Catch2 does."""

    def run_cases(self, program, seconds="5", *more):
        with tempfile.TemporaryDirectory() as folder:
            path, out = os.path.join(folder, "program"), os.path.join(folder, "cases.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nP='All tests passed (1 assertion in 1 test case)'\n" + program)
            os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
            done = subprocess.run([sys.executable, "-B", os.path.join(RUNNER, "cases.py"), "--out", out, "--alone",
                                   seconds, *more, "--", path, "-#", "[#some]"], stdout=subprocess.PIPE, check=False,
                                  timeout=60, universal_newlines=True)
            with open(out, encoding="utf-8") as file:
                return done, json.load(file)

    def test_where_all_pass_together_none_is_run_alone(self):
        done, found = self.run_cases('case "$*" in "-d yes -# [#some]") echo $P;; *) echo error; exit 1;; esac\n')
        self.assertEqual((done.returncode, found["together"], found["cases"]), (0, "passed", []))

    def test_where_one_crashes_each_is_run_alone_and_the_guilty_one_is_named(self):
        done, found = self.run_cases(
            'case "$*" in *--list-test-names-only*) echo "fine, and well"; echo guilty; echo hangs; exit 3;;\n'
            '"fine\\\\, and well") echo $P;; guilty) echo "error: mine"; kill -SEGV $$;; hangs) exec sleep 60;;\n'
            '*) kill -SEGV $$;; esac\n', "1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual([(case["name"], case["passed"]) for case in found["cases"]],
                         [("fine, and well", True), ("guilty", False), ("hangs", False)])
        self.assertIn("SIGSEGV: error: mine", found["cases"][1]["error"])
        self.assertIn("hung for 1 s", found["cases"][2]["error"])

    def test_where_all_together_hang_each_is_run_alone(self):
        done, found = self.run_cases('case "$*" in *--list*) echo fine;; fine) echo $P;; '
                                     '*) echo "0.002 s: the last"; exec sleep 60;; esac\n', "5", "--together", "1")
        self.assertEqual((done.returncode, found["passed"]), (1, 1))
        self.assertIn("hung for 1 s; 1 cases had ended, the last: the last", found["together"])

    def test_where_it_is_killed_its_program_ends_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path, pid = os.path.join(folder, "program"), os.path.join(folder, "pid")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho $$ > {pid}.part; mv {pid}.part {pid}; exec sleep 60\n")
            os.chmod(path, 0o755)
            cases = subprocess.Popen([sys.executable, "-B", os.path.join(RUNNER, "cases.py"), "--out",
                                      os.path.join(folder, "cases.json"), "--", path, "all"])
            wait_until(lambda: os.path.exists(pid))
            cases.kill()
            cases.wait()
            with open(pid, encoding="utf-8") as file:
                number = file.read().strip()
            wait_until(lambda: not runs(number))

    def test_a_skip_is_a_failure_and_so_is_a_pattern_without_cases(self):
        done, found = self.run_cases('case "$*" in *--list*) echo a;; *) echo "skipped: no GPU"; exit 77;; esac\n')
        self.assertEqual((done.returncode, found["failed"]), (1, 1))
        self.assertIn("no GPU", found["together"])
        done, found = self.run_cases('case "$*" in *--list*) echo a;; *) echo "test cases: 2 | 1 passed | 1 skipped";; '
                                     'esac\n')  # exit status 0, as Catch2 3 has it
        self.assertEqual((done.returncode, found["failed"]), (1, 1))
        none = 'case "$*" in *--list*) ;; *) echo "No tests ran";; esac\n'
        done, found = self.run_cases(none)
        self.assertEqual((done.returncode, found["together"]), (1, "no case matches [#some]"))
        self.assertEqual(self.run_cases(none, "5", "--may-be-none")[0].returncode, 0)


class Slowest(unittest.TestCase):
    TABLE = ('==PROF== Profiling\n"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
             '"0","a(int, float)","gpu__time_duration.sum","ns","1,000"\n'
             '"1","b<3>()","gpu__time_duration.sum","ns","700"\n'
             '"2","b<3>()","gpu__time_duration.sum","ns","800"\n==PROF== Disconnected\n')

    def test_kernels_are_ordered_by_their_sum_with_their_longest_launch(self):
        self.assertEqual(slowest.slowest(slowest.launches(self.TABLE), 8),
                         [("b<3>()", 1500.0, 2, 1), ("a(int, float)", 1000.0, 1, 0)])
        self.assertEqual(len(slowest.slowest(slowest.launches(self.TABLE), 1)), 1)

    def test_the_longest_launch_of_each_is_reported_by_its_whole_name(self):
        with tempfile.TemporaryDirectory() as folder:
            ncu = os.path.join(folder, "ncu")
            with open(ncu, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\ncase \"$*\" in *--csv*) cat <<'END'\n{self.TABLE}END\n;; "
                           "*) echo \"report: $*\"; cat;; esac\n")
            os.chmod(ncu, 0o755)
            done = subprocess.run([sys.executable, "-B", os.path.join(RUNNER, "slowest.py"), ncu, "1", "a pass",
                                   "program"], stdout=subprocess.PIPE, check=False, universal_newlines=True)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"--kernel-name b<3>\(\) --launch-skip 1 --launch-count 1 program\na pass")
        self.assertNotIn("--kernel-name a", done.stdout)

    def test_a_tool_that_times_nothing_is_not_available_and_says_why(self):
        done = subprocess.run([sys.executable, "-B", os.path.join(RUNNER, "slowest.py"), "/bin/echo", "8", "input",
                               "==ERROR== LibraryNotLoaded"], stdout=subprocess.PIPE, check=False,
                              universal_newlines=True)
        self.assertEqual(done.returncode, 77)
        self.assertIn("==ERROR== LibraryNotLoaded", done.stdout)


class Page(unittest.TestCase):
    def test_the_table_of_ratios_takes_our_faster_variant(self):
        def line(variant, what, milliseconds):
            return {"net": "n", "pass": what, "precision": "tf32", "backend": "cudnn:/a/b", "variant": variant,
                    "peer": "torch", "peer_variant": f"of {what}", "ms": milliseconds, "peer_ms": 4.0,
                    "ratio": milliseconds / 4, "low": 0.1, "high": 0.9}
        lines = [line("plain", "total", 3.0), line("graph", "total", 2.0), line("graph", "forward", 1.0)]
        head, rows = summary.ratio_rows({"race": {"comparison": lines}})
        self.assertEqual(rows, [["n", "cudnn", "tf32", "graph", "of forward, of total",
                                 "1.00 / 4.00: 0.25 (0.10 to 0.90)", "", "2.00 / 4.00: 0.50 (0.10 to 0.90)", ""]])
        self.assertEqual(len(head), len(rows[0]))

    def test_trainings_have_a_table_of_their_own(self):
        line = {"net": "mnist_mlp", "pass": "epoch", "precision": "f32", "backend": "cuda", "variant": "", "peer": "torch",
                "peer_variant": "eager", "ms": 1.0, "peer_ms": 2.0, "ratio": 0.5, "low": 0.4, "high": 0.6}
        records = {"race": {"comparison": [line]}}
        self.assertEqual(summary.ratio_rows(records)[1], [])
        self.assertEqual(summary.ratio_rows(records, summary.EPOCHS)[1],
                         [["mnist_mlp", "cuda", "f32", "", "eager", "1.00 / 2.00: 0.50 (0.40 to 0.60)"]])


if __name__ == "__main__":
    unittest.main()
