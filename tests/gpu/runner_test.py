"""run-all on steps that pass, fail, hang, crash and flood; killed and stopped at every place. Where it is not killed or
stopped it runs in this process."""

import contextlib
import gzip
import io
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "../../bench/gpu")
sys.dont_write_bytecode = True
sys.path[:0] = [SOURCE, os.path.dirname(SOURCE)]

from runner import machine, process, results, steps, text  # noqa: E402

DEVICES = {"here": "printf 'device   name\\ngpu 0    A Fake GPU\\n'", "broken": "echo 'error: a peak'; kill -SEGV $$",
           "none": "printf 'processor\\nGPU: no CUDA device here: no driver\\n'"}
FAILED = "\n".join(("a case", "tests/ops/pool_test.cpp:15: FAILED:", "  CHECK( a == b )", "with expansion:", "  1 == 2",
                    "", "test cases: 4 | 3 passed | 1 failed"))


def shell(name, script, **more):
    return {"name": name, "command": ["sh", "-c", script], **more}


def run_all(script, planned, *flags):
    """Runs the script on the steps in a file. It looks for no Pythons, and waits little for what does not end."""
    with open(planned, encoding="utf-8") as file:
        found = [steps.Step(**{"seconds": 1, **step, "command": tuple(step["command"])}) for step in json.load(file)]
    with mock.patch.object(steps.Plan, "steps", lambda _: found), mock.patch.object(process, "GRACE_SECONDS", 0.5), \
            mock.patch.multiple(machine, USUAL=(), ENVIRONMENTS=()), mock.patch.object(sys, "argv", [script, *flags]):
        runpy.run_path(script, run_name="__main__")


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
        self.root, self.out, self.steps = (os.path.join(folder.name, name) for name in ("pack", "out", "steps.json"))
        os.makedirs(os.path.join(self.root, "bin"))
        shutil.copy(os.path.join(SOURCE, "run-all"), self.root)
        self.device("here")

    def write(self, name, content):
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
            file.write(content)

    def read(self, name):
        with open(os.path.join(self.out, name), encoding="utf-8") as file:
            return file.read()

    def device(self, which):
        self.write("bin/lamina_bench", f"#!/bin/sh\n{DEVICES[which]}\n")
        os.chmod(os.path.join(self.root, "bin/lamina_bench"), 0o755)

    def words(self, steps, *flags):
        """What run_all() takes."""
        with open(self.steps, "w", encoding="utf-8") as file:
            json.dump(steps, file)
        return [os.path.join(self.root, "run-all"), self.steps, "--out", self.out, *flags]

    def run_steps(self, steps, *flags, expected=0):
        """What it prints on both streams."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), self.assertRaises(SystemExit) as end:
            run_all(*self.words(steps, *flags))
        self.assertEqual(end.exception.code, expected, out.getvalue() + err.getvalue())
        return types.SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue())

    def start(self, steps, *flags):
        """It in a process of its own, which is this file."""
        child = subprocess.Popen([sys.executable, "-B", __file__, "run-all", *self.words(steps, *flags)],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=default_signals,
                                 universal_newlines=True)
        for cleanup in (child.stdout.close, child.wait, child.kill):
            self.addCleanup(cleanup)
        return child

    def wait_for(self, name):
        path, latest = os.path.join(self.root, name), time.monotonic() + 600
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), latest, path)
            time.sleep(0.01)
        return path

    def records(self):
        return json.loads(self.read("results.json"))["steps"]

    def states(self):
        return {name: record["state"] for name, record in self.records().items()}

    def kept(self):
        """{name: text} of the files in the tar, whose end has to be in order."""
        with tarfile.open(os.path.join(self.out, "results.tar")) as tar:
            return {one.name: gzip.decompress(tar.extractfile(one).read()).decode() for one in tar}

    def test_every_end_of_a_step_has_its_state_and_a_line(self):
        cudnn = os.path.join(self.root, "cudnn")
        os.mkdir(cudnn)
        self.write("cudnn/libcudnn.so.9", "")
        ends = [
            (shell("good", "echo fine; echo 0 errors"), "passed", ""),
            (shell("bad", "echo doing; echo 'error: the reason'; exit 3"), "failed",
             "exit status 3: error: the reason"),
            (shell("assertion", f"echo '{FAILED}'; exit 1"), "failed",
             "exit status 1: tests/ops/pool_test.cpp:15: FAILED: CHECK( a == b ) with expansion: 1 == 2"),
            (shell("crash", "kill -SEGV $$"), "failed", "ended by SIGSEGV"),
            (shell("absent", "echo 'skipped: no tool'; exit 77"), "not available", "skipped: no tool"),
            (shell("no cases", "echo 'No tests ran'"), "failed", "exit status 0: No tests ran"),
            ({"name": "missing", "command": ["/no/such/program"]}, "failed",
             "cannot start /no/such/program: No such file or directory"),
            (shell("hang", "trap '' TERM; sleep 60", limit=1), "failed", "timed out after 1 s"),
            (shell("flood", "yes"), "failed", "printed more than 64 MiB: y"),  # its last line cannot be cut
            (shell("leaves", f"sleep 60 & echo $! > {self.root}/pid"), "passed", ""),
            (shell("math", 'test -z "${NVIDIA_TF32_OVERRIDE-}"'), "passed", ""),
            (shell("needs", "exit 0", needs=["two cudnn"]), "not available",
             "1 folders with cuDNN were found; name them with --cudnn"),
        ]
        with mock.patch.dict(os.environ, {"NVIDIA_TF32_OVERRIDE": "1"}):
            self.run_steps([step for step, _, _ in ends], "--cudnn", cudnn, expected=1)
        self.assertEqual(self.states(), {step["name"]: state for step, state, _ in ends})
        for step, _, line in ends:
            self.assertTrue(self.records()[step["name"]]["line"].startswith(line), self.records()[step["name"]])
        with open(self.root + "/pid", encoding="utf-8") as file:
            self.assertFalse(alive(int(file.read())))
        page = self.read("summary.md")
        self.assertIn("\n3 passed, 7 failed, 2 not available.\n", page)
        self.assertIn("- bad: exit status 3: error: the reason", page)
        self.assertEqual(set(os.listdir(self.out)), {"results.json", "results.tar", "summary.md"})
        self.assertEqual(self.kept()["bad.txt.gz"], "doing\nerror: the reason\n")
        self.assertLess(len(self.kept()["flood.txt.gz"]), 1 << 18)
        self.assertFalse(os.path.exists(self.out + ".work"))

    def test_without_a_device_nothing_runs_and_the_page_says_why(self):
        steps = [shell("on the device", f"touch {self.root}/ran")]
        self.device("none")
        done = self.run_steps(steps, expected=1)
        self.assertIn("no device, so no step was run: no CUDA device here: no driver", done.stdout)
        self.assertFalse(os.path.exists(self.root + "/ran"))
        self.run_steps(steps, "--rehearse", "--fresh")
        self.device("broken")  # which is told, and no reason to run nothing
        done = self.run_steps(steps, "--fresh")
        self.assertIn("lamina_bench devices: ended by SIGSEGV: error: a peak", done.stdout)
        self.assertEqual(self.states(), {"on the device": "passed"})

    def test_what_is_done_runs_again_only_where_that_is_asked_for(self):
        steps = [shell("passes", f"echo passes >> {self.root}/ran"),
                 shell("fails", f"echo fails >> {self.root}/ran; exit 1")]
        for flags, ran in (((), ["passes", "fails"]), ((), []), (("--retry",), ["fails"]),
                           (("--fresh",), ["passes", "fails"]), (("--fresh", "--steps", "^fa"), ["fails"])):
            self.write("ran", "")
            self.run_steps(steps, *flags, expected=1)
            with open(self.root + "/ran", encoding="utf-8") as file:
                self.assertEqual(file.read().split(), ran, flags)

    def test_killed_at_any_step_the_next_run_goes_on_with_that_step(self):
        names = ["first", "second"]
        steps = [shell(name, f"echo {name} | tee -a {self.root}/ran; touch {self.root}/in-{name}; "
                             f"until [ -e {self.root}/go-{name} ]; do sleep 0.05; done") for name in names]
        for i, name in enumerate(names):
            child = self.start(steps)
            self.wait_for(f"in-{name}")
            self.assertEqual(self.states(), {**dict.fromkeys(names[:i], "passed"), name: "running"})
            child.kill()
            child.wait()
            with open(os.path.join(self.out, "results.tar"), "ab") as file:
                file.write(b"what a killed runner wrote before it could say so")
            self.write(f"go-{name}", "")
        self.run_steps(steps)
        self.assertEqual(self.states(), dict.fromkeys(names, "passed"))
        with open(self.root + "/ran", encoding="utf-8") as file:
            self.assertEqual(file.read().split(), [name for name in names for _ in range(2)])
        self.assertEqual(self.kept(), {f"{name}.{end}": f"{name}\n" for name in names
                                       for end in ("killed.txt.gz", "txt.gz")})

    def test_a_step_that_was_killed_with_the_runner_twice_has_crashed(self):
        steps = [shell("deadly", f"echo 'error: last words'; touch {self.root}/in; sleep 60"), shell("after", "exit 0")]
        for _ in range(2):
            child = self.start(steps)
            os.remove(self.wait_for("in"))
            child.kill()
            child.wait()
        self.run_steps(steps, expected=1)
        self.assertEqual(self.states(), {"deadly": "crashed", "after": "passed"})
        self.assertIn("twice: error: last words", self.records()["deadly"]["line"])

    def test_a_signal_ends_the_step_keeps_all_and_prints_the_page(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            steps = [shell("done", "exit 0"),
                     shell("long", f"echo $$ > {self.root}/in.part; mv {self.root}/in.part {self.root}/in; sleep 60")]
            child = self.start(steps, "--fresh")
            path = self.wait_for("in")
            with open(path, encoding="utf-8") as file:
                pid = int(file.read())
            os.remove(path)
            child.send_signal(number)
            printed = child.communicate(timeout=600)[0]
            self.assertEqual(child.returncode, 128 + number)
            self.assertEqual(self.states(), {"done": "passed", "long": "interrupted"})
            self.assertEqual(self.records()["long"]["attempts"], 0)  # no fault of the step's
            self.assertIn("## Left for the next call", printed)
            self.assertEqual(printed[printed.index("# Lamina"):], self.read("summary.md"))
            self.assertFalse(alive(pid))

    def test_time_that_is_over_leaves_steps_for_the_next_call(self):
        steps = [shell("large", "exit 0", seconds=600), shell("small", "exit 0"), shell("endless", "sleep 600")]
        self.run_steps(steps[:2], "--minutes", "5")
        self.assertEqual(self.states(), {"large": "left out", "small": "passed"})
        self.assertIn("large: needs about 600 s", self.read("summary.md"))
        self.run_steps(steps[:2], "--minutes", "20")
        self.assertEqual(self.states(), {"large": "passed", "small": "passed"})
        self.run_steps(steps, "--minutes", "0.03")  # less than twice the estimate of a second
        self.assertEqual(self.states()["endless"], "left out")

    def test_a_step_that_the_end_of_the_time_stopped_has_failed_where_it_had_twice_its_estimate(self):
        judge = runpy.run_path(os.path.join(SOURCE, "run-all"))["Run"].judge
        for limit, state in ((19, "left out"), (20, "failed"), (120, "failed")):
            self.assertEqual(judge(mock.Mock(first_error=lambda: ""), steps.Step("a step", 10, ()),
                                   process.Ended(-15, f"timed out after {limit} s", limit), limit)[0], state)

    def test_where_cases_fail_together_each_is_tried_alone_and_the_guilty_one_is_named(self):
        case = """case "$*" in *--list-test-names-only*) echo "fine, and well"; echo guilty; exit 2;;
        "fine\\\\, and well") ;; guilty) echo "error: mine"; kill -SEGV $$;; "-# [#some]") {together} ;; esac\n"""
        for together, end in (
                ("echo together; exit 1", "1 of 2 cases fail alone: guilty: ended by SIGSEGV: error: mine"),
                ("exit 0", "")):
            self.write("bin/gpu_tests", "#!/bin/sh\n" + case.format(together=together))
            step = {"name": "some", "command": [self.root + "/bin/gpu_tests", "-#", "[#some]"], "cases": True}
            os.chmod(step["command"][0], 0o644)  # some ways of copying lose who may run a file
            self.run_steps([step], "--fresh", expected=bool(end))
            self.assertEqual(self.records()["some"]["line"], end)
            if end:
                self.assertRegex(self.kept()["some.txt.gz"], "together\n\n---- alone: guilty: .*\nerror: mine\n$")

    def test_results_that_cannot_be_continued_and_wrong_use_are_errors_before_anything_runs(self):
        steps = [shell("good", f"touch {self.root}/ran")]
        self.write("MANIFEST", "commit: a1\n")
        self.run_steps(steps)
        os.remove(self.root + "/ran")
        for content in ("{", "[]", '{"format": 99}', "", self.read("results.json").replace("a1", "b2")):
            with open(os.path.join(self.out, "results.json"), "w", encoding="utf-8") as file:
                file.write(content)
            self.assertRegex(self.run_steps(steps, expected=2).stderr, r"results\.json cannot be continued: .*--fresh")
        for flags in (["--minutes", "0"], ["--minutes", "nan"], ["--steps", "("], ["--cudnn", "/no/such"],
                      ["--python", "/no/such"], ["--unknown"], ["--out", self.steps]):
            self.run_steps(steps, *flags, expected=2)
        self.assertFalse(os.path.exists(self.root + "/ran"))
        self.run_steps(steps, "--fresh")

    def test_the_page_shows_what_programs_found(self):
        def compared(first, **more):
            return {"name": "net/n/total/cudnn", "first": first, "second": "cudnn", "ratio": 0.5, "low": 0.4,
                    "high": 0.6, "verdict": "faster", **more}
        row = {"name": "net/n/total/cuda_median", "run_name": "net/n/total/cuda", "real_time": 2.5,
               "time_unit": "ms", "key": {"what": "net"}, "aggregate_name": "median"}
        reports = {
            "race": {"comparisons": [compared("torch"), compared("fastest", name="net/n/forward/cudnn"),
                                     compared("fastest", fastest="torch@nhwc")]},
            "two versions of cuDNN": {"comparisons": [compared("/cudnn/9.1")]},
            "passes, cuda": {"benchmarks": [row, {**row, "aggregate_name": "mean"}, {**row, "key": {"what": "layer"}}]},
            "other form": {"comparisons": [{"name": "x"}]}}
        self.run_steps([shell(name, f"echo '{json.dumps(report)}' > @work@/rows.json")
                        for name, report in reports.items()])
        self.assertNotIn("Beside PyTorch", self.read("summary.md"))  # which is not in every comparison
        page = [line.split("|")[1:-1] for line in self.read("summary.md").splitlines() if line.startswith("| ")]
        self.assertEqual([[cell.strip() for cell in line] for line in page], [
            ["row", "first", "second", "ratio", "the second is"],
            ["net/n/total/cudnn", "fastest (torch@nhwc)", "cudnn", "0.500 (0.400 to 0.600)", "faster"],
            ["net/n/total/cudnn", "/cudnn/9.1", "cudnn", "0.500 (0.400 to 0.600)", "faster"],
            ["backend", "row", "median"], ["cuda", "net/n/total/cuda", "2.500 ms"]])
        self.assertIn("another form: KeyError: 'first'", self.records()["other form"]["line"])
        self.assertEqual(json.loads(self.kept()["race.rows.json.gz"]), reports["race"])


class Parts(unittest.TestCase):
    def test_no_file_comes_home_too_large(self):
        with tempfile.TemporaryDirectory() as folder:
            found = results.Results(folder, {}, False)
            added = [found.add_file(f"{i}", os.urandom(3 << 20)) for i in range(6)]
            self.assertEqual(added, 4 * [True] + 2 * [False])
            with tarfile.open(os.path.join(folder, "results.tar")) as tar:
                self.assertEqual(len(tar.getmembers()), 4)

    def test_a_long_text_keeps_both_ends(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"head" + b"x" * 10000 + b"tail")
            file.flush()
            short = text.read(file.name, 1000)
        self.assertTrue(short.startswith(b"head") and short.endswith(b"tail") and len(short) < 1100)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run-all"]:
        run_all(*sys.argv[2:])
    unittest.main()
