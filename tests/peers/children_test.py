"""The children of a race: what they are asked, those that fail, what they measure with; and the file of their rows."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../bench/race"), os.path.join(HERE, "../../bench/race/peers")]
import pythons
import resident
import rows
import timers
import workers


class Resident(unittest.TestCase):
    def test_growth_is_the_peak_and_not_what_is_left(self):
        child = subprocess.Popen([sys.executable, "-c", "for _ in iter(input, ''): bytearray(b'x' * (64 << 20)); print()"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.communicate, b"\n")

        def work():
            child.stdin.write(b"go\n")
            child.stdin.flush()
            child.stdout.readline()

        work()
        try:
            for _ in range(2):  # the second finds the peak of the first reset
                self.assertGreaterEqual(resident.growth_of(child.pid, work), 60 << 20)
        except resident.Unsupported as error:
            self.skipTest(str(error))
        self.assertLess(resident.growth_of(child.pid, lambda: None), 4 << 20)

    def test_there_is_no_growth_where_the_peak_cannot_be_reset(self):
        def refused(path, *mode):
            raise PermissionError(13, "Permission denied", path)
        work = mock.Mock()
        with mock.patch.object(resident, "open", refused, create=True):
            with self.assertRaisesRegex(resident.Unsupported, "peak.*Permission denied"):
                resident.growth_of(1, work)
        work.assert_not_called()


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


class Workers(unittest.TestCase):
    def worker(self, *words):
        worker = workers.Worker("fake", [sys.executable, os.path.join(HERE, "fake_worker.py"), *words], 1)
        self.addCleanup(worker.child.stdout.close)
        self.addCleanup(worker.close)
        return worker

    def test_a_pass_comes_back_with_what_others_used(self):
        worker = self.worker("0.25")
        sample = workers.Subject(worker, "torch", "torch", "nchw").run("training")
        self.assertEqual(sample["forward"], 0.25)
        self.assertGreaterEqual(sample["others_cores"], 0.0)

    def test_memory_is_measured_in_a_separate_child(self):
        worker = self.worker("0.25")
        with mock.patch.object(resident, "growth_of", lambda pid, work: (work(), pid)[1]):
            pid = workers.Subject(worker, "torch", "torch", "nchw").memory("training")["peak_bytes"]
            self.assertNotEqual(pid, worker.child.pid)
            self.assertEqual(workers.Subject(worker, "lamina", "eigen", "nchw").memory("training")["plan_bytes"], 7)

    def test_an_unknown_peak_is_an_answer_and_does_not_end_the_race(self):
        subject = workers.Subject(self.worker("0.25"), "torch", "torch", "nchw")
        with mock.patch.object(resident, "growth_of", side_effect=resident.Unsupported("no such file")):
            self.assertEqual(subject.memory("training"), {"unsupported": "no such file"})
        self.assertEqual(subject.run("training")["forward"], 0.25)

    def test_a_child_that_dies_is_named_with_its_status(self):
        with self.assertRaisesRegex(workers.WorkerError, "fake ended with status 3"):
            self.worker("1", "die").ask("pass training nchw")

    def test_a_child_that_refuses_is_quoted(self):
        with self.assertRaisesRegex(workers.WorkerError, "fake: no layout 'nhwc'"):
            self.worker("1", "refuse").ask("pass training nhwc")

    def test_a_child_that_gives_no_answer_in_time_is_ended(self):
        worker = workers.Worker("fake", [sys.executable, os.path.join(HERE, "fake_worker.py"), "1", "hang"], 1, patience=5)
        self.addCleanup(worker.close)
        worker.patience = 0.5
        with self.assertRaisesRegex(workers.WorkerError, "fake gave no answer for 0.5 s"):
            worker.ask("pass training nchw")
        self.assertEqual(worker.child.wait(timeout=20), -signal.SIGKILL)

    def test_what_an_ended_child_has_started_ends_with_it(self):
        worker = workers.Worker("parent", ["sh", "-c", "sleep 60 & echo \"{\\\"pid\\\": $!}\"; wait"], 1, patience=5)
        self.addCleanup(worker.close)
        self.assertTrue(self.lives(worker.versions["pid"]))
        worker.patience = 0.1
        with self.assertRaisesRegex(workers.WorkerError, "no answer"):
            worker.ask("pass training nchw")
        latest = time.monotonic() + 20
        while self.lives(worker.versions["pid"]) and time.monotonic() < latest:
            time.sleep(0.01)
        self.assertFalse(self.lives(worker.versions["pid"]))

    def lives(self, pid):
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def test_an_answer_that_is_not_json_is_quoted(self):
        with self.assertRaisesRegex(workers.WorkerError, "fake answered 'compiling ...', which is not JSON"):
            self.worker("1", "babble").ask("pass training nchw")

    def test_children_that_do_not_end_are_waited_for_together(self):
        alive = "kill -0 $PPID 2> /dev/null"  # a test that is killed leaves none behind
        stubborn = ["sh", "-c", f"trap '' TERM; echo '{{}}'; while {alive}; do sleep 0.1; done"]
        children = [workers.Worker("stubborn", stubborn, 1) for _ in range(4)]
        start = time.monotonic()
        with mock.patch.object(workers, "END_SECONDS", 1):
            workers.close_all(children, at_once=True)
        self.assertTrue(1 <= time.monotonic() - start < 3)
        self.assertEqual([worker.child.returncode for worker in children], [-signal.SIGKILL] * 4)

    def test_children_have_ended_before_the_runner_on_a_gpu_kills_the_race(self):
        sys.path.insert(0, os.path.join(HERE, "../../bench/gpu"))
        from runner import process
        self.assertLess(workers.END_SECONDS, process.GRACE_SECONDS)

    def test_a_missing_program_is_named(self):
        with self.assertRaisesRegex(workers.WorkerError, "cannot start /no/such/program"):
            workers.Worker("fake", ["/no/such/program"], 1)


class Files(unittest.TestCase):
    def test_the_commit_of_a_file_is_that_of_our_side(self):
        context = rows.context("compare", peers={})
        versions = {"lamina/cuda/strict/plain": {"commit": "a"}, "torch": {"commit": "b"}, "lamina/cudnn": {}}
        rows.take_versions(context, versions)
        self.assertEqual((context["commit"], context["peers"]), ("a", versions))

    def test_a_file_knows_that_it_is_written_when_an_interrupt_comes_at_once(self):
        def replace_and_interrupt(part, path, replace=os.replace):
            replace(part, path)
            os.kill(os.getpid(), signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with tempfile.TemporaryDirectory() as folder:
            file = rows.File(os.path.join(folder, "out.json"))
            with mock.patch("os.replace", replace_and_interrupt), self.assertRaises(KeyboardInterrupt):
                file.write({}, [])
            self.assertTrue(file.written and os.path.exists(file.path))
        self.assertEqual(signal.pthread_sigmask(signal.SIG_BLOCK, ()), set())

    def test_rows_have_the_form_of_google_benchmark(self):
        samples = [{"forward": 0.001, "backward": 0.003, "forward_cpu": 0.002, "backward_cpu": 0.006}] * 2
        found = rows.rows_of("training", samples, what="net", network="alexnet", backend="torch", type="f32",
                             layout="nhwc", batch=16)
        self.assertEqual([row["name"] for row in found[::2]],
                         [f"net/alexnet/{what}/torch/f32/nhwc/batch:16" for what in ("forward", "backward", "total")])
        total = found[-1]
        self.assertEqual((total["run_type"], total["time_unit"], total["repetition_index"]), ("iteration", "ms", 1))
        self.assertAlmostEqual(total["real_time"], 4.0)
        self.assertAlmostEqual(total["cpu_time"], 8.0)
        self.assertAlmostEqual(total["items_per_second"], 4000.0)

    def test_a_file_is_whole_or_the_old_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "below", "out.json")
            with self.assertRaises(TypeError), rows.File(path) as out:
                self.assertFalse(out.written)
                out.write(rows.context("compare"), [], comparison=[])
                self.assertTrue(out.written)
                out.write({"not json": object()}, [])
            with open(path) as file:
                self.assertEqual(json.load(file)["benchmarks"], [])
            self.assertEqual(os.listdir(os.path.dirname(path)), ["out.json"])

    def test_a_file_that_grows_is_written_now_and_then_and_when_it_is_left(self):
        clock = types.SimpleNamespace(now=100.0, used=0.0)
        clock.monotonic, clock.thread_time = (lambda: clock.now), (lambda: clock.used)

        def dump(*its, dump=json.dump, **more):
            dump(*its, **more)
            clock.used += 2

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(rows, "time", clock), \
                mock.patch("json.dump", dump):
            path, found, counts = os.path.join(folder, "out.json"), [], []

            def count():
                with open(path) as file:
                    return len(json.load(file)["benchmarks"])

            with self.assertRaises(KeyboardInterrupt), rows.File(path) as out:
                for seconds in (0, 0, 99, 2, 1):  # two of writing are a fiftieth of a hundred
                    clock.now += seconds
                    found.append({"name": "row"})
                    out.write({}, found)
                    counts.append(count())
                found.append({"name": "of a process that has not ended"})
                raise KeyboardInterrupt
            self.assertEqual((counts, count()), ([1, 1, 1, 4, 4], 5))
            self.assertEqual(clock.used, 6)

    def test_that_a_file_can_be_written_is_found_out_before_there_is_anything_to_write(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            rows.File(path)
            self.assertEqual(os.listdir(folder), [])
            with self.assertRaisesRegex(rows.Unwritable, f"cannot write {folder}: .* not a regular file"):
                rows.File(folder)
            with open(path, "w") as file:
                file.write("an older run's")
            with self.assertRaisesRegex(rows.Unwritable, f"cannot write {path}/below.json: {path} .* not a folder"):
                rows.File(os.path.join(path, "below.json"))
            rows.File(path)
            with open(path) as file:
                self.assertEqual(file.read(), "an older run's")

    def test_an_interpreter_without_the_modules_is_refused(self):
        with self.assertRaisesRegex(pythons.NoTorch, "cannot import no_such_module"):
            pythons.find([sys.executable], "no_such_module")
        with self.assertRaisesRegex(pythons.NoTorch, "--python"):
            pythons.find((), "no_such_module")


if __name__ == "__main__":
    unittest.main()
