"""The race against a peer, without one: order, ratios, memory, intervals."""

import json
import os
import random
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RACE = os.path.join(HERE, "../../bench/race")
sys.path.insert(0, RACE)
import intervals
import processor_peers
import race
import rows
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
    def test_the_order_turns_from_round_to_round_after_one_warm_up(self):
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
        row = rows.rows_of("training", samples[0], {"device": "H200"}, what="net", network="net", backend="cuda",
                           type="f32", layout="nchw", batch=16)[1]
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
        self.assertEqual(processor_peers.peer_name("2.1.0+cpu", {"lamina"}, alone=True), "torch")
        self.assertEqual(processor_peers.peer_name("2.1.0+cpu", {"lamina"}, alone=False), "torch-2.1.0")

    def test_two_interpreters_of_one_version_have_two_names(self):
        taken = {"lamina"}
        for name in ("torch-2.1.0", "torch-2.1.0#2", "torch-2.1.0#3"):
            found = processor_peers.peer_name("2.1.0", taken, alone=False)
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


class Interval(unittest.TestCase):
    def test_it_is_that_of_the_library(self):
        with open(os.path.join(HERE, "../data/intervals.json")) as file:
            table = json.load(file)
        self.assertEqual(intervals.LEVEL, table["level"])
        for case in table["ranks"]:
            self.assertEqual(intervals.rank(case["samples"]), case["rank"], case)
        for case in table["medians"]:
            self.assertEqual(intervals.of_median(case["samples"]), (case["low"], case["middle"], case["high"]))
        for case in table["ratios"]:
            found = intervals.of_ratio(case["first"], case["second"])
            for value, key in zip(found, ("low", "middle", "high")):
                self.assertAlmostEqual(value, case[key])

    def test_it_holds_the_truth_as_often_as_it_says_whatever_drifts(self):
        held = 0
        for seed in range(1000):
            chance = random.Random(seed)
            theirs = [1 + 0.3 * i / 9 for i in range(9)]
            held += [low <= 1.5 <= high for low, _, high in
                     [intervals.of_ratio(theirs, [1.5 * t * chance.gauss(1, 0.02) for t in theirs])]][0]
        self.assertGreaterEqual(held, 935)  # 961 expected, of 96.1 %; three standard deviations of a binomial are 18
        self.assertLess(held, 1000)


class Ratios(unittest.TestCase):
    def test_the_table_of_the_readme_is_that_of_the_samples(self):
        done = subprocess.run([sys.executable, "-B", os.path.join(RACE, "ratios"),
                               os.path.join(RACE, "../results/races/epyc_2_cores.json")], capture_output=True, text=True,
                              check=True)
        with open(os.path.join(HERE, "../../README.md")) as file:
            readme = [[cell.strip() for cell in line.split("|")] for line in file]
        rows = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines()[2:]]
        self.assertEqual(len(rows), 11)
        for row in rows:
            self.assertIn(row, [cells[:6] + cells[7:] for cells in readme])  # which has peaks of memory besides

    def test_the_tables_of_peers_are_those_of_the_samples(self):
        with open(os.path.join(HERE, "../../docs/peers.md")) as file:
            page = file.read()
        for names, lines in ((("inference",), 13), (("inference_frozen",), 8),
                             (("training", "training_2", "training_3", "training_4"), 13),
                             (("training_compiled", "training_compiled_2"), 6)):
            paths = [os.path.join(RACE, f"../results/races/epyc_avx2_2_cores_{name}.json") for name in names]
            done = subprocess.run([sys.executable, "-B", os.path.join(RACE, "ratios"), *paths], capture_output=True,
                                  text=True, check=True)
            self.assertEqual(len(done.stdout.splitlines()), lines)
            self.assertIn(done.stdout, page)

    def test_a_file_without_a_race_is_refused_by_its_name(self):
        for path in os.path.join(RACE, "../results/epyc_avx2_2_cores_train.json"), os.path.join(HERE, "race_test.py"):
            done = subprocess.run([sys.executable, "-B", os.path.join(RACE, "ratios"), path], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(path, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
