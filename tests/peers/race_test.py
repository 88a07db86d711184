"""The race against a peer, without one: order, ratios, intervals, rows, and children that fail."""

import json
import os
import random
import signal
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../bench/race"), os.path.join(HERE, "../../bench/race/peers")]
import pythons
import race
import resident
import rows
import teams
import timers
import workers

race.SETTLE_SECONDS = 0


class Recorder:
    """A subject that takes no time and writes down when it was asked; `cores` is what others use, call by call, and
    `fails_at` the number of the call that fails."""

    fails_at = None

    def __init__(self, peer, layout, log, forward=1.0, cores=(), name=None, variant="", precision="f32"):
        self.peer, self.backend, self.layout, self.log = peer, peer, layout, log
        self.name, self.variant, self.precision = name or peer, variant, precision
        self.forward, self.cores = forward, list(cores)

    def run(self, mode):
        self.log.append(self.peer + self.layout)
        if self.log.count(self.peer + self.layout) == self.fails_at:
            raise workers.WorkerError("out of memory")
        others = self.cores.pop(0) if self.cores else 0.0
        return {"forward": self.forward, "backward": 2 * self.forward, "forward_cpu": 0, "backward_cpu": 0,
                "others_cores": others}


class Race(unittest.TestCase):
    def test_the_order_turns_from_round_to_round_behind_one_warm_up(self):
        log = []
        subjects = [Recorder(name, "", log) for name in "ABC"]
        samples = race.race(subjects, "training", rounds=3)
        self.assertEqual("".join(log), "ABC" + "ABC" + "CBA" + "ABC")
        self.assertEqual([len(s) for s in samples], [3, 3, 3])

    def test_a_disturbed_pass_is_run_again_but_not_for_ever(self):
        log = []
        subject = Recorder("A", "", log, cores=[0, 0.5, 0.5, 0.0, 0.9, 0.9, 0.9])
        samples = race.race([subject], "training", rounds=2, others=0.1, retries=2)
        self.assertEqual([s["attempts"] for s in samples[0]], [3, 3])
        self.assertEqual([s["others_cores"] for s in samples[0]], [0.0, 0.9])
        self.assertEqual([s["disturbed"] for s in samples[0]], [False, True])

    def test_a_pass_counts_as_disturbed_above_what_others_may_use(self):
        subjects = [Recorder("lamina", "", []), Recorder("torch", "", [])]
        for others, disturbed in ((0.1, 2), (1.0, 1), (3.0, 0)):
            for subject, cores in zip(subjects, ([0, 0.5, 0.5], [0, 0.5, 2.0])):
                subject.cores = list(cores)
            samples = race.race(subjects, "training", rounds=2, others=others, retries=0)
            self.assertEqual(race.judge("net", "training", subjects, samples)[0]["disturbed"], disturbed)

    def test_who_fails_leaves_the_race_and_the_others_keep_their_rounds(self):
        for fails_at in (1, 3):  # in the warm-up, in the second round
            log, failed = [], []
            subjects = [Recorder(name, "", log) for name in "ABC"]
            subjects[1].fails_at = fails_at
            samples = race.race(subjects, "training", rounds=3, failed=lambda *what: failed.append(what))
            self.assertEqual([its and len(its) for its in samples], [3, None, 3])
            self.assertEqual(log.count("B"), fails_at)
            self.assertEqual([(subject, str(error)) for subject, error in failed], [(subjects[1], "out of memory")])

    def test_without_a_listener_a_failure_ends_the_race(self):
        subject = Recorder("A", "", [])
        subject.fails_at = 2
        with self.assertRaisesRegex(workers.WorkerError, "out of memory"):
            race.race([subject], "training", rounds=3)

    def test_a_reading_of_the_gpu_goes_to_all_samples_of_its_round(self):
        clocks = iter((1980, 1500))
        subjects = [Recorder(name, "", []) for name in "AB"]
        samples = race.race(subjects, "training", rounds=2, reading=lambda: {"sm_mhz": next(clocks)})
        for its in samples:
            self.assertEqual([sample["gpu"] for sample in its], [{"sm_mhz": 1980}, {"sm_mhz": 1500}])
        row = rows.rows_of("net", "training", "cuda", "nchw", 16, samples[0], facts={"device": "H200"})[1]
        self.assertEqual((row["repetition_index"], row["sm_mhz"], row["device"]), (1, 1500, "H200"))

    def test_like_is_compared_with_like(self):
        subjects = [Recorder("lamina", "nchw", [], 1.0, name="ours/plain"),
                    Recorder("lamina", "nchw", [], 0.5, name="ours/graph"),
                    Recorder("lamina", "nchw", [], 0.25, name="ours/tf32", precision="tf32"),
                    Recorder("torch", "nchw", [], 4.0, variant="eager"),
                    Recorder("torch", "nhwc", [], 2.0, variant="compiled"),
                    Recorder("torch", "nhwc", [], 0.125, variant="eager", precision="tf32")]
        lines = race.judge("net", "training", subjects, race.race(subjects, "training", rounds=2))
        self.assertEqual([(line["lamina"], line["precision"], line["ratio"], line["peer_variant"])
                          for line in lines if line["pass"] == "total"],
                         [("ours/plain", "f32", 0.5, "compiled"), ("ours/graph", "f32", 0.25, "compiled"),
                          ("ours/tf32", "tf32", 2.0, "eager")])
        means = race.summary(lines + lines)
        self.assertEqual({key[:2]: mean for key, (mean, _) in means.items() if key[3] == "total"},
                         {("f32", "ours/plain"): 0.5, ("f32", "ours/graph"): 0.25, ("tf32", "ours/tf32"): 2.0})

    def test_ours_without_a_peer_of_its_precision_has_no_line(self):
        subjects = [Recorder("lamina", "nchw", [], name="a"), Recorder("torch", "nchw", [], precision="tf32")]
        self.assertEqual(race.judge("net", "training", subjects, race.race(subjects, "training", rounds=2)), [])

    def test_the_ratio_is_against_the_peers_faster_layout(self):
        subjects = [Recorder("lamina", "nchw", [], 1.0), Recorder("torch", "nchw", [], 4.0),
                    Recorder("torch", "nhwc", [], 2.0)]
        lines = race.judge("net", "training", subjects, race.race(subjects, "training", rounds=3))
        self.assertEqual([line["pass"] for line in lines], ["forward", "backward", "total"])
        for line in lines:
            self.assertEqual((line["ratio"], line["low"], line["high"]), (0.5, 0.5, 0.5))
            self.assertEqual(line["peer_layout"], "nhwc")

    def judge_two(self, ours=1.0):
        subjects = [Recorder("lamina", "nchw", [], ours), Recorder("torch-1", "nchw", [], 4.0),
                    Recorder("torch-2", "nchw", [], 2.0), Recorder("torch-2", "nhwc", [], 0.5)]
        return race.judge("net", "training", subjects, race.race(subjects, "training", rounds=2))

    def test_two_peers_are_judged_apart_and_the_best_of_all(self):
        lines = [line for line in self.judge_two() if line["pass"] == "total"]
        self.assertEqual([(line["peer"], line["ratio"]) for line in lines],
                         [("torch-1", 0.25), ("torch-2", 2.0), (race.BEST, 2.0)])
        best = lines[-1]
        self.assertEqual((best["fastest_peer"], best["peer_layout"], best["low"], best["high"]),
                         ("torch-2", "nhwc", 2.0, 2.0))

    def test_one_peer_has_no_line_for_the_best_of_all(self):
        subjects = [Recorder("lamina", "nchw", []), Recorder("torch", "nchw", []), Recorder("torch", "nhwc", [])]
        lines = race.judge("net", "inference", *self.inference(subjects))
        self.assertEqual([line["peer"] for line in lines], ["torch"])

    def inference(self, subjects):
        sample = {"inference": 1.0, "inference_cpu": 0, "others_cores": 0.0}
        return subjects, [[sample, sample] for _ in subjects]

    def test_the_best_of_all_is_chosen_anew_in_each_draw(self):
        ours = [1.0] * 9
        theirs = [[1.0, 3.0] * 4 + [1.0], [3.0, 1.0] * 4 + [3.0]]  # now the one is faster, now the other
        low, high = race.interval(ours, theirs)
        self.assertEqual((low, high), (1.0, 1.0))
        self.assertLess(race.interval(ours, theirs[1:])[0], 0.5)  # against the second alone

    def test_a_limit_is_held_against_the_best_of_all(self):
        lines = self.judge_two()  # 0.25 of the one, 2 of the other
        self.assertEqual([(line["peer"], line["pass"]) for line in race.above(lines, 1.5)], [(race.BEST, "total")])
        self.assertEqual(race.above(lines, 2.5), [])
        alone = [line | {"peer": "torch"} for line in lines if line["peer"] == "torch-2"]
        self.assertEqual([line["pass"] for line in race.above(alone, 1.5)], ["total"])

    def test_means_are_geometric(self):
        line = {"precision": "f32", "lamina": "lamina", "peer": "torch", "pass": "total"}
        mean, networks = race.summary([line | {"ratio": 4.0}, line | {"ratio": 1.0}])["f32", "lamina", "torch", "total"]
        self.assertAlmostEqual(mean, 2.0)
        self.assertEqual(networks, 2)
        self.assertEqual(race.summary([line | {"ratio": 4.0}]), {})

    def test_there_is_a_mean_over_the_networks_of_the_best_of_all_for_each_mode(self):
        lines = self.judge_two(1.0) + self.judge_two(4.0)
        self.assertAlmostEqual(race.summary(lines)["f32", "lamina", race.BEST, "total"][0], 4.0)
        subjects = [Recorder(peer, "nchw", []) for peer in ("lamina", "torch-1", "torch-2")]
        lines = race.judge("net", "inference", *self.inference(subjects)) * 2
        self.assertAlmostEqual(race.summary(lines)["f32", "lamina", race.BEST, "inference"][0], 1.0)


