"""A worker of a race: its requests, failures, end and measurements; and the file of a race."""

import contextlib
import io
import json
import os
import signal
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../bench/race"), os.path.join(HERE, "../../bench/race/peers")]
import results
import runner
import timers
import worker
from worker import Worker, WorkerError

GROWS = "print('{}', flush=True)\nfor _ in iter(input, ''):\n  bytearray(b'x' * (64 << 20)); print('{}', flush=True)"
ANSWERS = "import sys, time; print('{\"a\": 1}', flush=True)\nfor line in sys.stdin: "


class Workers(unittest.TestCase):
    def worker(self, program, patience=60):
        its = Worker("fake", [sys.executable, "-c", program], 1, patience)
        self.addCleanup(worker.close_all, [its], True)
        return its.greet()

    def test_a_pass_comes_back_with_what_others_used(self):
        sample = self.worker(ANSWERS + "print('{\"forward\": 0.25}', flush=True)").timed_pass("training nchw")
        self.assertEqual(sample["forward"], 0.25)
        self.assertGreaterEqual(sample["others_cores"], 0.0)

    def test_memory_is_the_peak_and_not_what_is_left(self):
        its = self.worker(GROWS)
        if its.memory_growth(lambda: None) is None:
            self.skipTest("this system does not report peaks of memory")
        for _ in range(2):  # the second call must not see the peak of the first
            self.assertGreaterEqual(its.memory_growth(lambda: its.ask("go")), 60 << 20)
        self.assertLess(its.memory_growth(lambda: None), 4 << 20)

    def test_there_is_no_peak_where_it_cannot_be_reset(self):
        its, work = self.worker(ANSWERS + "pass"), mock.Mock()
        with mock.patch.object(worker, "open", side_effect=PermissionError(13, "Permission denied"), create=True):
            self.assertIsNone(its.memory_growth(work))
        work.assert_not_called()

    def test_a_worker_that_fails_is_named_with_how(self):
        for program, text in (("sys.exit(3)", "fake ended with status 3"),
                              ("print('{\"error\": \"no layout\"}', flush=True)", "fake: no layout"),
                              ("print('compiling ...', flush=True)",
                               "fake answered 'compiling ...', which is not JSON")):
            with self.subTest(text), self.assertRaisesRegex(WorkerError, text):
                self.worker(ANSWERS + program).ask("pass training nchw")
        with self.assertRaisesRegex(WorkerError, "cannot start /no/such/program"):
            Worker("fake", ["/no/such/program"], 1, 1)

    def test_one_that_gives_no_answer_in_time_is_ended_with_what_it_has_started(self):
        its = self.worker("import json, subprocess, sys, time\nchild = subprocess.Popen(['sleep', '60'])\n"
                          "print(json.dumps({'pid': child.pid}), flush=True)\ntime.sleep(60)")
        pid = its.greeting["pid"]
        self.assertTrue(self.lives(pid))
        its.patience = 0.1
        with self.assertRaisesRegex(WorkerError, "fake gave no answer for 0.1 s"):
            its.ask("pass training nchw")
        self.assertEqual(its.child.wait(timeout=20), -signal.SIGKILL)
        latest = time.monotonic() + 20
        while self.lives(pid) and time.monotonic() < latest:
            time.sleep(0.01)
        self.assertFalse(self.lives(pid))

    def lives(self, pid):
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def test_workers_that_do_not_end_are_waited_for_together(self):
        program = ("import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('{}', flush=True)\n"
                   "parent = os.getppid()\nwhile os.getppid() == parent: time.sleep(0.1)")
        all_, waited = [self.worker(program) for _ in range(4)], []
        for its in all_:
            def wait(timeout=None, wait=its.child.wait):
                waited.append(timeout)
                return wait(timeout)
            its.child.wait = wait
        with mock.patch.object(worker, "END_SECONDS", 1):
            worker.close_all(all_, at_once=True)
        self.assertEqual([its.child.returncode for its in all_], [-signal.SIGKILL] * 4)
        self.assertLessEqual(sum(timeout for timeout in waited if timeout), 4)
        self.assertLess(max(timeout for timeout in waited[2:] if timeout is not None), 0.5)  # the first used the time


