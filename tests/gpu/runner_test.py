"""run-all on steps that pass, fail, hang and crash. run-all is killed or stopped at different moments."""

import json
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "../../bench/gpu")
sys.dont_write_bytecode = True
sys.path[:0] = [SOURCE, os.path.dirname(SOURCE)]

import machine  # noqa: E402
import steps  # noqa: E402
import suite  # noqa: E402

DEVICES = {"here": "echo 'gpu 0    A Fake GPU      9.0  2987.3'", "none": "echo 'GPU: no CUDA device here'",
           "hangs": "exec sleep 60"}
FAILED = "0.001 s: before\npool_test.cpp:15: FAILED:\n  CHECK( a == b )\nwith expansion:\n  1 == 2\n\ncases: 1 failed"


def shell(name, script, lane="", seconds=1, needs=()):
    return [name, lane, seconds, needs, ["sh", "-c", script]]


def run_all(script, planned, *flags):
    """Runs run-all on the steps in a file. It does not search for Pythons."""
    found = [steps.Step(name, lane, seconds, tuple(needs), tuple(command))
             for name, lane, seconds, needs, command in json.loads(pathlib.Path(planned).read_text(encoding="utf-8"))]
    with mock.patch.object(steps, "every", lambda *_: found), mock.patch.object(machine, "PYTHONS", ()), \
            mock.patch.object(machine, "PROBE_SECONDS", 1), mock.patch.object(steps.Step, "limit", lambda step: 2 * step.seconds), \
            mock.patch.object(sys, "argv", [script, *flags]):
        runpy.run_path(script, run_name="__main__")