class Names(unittest.TestCase):
    def test_versions_name_the_peers_where_there_are_several(self):
        self.assertEqual(teams.peer_name("2.1.0+cpu", {"lamina"}, alone=True), "torch")
        self.assertEqual(teams.peer_name("2.1.0+cpu", {"lamina"}, alone=False), "torch-2.1.0")

    def test_two_interpreters_of_one_version_have_two_names(self):
        taken = {"lamina"}
        for name in ("torch-2.1.0", "torch-2.1.0#2", "torch-2.1.0#3"):
            found = teams.peer_name("2.1.0", taken, alone=False)
            self.assertEqual(found, name)
            taken.add(found)


class Memory(unittest.TestCase):
    def peak(self, mib, **more):
        return {"peak_bytes": mib * race.MEBIBYTE} | more

    def test_the_ratio_is_against_the_lowest_layout_of_each_peer_and_of_all(self):
        subjects = [Recorder("lamina", "nchw", []), Recorder("lamina", "nhwc", []), Recorder("torch-1", "nchw", []),
                    Recorder("torch-1", "nhwc", []), Recorder("torch-2", "nchw", [])]
        peaks = [self.peak(80, plan_bytes=79 * race.MEBIBYTE), self.peak(60, plan_bytes=0), self.peak(200),
                 self.peak(100), self.peak(160)]
        lines = race.judge_memory("net", "training", subjects, peaks)
        self.assertEqual([(line["peer"], line["lowest_peer"], line["peer_layout"], line["ratio"]) for line in lines],
                         [("torch-1", "torch-1", "nhwc", 0.8), ("torch-2", "torch-2", "nchw", 0.5),
                          (race.BEST, "torch-1", "nhwc", 0.8)])
        self.assertEqual((lines[0]["peak_MiB"], lines[0]["plan_MiB"], lines[0]["peer_peak_MiB"]), (80, 79, 100))
        self.assertEqual(len(race.judge_memory("net", "training", subjects[:4], peaks[:4])), 1)

    def test_a_side_without_a_peak_has_no_line_and_is_named_with_the_reason(self):
        subjects = [Recorder("lamina", "nchw", []), Recorder("torch-1", "nchw", []), Recorder("torch-2", "nchw", [])]
        ours, refusal = self.peak(80, plan_bytes=79 * race.MEBIBYTE), {"unsupported": "no such file"}
        lines = race.judge_memory("net", "training", subjects, [ours, refusal, self.peak(100)])
        self.assertEqual([(line["peer"], line["ratio"]) for line in lines], [("torch-2", 0.8)])
        self.assertEqual(race.judge_memory("net", "training", subjects, [ours, refusal, refusal]), [])
        self.assertEqual(race.judge_memory("net", "training", subjects, [refusal, ours, ours]), [])
        self.assertEqual(race.unknown_memory(subjects, [ours, refusal, ours]), {"torch-1": "no such file"})
        self.assertEqual(race.unknown_memory(subjects, [ours, ours, ours]), {})

    def test_growth_is_the_peak_and_not_what_is_left(self):
        def work():
            self.assertTrue(bytearray(b"x" * (64 << 20)))
        try:
            resident.reset_peak()
        except resident.Unsupported as error:
            self.skipTest(str(error))
        for _ in range(2):  # the second finds the peak of the first reset
            self.assertGreaterEqual(resident.growth_of(work), 60 << 20)
        self.assertLess(resident.growth_of(lambda: None), 4 << 20)

    def test_there_is_no_growth_where_the_peak_cannot_be_reset(self):
        def refused(path, *mode):
            if path == "/proc/self/clear_refs":
                raise PermissionError(13, "Permission denied", path)
            return open(path, *mode)
        work = mock.Mock()
        with mock.patch.object(resident, "open", refused, create=True):
            with self.assertRaisesRegex(resident.Unsupported, "does not set back .* peak .*: .*Permission denied"):
                resident.growth_of(work)
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


