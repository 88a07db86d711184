"""The race against a peer, without one: order, ratios, intervals, rows, and children that fail."""

import json
import os
import random
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bench/peers"))
import pythons
import race
import rows
import workers

race.SETTLE_SECONDS = 0


class Recorder:
    """A subject that takes no time and writes down when it was asked; `cores` is what others use, call by call."""

    def __init__(self, peer, layout, log, forward=1.0, cores=()):
        self.peer, self.backend, self.layout, self.log = peer, peer, layout, log
        self.forward, self.cores = forward, list(cores)

    def run(self, mode):
        self.log.append(self.peer + self.layout)
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

    def test_the_ratio_is_against_the_peers_faster_layout(self):
        subjects = [Recorder("lamina", "nchw", [], 1.0), Recorder("torch", "nchw", [], 4.0),
                    Recorder("torch", "nhwc", [], 2.0)]
        lines = race.judge("net", "training", subjects, race.race(subjects, "training", rounds=3))
        self.assertEqual([line["pass"] for line in lines], ["forward", "backward", "total"])
        for line in lines:
            self.assertEqual((line["ratio"], line["low"], line["high"]), (0.5, 0.5, 0.5))
            self.assertEqual(line["peer_layout"], "nhwc")

    def test_two_peers_are_judged_apart(self):
        subjects = [Recorder("lamina", "nchw", [], 1.0), Recorder("torch-1", "nchw", [], 4.0),
                    Recorder("torch-2", "nchw", [], 0.5)]
        lines = race.judge("net", "training", subjects, race.race(subjects, "training", rounds=2))
        self.assertEqual([line["ratio"] for line in lines if line["pass"] == "total"], [0.25, 2.0])

    def test_means_are_geometric(self):
        line = {"peer": "torch", "pass": "total"}
        self.assertAlmostEqual(race.summary([line | {"ratio": 4.0}, line | {"ratio": 1.0}])[("torch", "total")], 2.0)
        self.assertEqual(race.summary([line | {"ratio": 4.0}]), {})


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

    def test_a_child_that_dies_is_named_with_its_status(self):
        with self.assertRaisesRegex(workers.WorkerError, "fake ended with status 3"):
            self.worker("1", "die").ask("pass training nchw")

    def test_a_child_that_refuses_is_quoted(self):
        with self.assertRaisesRegex(workers.WorkerError, "fake: no layout 'nhwc'"):
            self.worker("1", "refuse").ask("pass training nhwc")

    def test_a_program_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(workers.WorkerError, "cannot start /no/such/program"):
            workers.Worker("fake", ["/no/such/program"], 1)


class Files(unittest.TestCase):
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
            rows.write(path, rows.context("compare"), [], comparison=[])
            with self.assertRaises(TypeError):
                rows.write(path, {"not json": object()}, [])
            with open(path) as file:
                self.assertEqual(json.load(file)["benchmarks"], [])

    def test_an_interpreter_without_the_modules_is_refused(self):
        with self.assertRaisesRegex(pythons.NoTorch, "cannot import no_such_module"):
            pythons.find([sys.executable], "no_such_module")
        with self.assertRaisesRegex(pythons.NoTorch, "--python"):
            pythons.find((), "no_such_module")


if __name__ == "__main__":
    unittest.main()
