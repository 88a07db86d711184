"""The runner of bench/gpu on steps that pass, fail, hang, crash and flood; killed and stopped at every place."""

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "../../bench/gpu"))

DEVICES = {"here": "printf 'device   name\\ngpu 0    A Fake GPU\\n'", "broken": "echo 'error: a peak'; kill -SEGV $$",
           "none": "printf 'processor\\nGPU: no CUDA device here: no driver\\n'"}


def shell(name, script, **more):
    return {"name": name, "command": ["sh", "-c", script], **more}


def default_signals():
    """A test that runs in the background may have been started with interrupts ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def alive(pid):
    """Whether a process runs: neither gone nor a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.out = folder.name, os.path.join(folder.name, "out")
        os.mkdir(os.path.join(self.root, "bin"))
        self.device("here")

    def device(self, which):
        path = os.path.join(self.root, "bin/lamina_bench")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{DEVICES[which]}\n")
        os.chmod(path, 0o755)

    def command(self, steps, *flags):
        path = os.path.join(self.root, "steps.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"steps": steps}, file)
        return [sys.executable, "-B", os.path.join(HERE, "fake_run.py"), path, self.root, "--out", self.out, *flags]

    def run_steps(self, steps, *flags, expected=None):
        done = subprocess.run(self.command(steps, *flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              check=False, universal_newlines=True)
        if expected is not None:
            self.assertEqual(done.returncode, expected, done.stdout + done.stderr)
        return done

    def results(self):
        with open(os.path.join(self.out, "results.json"), encoding="utf-8") as file:
            return json.load(file)["steps"]

    def states(self):
        return {name: record["state"] for name, record in self.results().items()}

    def text(self, name):
        with open(os.path.join(self.out, name), encoding="utf-8") as file:
            return file.read()

    def start(self, steps, *flags):
        child = subprocess.Popen(self.command(steps, *flags), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 preexec_fn=default_signals, universal_newlines=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def wait_for(self, path):
        latest = time.monotonic() + 60
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), latest, path)
            time.sleep(0.01)

    def test_every_end_of_a_step_has_its_state_and_a_line(self):
        self.run_steps([
            shell("good", "echo fine"),
            shell("bad", "echo doing; echo 'error: the reason'; exit 3"),
            shell("crash", "kill -SEGV $$"),
            shell("absent", "echo 'skipped: no tool'; exit 77"),
            {"name": "missing", "command": ["/no/such/program"]},
            shell("hang", "trap '' TERM; echo hanging; sleep 60", limit=1),
            shell("after", "exit 0"),
        ], expected=1)
        self.assertEqual(self.states(), {"good": "passed", "bad": "failed", "crash": "failed",
                                         "absent": "not available", "missing": "failed", "hang": "failed",
                                         "after": "passed"})
        lines = {name: record["line"] for name, record in self.results().items()}
        self.assertIn("error: the reason", lines["bad"])
        self.assertIn("SIGSEGV", lines["crash"])
        self.assertIn("no tool", lines["absent"])
        self.assertIn("timed out after 1 s", lines["hang"])
        self.assertIn("/no/such/program", lines["missing"])
        page = self.text("summary.md")
        self.assertIn("error: the reason", page)
        named = {name for name in ("results.json", "logs.txt", "tables.txt", "ncu.txt", "peers.jsonl.gz", "summary.md")
                 if name in page.splitlines()[-1]}
        self.assertEqual(named, set(os.listdir(self.out)))
        self.assertLessEqual(len(os.listdir(self.out)), 8)
        self.assertFalse(os.path.exists(self.out + ".work"))

    def test_a_flood_of_output_is_stopped_and_kept_short(self):
        self.run_steps([shell("flood", "yes 'a line of a flood'"), shell("after", "exit 0")], expected=1)
        self.assertIn("more than 64 MiB", self.results()["flood"]["line"])
        self.assertEqual(self.states()["after"], "passed")
        self.assertLess(os.path.getsize(os.path.join(self.out, "logs.txt")), 1 << 20)

    def test_what_a_step_leaves_running_ends_with_it(self):
        self.run_steps([shell("parent", f"sleep 60 & echo $! > {self.root}/pid")], expected=0)
        with open(self.root + "/pid", encoding="utf-8") as file:
            pid = int(file.read())
        self.assertFalse(alive(pid))

    def test_without_a_device_every_step_that_needs_one_fails_with_the_reason(self):
        self.device("none")
        steps = [shell("on the device", f"touch {self.root}/ran", needs=["device"]), shell("elsewhere", "exit 0")]
        self.run_steps(steps, expected=1)
        self.assertEqual(self.states(), {"on the device": "failed", "elsewhere": "passed"})
        self.assertEqual(self.results()["on the device"]["line"], "no device: no CUDA device here: no driver")
        self.assertFalse(os.path.exists(self.root + "/ran"))
        self.device("here")  # a later run finds one
        self.run_steps(steps, expected=0)
        self.assertEqual(self.states()["on the device"], "passed")

    def test_a_probe_that_breaks_is_told_and_no_reason_to_run_nothing(self):
        self.device("broken")
        done = self.run_steps([shell("on the device", "exit 0", needs=["device"])], expected=0)
        self.assertEqual(self.states(), {"on the device": "passed"})
        self.assertIn("lamina_bench devices: ended by SIGSEGV: error: a peak", done.stdout)

    def test_a_step_that_is_done_is_not_run_again_unless_asked(self):
        steps = [shell("once", f"echo ran >> {self.root}/count"),
                 shell("fails", f"echo ran >> {self.root}/count; exit 1")]
        for _ in range(2):
            self.run_steps(steps, expected=1)
        with open(self.root + "/count", encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 2)
        self.run_steps(steps, "--fresh", expected=1)
        with open(self.root + "/count", encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 4)

    def test_killed_at_any_step_the_next_run_goes_on_with_that_step(self):
        names = ["first", "second", "third"]
        # Each runs until the file of its name is there; what ran is counted.
        steps = [shell(name, f"echo {name} >> {self.root}/count; touch {self.root}/in-{name}; "
                             f"until [ -e {self.root}/go-{name} ]; do sleep 0.05; done") for name in names]
        for i, name in enumerate(names):
            child = self.start(steps)
            self.wait_for(f"{self.root}/in-{name}")
            self.assertEqual(self.states()[name], "running")
            child.send_signal(signal.SIGKILL)
            child.wait()
            with open(f"{self.root}/go-{name}", "w", encoding="utf-8"):
                pass
            self.assertEqual([self.states()[done] for done in names[:i]], ["passed"] * i)
        self.run_steps(steps, expected=0)
        self.assertEqual(self.states(), dict.fromkeys(names, "passed"))
        with open(self.root + "/count", encoding="utf-8") as file:
            self.assertEqual(sorted(file.read().split()), sorted(2 * names))
        self.assertEqual(self.text("logs.txt").count("the runner was killed while it ran"), 3)

    def test_a_step_that_was_killed_with_the_runner_twice_has_crashed(self):
        steps = [shell("deadly", f"echo 'error: last words'; touch {self.root}/in; sleep 60"), shell("after", "exit 0")]
        for _ in range(2):
            child = self.start(steps)
            self.wait_for(f"{self.root}/in")
            child.send_signal(signal.SIGKILL)
            child.wait()
            os.remove(f"{self.root}/in")
        self.run_steps(steps, expected=1)
        self.assertEqual(self.states(), {"deadly": "crashed", "after": "passed"})
        self.assertIn("last words", self.results()["deadly"]["line"])

    def test_killed_between_two_writes_nothing_counts_twice(self):
        self.run_steps([shell("first", "echo one", keeps="tables.txt")], expected=0)
        with open(os.path.join(self.out, "tables.txt"), "a", encoding="utf-8") as file:
            file.write("what a killed runner wrote before it could say so")
        self.run_steps([shell("first", "echo one", keeps="tables.txt"),
                        shell("second", "echo two", keeps="tables.txt")], expected=0)
        self.assertNotIn("killed runner", self.text("tables.txt"))
        self.assertEqual(self.text("tables.txt").split(), "======== first one ======== second two".split())

    def test_a_signal_ends_the_step_keeps_all_and_prints_the_page(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            steps = [shell("done", "exit 0"), shell("long", f"echo $$ > {self.root}/in.part; "
                                                            f"mv {self.root}/in.part {self.root}/in; sleep 60")]
            child = self.start(steps, "--fresh")
            self.wait_for(f"{self.root}/in")
            with open(f"{self.root}/in", encoding="utf-8") as file:
                pid = int(file.read())
            child.send_signal(number)
            printed = child.communicate(timeout=60)[0]
            self.assertEqual(child.returncode, 128 + number)
            self.assertEqual(self.states(), {"done": "passed", "long": "interrupted"})
            self.assertEqual(self.results()["long"]["attempts"], 0)  # no fault of the step's
            self.assertIn("## Left out for time", printed)
            self.assertIn("## Left out for time", self.text("summary.md"))
            self.assertFalse(alive(pid))
            os.remove(f"{self.root}/in")

    def test_steps_that_do_not_fit_are_left_out_named_and_run_later(self):
        steps = [shell("long", "exit 0", seconds=600), shell("short", "exit 0", seconds=1)]
        self.run_steps(steps, "--minutes", "0.5", expected=0)
        self.assertEqual(self.states(), {"long": "left out", "short": "passed"})
        self.assertRegex(self.text("summary.md"), r"Left out for time\n\n.*\n\n- A long: needs about 600 s")
        self.run_steps(steps, "--minutes", "20", expected=0)
        self.assertEqual(self.states(), {"long": "passed", "short": "passed"})

    def test_a_step_that_failed_runs_again_only_where_that_is_asked_for_and_after_the_others(self):
        steps = [shell("first", f"echo first >> {self.root}/order; test -e {self.root}/mended || exit 1"),
                 shell("second", f"echo second >> {self.root}/order")]
        self.run_steps(steps[:1], expected=1)
        self.run_steps(steps[:1], expected=1)
        with open(self.root + "/mended", "w", encoding="utf-8"):
            pass
        self.run_steps(steps, "--retry", expected=0)
        with open(self.root + "/order", encoding="utf-8") as file:
            self.assertEqual(file.read().split(), ["first", "second", "first"])

    def test_variables_that_change_the_math_do_not_reach_the_steps(self):
        with mock.patch.dict(os.environ, {"NVIDIA_TF32_OVERRIDE": "1"}):
            self.run_steps([shell("good", 'test -z "${NVIDIA_TF32_OVERRIDE-}"')], expected=0)

    def test_programs_that_lost_their_right_to_run_get_it_back(self):
        os.chmod(os.path.join(self.root, "bin/lamina_bench"), 0o644)
        self.run_steps([shell("good", "exit 0", needs=["device"])], expected=0)
        self.assertEqual(self.states(), {"good": "passed"})
        self.assertTrue(os.access(os.path.join(self.root, "bin/lamina_bench"), os.X_OK))

    def test_where_nothing_can_be_made_beside_the_results_the_steps_run_in_a_temporary_folder(self):
        with open(self.out + ".work", "w", encoding="utf-8"):
            pass
        self.run_steps([shell("good", "pwd")], expected=0)
        self.assertEqual(self.states(), {"good": "passed"})

    def test_the_budget_stops_a_step_that_outlasts_it(self):
        start = time.monotonic()
        self.run_steps([shell("slow", "sleep 60", seconds=3)], "--minutes", "0.08", expected=0)
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(self.states(), {"slow": "left out"})
        self.assertIn("when the time was over", self.results()["slow"]["line"])
        self.assertEqual(self.results()["slow"]["attempts"], 0)  # no fault of the step's
        self.run_steps([shell("endless", "sleep 60", seconds=1)], "--minutes", "0.05", expected=1)
        self.assertEqual(self.states()["endless"], "failed")  # it had twice its estimate

    def test_results_that_cannot_be_read_are_an_error_that_says_what_to_do(self):
        self.run_steps([shell("good", "exit 0")], expected=0)
        for content in ("{", "[]", '{"format": 99}', ""):
            with open(os.path.join(self.out, "results.json"), "w", encoding="utf-8") as file:
                file.write(content)
            done = self.run_steps([shell("good", "exit 0")], expected=2)
            self.assertIn("--fresh", done.stderr)
            self.assertIn("results.json", done.stderr)
        self.run_steps([shell("good", "exit 0")], "--fresh", expected=0)

    def test_results_of_another_commit_are_not_mixed_with_these(self):
        for commit, expected in (("a1", 0), ("b2", 2)):
            with open(os.path.join(self.root, "MANIFEST"), "w", encoding="utf-8") as file:
                file.write(f"commit: {commit}\n")
            done = self.run_steps([shell("good", "exit 0")], expected=expected)
        self.assertIn("a1", done.stderr)
        self.assertIn("b2", done.stderr)

    def test_a_folder_that_cannot_be_made_is_an_error(self):
        with open(self.out, "w", encoding="utf-8"):
            pass
        self.assertIn("--out", self.run_steps([shell("good", "exit 0")], expected=2).stderr)

    def test_wrong_use_is_refused_before_anything_runs(self):
        for flags in (["--minutes", "0"], ["--minutes", "nan"], ["--parts", "D"], ["--cudnn", "/no/such"],
                      ["--python", "/no/such"], ["--fresh", "--resume"], ["--unknown"]):
            self.run_steps([shell("good", f"touch {self.root}/ran")], *flags, expected=2)
        self.assertFalse(os.path.exists(self.root + "/ran"))

    def test_parts_are_picked_and_the_reports_of_steps_are_kept(self):
        report = json.dumps({"context": {}, "benchmarks": [
            {"name": "n", "run_name": "n", "run_type": "iteration", "real_time": 2.5,
             "key": {"what": "net", "network": "n", "part": "total", "backend": "cuda", "type": "f32"}}]})
        steps = [shell("a", "exit 0", part="A"),
                 shell("b", f"echo '{report}' > @work@/bench.json", part="B", kind="bench")]
        self.run_steps(steps, "--parts", "b", expected=0)
        self.assertEqual(self.states(), {"b": "passed"})
        with gzip.open(os.path.join(self.out, "bench.jsonl.gz"), "rt", encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["step"] for line in file], ["b"])
        self.assertRegex(self.text("summary.md"), r"n +\| 2\.50")


if __name__ == "__main__":
    unittest.main()