class Interval(unittest.TestCase):
    def draw(self, seed, factor=1.0, n=9):
        chance = random.Random(seed)
        drift = [1 + 0.3 * i / n for i in range(n)]
        ours = [factor * d * chance.gauss(1, 0.02) for d in drift]
        return ours, [[d * chance.gauss(1, 0.02) for d in drift]]

    def test_it_holds_the_truth_about_as_often_as_it_says(self):
        for factor in (1.0, 1.5):
            held = 0
            for seed in range(200):
                low, high = race.interval(*self.draw(seed, factor), draws=400)
                held += low <= factor <= high
            self.assertGreaterEqual(held, 180)  # 190 of 200 expected; three standard deviations of a binomial are 9
            self.assertLess(held, 200)

    def test_twice_as_slow_is_told_from_equal(self):
        low, high = race.interval(*self.draw(1, 2.0))
        self.assertTrue(1.8 < low <= high < 2.2)


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

    def test_memory_is_measured_in_a_child_of_its_own(self):
        worker = self.worker("0.25")
        subject = workers.Subject(worker, "torch", "torch", "nchw")
        subject.run("training")
        for _ in range(2):
            self.assertEqual(subject.memory("training")["peak_bytes"], 0)  # the first command of its child
        self.assertGreater(worker.ask("memory training nchw")["peak_bytes"], 0)

    def test_a_refused_peak_is_an_answer_and_no_end_of_the_race(self):
        subject = workers.Subject(self.worker("0.25", "unsupported"), "torch", "torch", "nchw")
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

    def test_an_answer_that_is_no_json_is_quoted(self):
        with self.assertRaisesRegex(workers.WorkerError, "fake answered 'compiling ...', which is no JSON"):
            self.worker("1", "babble").ask("pass training nchw")

    def test_children_that_do_not_end_are_waited_for_together(self):
        stubborn = ["sh", "-c", "trap '' TERM; echo '{}'; while :; do sleep 0.1; done"]
        children = [workers.Worker("stubborn", stubborn, 1) for _ in range(4)]
        start = time.monotonic()
        with mock.patch.object(workers, "END_SECONDS", 1):
            workers.close_all(children, at_once=True)
        self.assertTrue(1 <= time.monotonic() - start < 3)
        self.assertEqual([worker.child.returncode for worker in children], [-signal.SIGKILL] * 4)

    def test_a_program_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(workers.WorkerError, "cannot start /no/such/program"):
            workers.Worker("fake", ["/no/such/program"], 1)


class Files(unittest.TestCase):
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
        found = rows.rows_of("alexnet", "training", "torch", "nhwc", 16, samples)
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
            out = rows.File(path)
            self.assertFalse(out.written)
            out.write(rows.context("compare"), [], comparison=[])
            self.assertTrue(out.written)
            with self.assertRaises(TypeError):
                out.write({"not json": object()}, [])
            with open(path) as file:
                self.assertEqual(json.load(file)["benchmarks"], [])
            self.assertEqual(os.listdir(os.path.dirname(path)), ["out.json"])

    def test_that_a_file_can_be_written_is_found_out_before_there_is_anything_to_write(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            rows.File(path)
            self.assertEqual(os.listdir(folder), [])
            with self.assertRaisesRegex(rows.Unwritable, f"cannot write {folder}: .* no regular file"):
                rows.File(folder)
            with open(path, "w") as file:
                file.write("an older run's")
            with self.assertRaisesRegex(rows.Unwritable, f"cannot write {path}/below.json: {path} is .* no folder"):
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