class Disturbances(unittest.TestCase):
    def test_a_pass_that_others_disturb_is_run_again_but_not_for_ever(self):
        for device, retries, cores, ran, disturbed in (
                ("cpu", 2, [0.0], 1, False), ("cpu", 2, [0.5, 0.5, 0.0], 3, False), ("cpu", 2, [0.9] * 3, 3, True),
                ("cpu", 0, [0.5], 1, True), ("cuda", 2, [0.9], 1, False), ("rehearsal", 1, [1.5, 1.5], 2, True)):
            variant = types.SimpleNamespace(layout="nchw", name="torch")
            fake = mock.Mock(**{"timed_pass.side_effect": [{"others_cores": each} for each in cores]})
            one = types.SimpleNamespace(options=types.SimpleNamespace(device=device, retries=retries),
                                        workers=mock.MagicMock(__getitem__=lambda *_: fake))
            with mock.patch.object(runner, "SETTLE_SECONDS", 0), contextlib.redirect_stderr(io.StringIO()) as said:
                sample = runner.Runner.quiet_pass(one, variant, runner.Case("net", {}, "training"))
            self.assertEqual((fake.timed_pass.call_count, sample["disturbed"]), (ran, disturbed))
            self.assertEqual(said.getvalue().count("net training: torch runs a pass again, as"), ran - 1)
            fake.timed_pass.assert_called_with("training nchw")


class Timers(unittest.TestCase):
    def test_events_are_recorded_around_the_work_on_an_idle_device(self):
        log = []

        class Event:
            def __init__(self, enable_timing):
                self.timed = enable_timing

            def record(self):
                log.append("record")

            def synchronize(self):
                log.append("wait")

            def elapsed_time(self, stop):
                return 2.5 if self.timed and stop is timer.stop else None

        timer = timers.EventTimer(mock.Mock(Event=Event, synchronize=lambda: log.append("idle")))
        result, sample = timer.time("forward", lambda: log.append("work") or "y")
        self.assertEqual(log, ["idle", "record", "work", "record", "wait"])
        self.assertEqual((result, sample["forward"]), ("y", 0.0025))
        self.assertIn("forward_cpu", sample)

    def test_the_wall_is_timed_around_the_work(self):
        result, sample = timers.WallTimer().time("forward", lambda: time.sleep(0.05) or "y")
        self.assertEqual(result, "y")
        self.assertGreaterEqual(sample["forward"], 0.05)
        self.assertLess(sample["forward_cpu"], sample["forward"])


class Files(unittest.TestCase):
    def test_a_file_is_whole_or_the_old_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "below", "out.json")
            out = results.File(path)
            self.assertFalse(out.written)
            out.write({"benchmarks": []})
            self.assertTrue(out.written)
            with self.assertRaises(TypeError):
                out.write({"not json": object()})
            with open(path) as file:
                self.assertEqual(json.load(file), {"benchmarks": []})
            self.assertEqual(os.listdir(os.path.dirname(path)), ["out.json"])

    def test_that_a_file_can_be_written_is_found_out_before_there_is_anything_to_write(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            results.File(path)
            self.assertEqual(os.listdir(folder), [])
            with self.assertRaisesRegex(results.Unwritable, f"cannot write {folder}: .* not a regular file"):
                results.File(folder)
            with open(path, "w") as file:
                file.write("an older run's")
            with self.assertRaisesRegex(results.Unwritable, f"cannot write {path}/below.json: File exists"):
                results.File(os.path.join(path, "below.json"))
            results.File(path)
            with open(path) as file:
                self.assertEqual(file.read(), "an older run's")

    def test_it_has_the_fields_of_the_schema(self):
        with open(os.path.join(HERE, "../../bench/results.schema.json")) as file:
            schema = json.load(file)["$defs"]
        self.assertEqual(results.FORMAT, schema["context"]["properties"]["lamina_format"]["const"])
        key = {"what": "net", "network": "n", "backend": "b", "type": "f32", "layout": "nchw", "batch": 1}
        row, = results.rows_of("inference", key, "a", [{"inference": 0.25, "inference_cpu": 0.5}], rerun="again")
        self.assertEqual(row["name"], "net/n/inference/b/f32/nchw/batch:1")
        for required, its in ((schema["context"]["required"], results.context(threads=1)),
                              (schema["row"]["required"] + ["time_unit", "real_times"], row),
                              (schema["row"]["properties"]["key"]["required"], row["key"])):
            self.assertLessEqual(set(required), set(its))


if __name__ == "__main__":
    unittest.main()