class Runner(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.root, self.out, self.steps = (os.path.join(folder, name) for name in ("pack", "out", "steps.json"))
        os.makedirs(os.path.join(self.root, "bin"))
        shutil.copy(os.path.join(SOURCE, "run-all"), self.root)
        self.device("here")

    def write(self, name, content):
        pathlib.Path(self.root, name).write_text(content, encoding="utf-8")

    def ran(self):
        path = pathlib.Path(self.root, "ran")
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    def device(self, which):
        self.write("bin/lamina_bench", f"#!/bin/sh\n{DEVICES[which]}\n")
        pathlib.Path(self.root, "bin/lamina_bench").chmod(0o755)

    def start(self, planned, *flags):
        """Starts run-all on these steps, in a new process that runs this file."""
        pathlib.Path(self.steps).write_text(json.dumps(planned), encoding="utf-8")
        words = ["run-all", self.root + "/run-all", self.steps, "--out", self.out, *flags]
        child = subprocess.Popen([sys.executable, "-B", __file__, *words], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True,
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        for cleanup in (child.stdout.close, child.wait, child.kill):
            self.addCleanup(cleanup)
        return child

    def run_steps(self, planned, *flags, expected=0):
        """Runs the steps to the end, and returns the output of run-all."""
        child = self.start(planned, *flags)
        printed = child.communicate()[0]
        self.assertEqual(child.returncode, expected, printed)
        return printed

    def wait_for(self, count):
        latest = time.monotonic() + 600
        while len(self.ran()) < count:
            self.assertLess(time.monotonic(), latest)
            time.sleep(0.01)

    def kept(self):
        """{name: text} of the files in results.tar.gz."""
        with tarfile.open(os.path.join(self.out, "results.tar.gz")) as tar:
            return {one.name: tar.extractfile(one).read().decode() for one in tar}

    def records(self):
        return json.loads(self.kept()["steps.json"])["steps"]

    def states(self):
        return {name: record["state"] for name, record in self.records().items()}

    def page(self):
        return pathlib.Path(self.out, "summary.md").read_text(encoding="utf-8")

    def test_every_end_of_a_step_has_its_state_and_a_line(self):
        ends = [
            (shell("good", "echo fine; echo 0 errors"), "passed", ""),
            (shell("bad", "echo doing; echo 'error: reason'; exit 3"), "failed", "exit status 3: error: reason"),
            (shell("assertion", f"echo '{FAILED}'; exit 1"), "failed",
             "exit status 1: pool_test.cpp:15: FAILED: CHECK( a == b ) with expansion: 1 == 2"),
            (shell("crash", "kill -SEGV $$"), "failed", "ended by SIGSEGV"),
            (shell("absent", "echo 'skipped: no tool'; exit 77"), "not available", "skipped: no tool"),
            (shell("no cases", "echo 'No tests ran'"), "failed", "exit status 0: No tests ran"),
            (shell("hang", "sleep 60"), "failed", "timed out after 2 s"),
            (shell("leaves", f"sleep 60 & echo $! > {self.root}/ran"), "passed", ""),
            (shell("needs", "exit 0", needs=["ncu"]), "not available", "no ncu on the path"),
            (shell("after", "exit 0", needs=["crash"]), "left out", "as crash"),
        ]
        self.run_steps([step for step, _, _ in ends], expected=1)
        self.assertEqual(self.states(), {step[0]: state for step, state, _ in ends})
        for step, _, line in ends:
            self.assertTrue(self.records()[step[0]]["line"].startswith(line), self.records()[step[0]])
        self.assertFalse(os.path.exists(f"/proc/{self.ran()[0]}/exe"))  # the process has ended, or is a zombie
        self.assertIn("\n2 passed, 5 failed, 2 not available, 1 left out.\n", self.page())
        self.assertIn("- bad: exit status 3: error: reason", self.page())
        self.assertEqual(set(os.listdir(self.out)), {"results.tar.gz", "summary.md"})
        self.assertEqual(self.kept()["bad.txt"], "doing\nerror: reason\n")

    def test_without_a_device_nothing_runs_and_the_page_says_why_and_a_probe_that_hangs_is_said(self):
        planned = [shell("on the device", f"echo ran >> {self.root}/ran")]
        self.device("none")
        self.assertIn("no device, so no step was run: no CUDA device here", self.run_steps(planned, expected=1))
        self.assertEqual(self.ran(), [])
        self.device("hangs")
        self.assertRegex(self.run_steps(planned), "(?s)looking for the GPU.*devices printed nothing in 1 s; the steps")
        self.assertEqual(self.ran(), ["ran"])

    def test_what_failed_is_tried_again_first_by_another_pack_or_where_it_is_named(self):
        planned = [shell(name, f"echo {name} >> {self.root}/ran; {end}")
                   for name, end in (("passes", ""), ("fails", "exit 1"), ("large", ""))]
        planned[2][2] = 600
        for flags, commit, ran in (((), "a1", ["passes", "fails"]), ((), "a1", []),
                                   (("--steps", "^fa"), "a1", ["fails"]), ((), "b2", ["fails"]),
                                   (("--minutes", "20"), "b2", ["large"]), ((), "b2", [])):
            self.write("MANIFEST", f"commit: {commit}\n")
            self.write("ran", "")
            self.run_steps(planned, *flags, expected=1)
            self.assertEqual(self.ran(), ran, flags)

    def test_steps_of_lanes_run_at_once_and_a_timed_one_alone(self):
        alone = f"test ! -e {self.root}/busy"
        both = f"touch {self.root}/busy; echo x >> {self.root}/ran; " \
               f"until [ $(wc -l < {self.root}/ran) = 2 ]; do sleep 0.01; done; sleep 0.2; rm -f {self.root}/busy"
        self.run_steps([shell("before", alone), shell("one", both, "a", 60), shell("two", both, "b", 60),
                        shell("after", alone)])
        self.run_steps([shell("smoke", "sleep 0.5; exit 1", "a", 60),  # the other lane waits for it
                        shell("suite", "exit 0", "b", 60, ["smoke"])], expected=1)
        self.assertEqual((self.states()["suite"], self.records()["suite"]["line"]), ("left out", "as smoke"))

    def test_killed_in_any_step_the_next_run_goes_on_with_what_ran(self):
        planned = [shell(name, f"echo {name} >> {self.root}/ran; "
                               f"until [ -e {self.root}/go-{name} ]; do sleep 0.05; done", lane, 60)
                   for name, lane in (("first", ""), ("left", "a"), ("right", "b"))]
        for ran, then, passed in ((["first"], ["first"], {}),
                                  (["first", "left", "right"], ["left", "right"], {"first": "passed"})):
            self.write("ran", "")
            child = self.start(planned)
            self.wait_for(len(ran))
            child.kill()
            child.wait()
            self.assertEqual((sorted(self.ran()), self.states()), (ran, passed))
            for name in then:
                self.write(f"go-{name}", "")
        self.run_steps(planned)
        self.assertEqual(self.states(), {name: "passed" for name in ("first", "left", "right")})

    def test_a_signal_ends_the_steps_keeps_the_others_and_prints_the_page(self):
        planned = [shell("done", "exit 0"), shell("long", f"echo $$ > {self.root}/ran; sleep 60", "a", 60)]
        for number in (signal.SIGINT, signal.SIGTERM):
            self.write("ran", "")
            child = self.start(planned)
            self.wait_for(1)
            child.send_signal(number)
            printed = child.communicate(timeout=600)[0]
            self.assertEqual((child.returncode, self.states()), (128 + number, {"done": "passed", "long": "left out"}))
            self.assertEqual(printed[printed.index("# Lamina"):], self.page())
            self.assertFalse(os.path.exists(f"/proc/{self.ran()[0]}/exe"))

    def test_time_that_is_over_leaves_steps_for_the_next_call(self):
        planned = [shell("large", "exit 0", seconds=600), shell("small", "exit 0"), shell("endless", "sleep 600")]
        self.run_steps(planned[:2], "--minutes", "5")
        self.assertEqual(self.states(), {"large": "left out", "small": "passed"})
        self.assertIn("large: needs about 600 s", self.page())
        planned[2][2] = 3
        self.run_steps(planned, "--minutes", "0.06")  # 3.6 s
        self.assertEqual(self.states()["endless"], "left out")

    def test_a_failed_suite_costs_30_s_more_at_most_and_names_the_cases_that_fail(self):
        case = """case "$*" in
        *--list-test-names-only*) {listing} echo before; echo "fine, and well"; echo guilty; echo late;;
        before) echo before-again;; "fine\\\\, and well") ;; guilty) echo "error: me"; kill -SEGV $$;; late) exec sleep 60;;
        "-d yes -# [#some]") echo '0.001 s: before'; {together} ;; esac\n"""
        self.assertEqual(suite.ALONE_SECONDS, 30)
        shorter = f"import sys; sys.path[:0] = ['{SOURCE}']; import suite; suite.ALONE_SECONDS = 2; " \
                  "suite.LISTING_SECONDS = 1; sys.exit(suite.main(*sys.argv[1:]))"
        command = [sys.executable, "-B", "-c", shorter, "1", self.root + "/bin/gpu_tests", "[#some]"]
        slow = "exit status 124: not ended after 1 s, in 'fine, and well'"
        killed = "test.cpp:15: FAILED:\n  due to a fatal error condition:\n  SIGTERM - Termination request signal\n"
        bad = "2 of 3 cases fail alone guilty: ended by SIGSEGV: error: me late: it had not ended after"
        hangs = "exit status 1: exit status 1, no case listed to try alone together"
        for together, listing, line in (("exit 0", "", ""),
                                        ("echo together; exit 1", "", "exit status 1: exit status 1, " + bad),
                                        ("echo together; exit 1", "exec sleep 60;", hangs),
                                        ("exec sleep 60", "", f"{slow}, {bad}"),
                                        (f"echo '{killed}'; exec sleep 60", "", f"{slow}, {bad}")):
            self.write("bin/gpu_tests", "#!/bin/sh\n" + case.format(together=together, listing=listing))
            os.chmod(self.root + "/bin/gpu_tests", 0o644)  # a copy of the folder may lack the permission to execute
            shutil.rmtree(self.out, ignore_errors=True)
            self.run_steps([["some", "", 90, [], command]], expected=bool(line))
            self.assertLess(self.records()["some"]["seconds"], 20)
            self.assertTrue(self.records()["some"]["line"].startswith(line), self.records())
            self.assertNotIn("SIGTERM", self.records()["some"]["line"])
            self.assertNotIn("before-again", self.kept()["some.txt"])

    def test_results_that_cannot_be_continued_and_wrong_use_are_errors_before_anything_runs(self):
        planned = [shell("good", f"echo ran >> {self.root}/ran")]
        self.run_steps(planned, "--rehearse")
        os.remove(self.root + "/ran")
        path = pathlib.Path(self.out, "results.tar.gz")
        whole = path.read_bytes()
        for content in (whole, whole[:-9], b"", b"{"):  # the first file is from a rehearsal
            path.write_bytes(content)
            self.assertRegex(self.run_steps(planned, expected=2), r"results\.tar\.gz cannot be continued: .*--out")
        for flags in (["--minutes", "0"], ["--minutes", "nan"], ["--steps", "("], ["--unknown"], ["--out", self.steps],
                      ["--steps", "nosuch"]):
            self.run_steps(planned, *flags, expected=2)
        self.assertEqual(self.ran(), [])

    def test_the_page_shows_what_programs_found(self):
        compared = {"name": "net/n/total/cudnn", "first": "fastest", "fastest": "torch@nhwc", "second": "cudnn",
                    "ratio": 0.5, "low": 0.4, "high": 0.6, "verdict": "faster"}
        row = {"name": "net/n/total/cuda_median", "run_name": "net/n/total/cuda", "real_time": 2.5,
               "time_unit": "ms", "key": {"what": "net"}, "aggregate_name": "median"}
        reports = {"race": {"comparisons": [{**compared, "first": "torch"}, compared]},
                   "passes, cuda": {"benchmarks": [row, {**row, "aggregate_name": "mean"}]},
                   "other form": {"comparisons": [{"name": "x"}]}}
        self.run_steps([shell(name, f"echo '{json.dumps(report)}' > rows.json") for name, report in reports.items()])
        page = [[cell.strip() for cell in line.split("|")[1:-1]] for line in self.page().splitlines()
                if line.startswith("| ") and "--" not in line]
        self.assertEqual(page, [
            ["row", "first", "second", "ratio", "the second is"],
            ["net/n/total/cudnn", "fastest (torch@nhwc)", "cudnn", "0.500 (0.400 to 0.600)", "faster"],
            ["step", "row", "median"], ["cuda", "net/n/total/cuda", "2.500 ms"]])
        self.assertIn("another form: KeyError: 'first'", self.records()["other form"]["line"])
        self.assertEqual(json.loads(self.kept()["race.json"]), reports["race"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["run-all"]:
        run_all(*sys.argv[2:])
    unittest.main()
