"""The race over single convolutions, without a backend: which layers, which lines, what the summary says of them."""

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bench/race"))
import layers
import race
import rows
import workers

race.SETTLE_SECONDS = 0

FIRST = "16 3 224 224 64 7 7 2 2 3 3 1 1 1 0"
SPATIAL = "16 64 56 56 64 3 3 1 1 1 1 1 1 1 0"
LISTINGS = {
    "a": [{"name": "conv1", "conv": FIRST, "backward_data": False},
          {"name": "conv2", "conv": SPATIAL, "backward_data": True},
          {"name": "conv3", "conv": SPATIAL, "backward_data": True}],
    "b": [{"name": "stem", "conv": FIRST, "backward_data": True},
          {"name": "body", "conv": SPATIAL, "backward_data": True}],
    "bare": [],
}


def line(conv, ms, ratio, low, counts):
    return {"conv": conv, "ms": ms, "peer_ms": ms / ratio, "ratio": ratio, "low": low, "counts": counts}


class Layers(unittest.TestCase):
    def test_equal_convolutions_are_one_and_named_after_the_first(self):
        found = layers.distinct(LISTINGS)
        self.assertEqual([layer.name for layer in found], ["a/conv1", "a/conv2"])
        self.assertEqual([layer.counts["a"]["forward"] for layer in found], [1, 2])
        self.assertEqual([layer.counts["b"]["forward"] for layer in found], [1, 1])

    def test_a_data_gradient_counts_only_where_it_is_wanted(self):
        first = layers.distinct(LISTINGS)[0]
        self.assertEqual([first.counts[net]["backward_data"] for net in "ab"], [0, 1])
        self.assertEqual([first.counts[net]["backward_params"] for net in "ab"], [1, 1])

    def test_the_table_names_what_is_not_usual(self):
        self.assertEqual(layers.Layer("", "", FIRST).texts(), ("3x224x224 > 64", "7x7 /2 p3"))
        odd = "16 8 5 6 4 1 7 1 2 0 3 2 2 2 1"
        self.assertEqual(layers.Layer("", "", odd).texts(), ("8x5x6 > 4", "1x7 /1x2 p0x3 d2 g2"))


class Summary(unittest.TestCase):
    lines = [line(SPATIAL, 10.0, 0.5, 0.4, {"a": 2}), line(SPATIAL, 10.0, 0.9, 0.8, {"a": 1, "b": 3}),
             line(FIRST, 20.0, 1.25, 1.1, {"a": 1}), line(FIRST, 50.0, 1.25, 0.9, {"a": 1, "b": 0})]

    def test_time_counts_as_often_as_the_network_has_the_layer(self):
        total = layers.summary(self.lines, ["a"])[0]
        self.assertAlmostEqual(total["ms"], 2 * 10 + 10 + 20 + 50)
        self.assertAlmostEqual(total["peer_ms"], 2 * 20 + 10 / 0.9 + 16 + 40)

    def test_slower_needs_ten_percent_and_an_interval_above_one(self):
        total = layers.summary(self.lines, ["a"])[0]
        self.assertEqual((total["slower"], total["distinct"]), (1, 4))
        self.assertAlmostEqual(total["slower_ms_share"], 20 / 100)
        self.assertFalse(layers.is_slower(line(FIRST, 1, 1.09, 1.05, {})))

    def test_a_line_is_disturbed_where_most_of_its_samples_are(self):
        samples = [{"disturbed": disturbed, "samples": 4} for disturbed in (0, 2, 3, 4)]
        self.assertEqual(layers.disturbed(samples), 2)

    def test_faster_is_asked_of_the_3x3_ones_only(self):
        totals = {total["net"]: total for total in layers.summary(self.lines, ["a", "b"])}
        self.assertEqual((totals["a"]["faster_3x3"], totals["a"]["distinct_3x3"]), (1, 2))
        self.assertEqual((totals["b"]["faster_3x3"], totals["b"]["distinct_3x3"]), (0, 1))
        self.assertEqual(totals["b"]["distinct"], 1)  # what it does not have, or does not want, is not its
        self.assertAlmostEqual(totals["all"]["ms"], 100 + 30)


class Race(unittest.TestCase):
    def run_it(self, folder, variants="any,winograd,nchw", nets="a,b"):
        listings = os.path.join(folder, "listings")
        with open(listings, "w") as file:
            json.dump(LISTINGS, file)
        for name, seconds in (("lamina_bench", 0.001), ("onednn_worker", 0.004)):
            path = os.path.join(folder, name)
            with open(path, "w", opener=lambda path, how: os.open(path, how, 0o755)) as file:
                file.write(f"#!/bin/sh\nexec {sys.executable} {HERE}/fake_worker.py {seconds} {listings}\n")
        out = os.path.join(folder, "out.json")
        arguments = argparse.Namespace(nets=nets, batch=16, threads=1, our_layouts="nchw", variants=variants,
                                       samples=2, measure=False, others=race.DISTURBED_CORES, retries=0,
                                       program=os.path.join(folder, "lamina_bench"))
        with contextlib.redirect_stdout(io.StringIO()) as text, rows.File(out) as file:
            totals = layers.run(arguments, file)
        with open(out) as file:
            return totals, json.load(file), text.getvalue()

    def test_every_distinct_layer_and_pass_has_a_line_and_its_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            totals, written, text = self.run_it(folder)
        self.assertEqual([(entry["layer"], entry["pass"]) for entry in written["comparison"]],
                         [(layer, what) for layer in ("a/conv1", "a/conv2")
                          for what in ("forward", "backward_params", "backward_data")])
        for entry in written["comparison"]:
            self.assertEqual((entry["ratio"], entry["low"], entry["high"]), (0.25, 0.25, 0.25))
            self.assertEqual((entry["peer_layout"], entry["peer_implementation"]), ("any", "fake"))
        self.assertEqual([row["name"] for row in written["benchmarks"][:4:2]],
                         ["layer/a/conv1/forward/eigen/f32/nchw/batch:16",
                          "layer/a/conv1/forward/onednn/f32/any/batch:16"])
        self.assertEqual({key: written[key] for key in totals}, totals)
        self.assertEqual(written["context"]["commit"], "c0.001")  # of our program
        self.assertAlmostEqual(totals["summary"][0]["ms"], 2 + 6)  # conv1 without a data gradient, conv2 twice
        self.assertIn("3 of 3 of the 3x3 ones faster by 1.5 x", text)

    def test_the_direct_algorithm_alone_is_judged_apart(self):
        seconds = {"any": 0.002, "winograd": 0.001, "nchw": 0.003}
        worker = None  # nobody is asked
        subjects = [layers.Subject(worker, "lamina", "eigen", "nchw", "conv")]
        subjects += [layers.Subject(worker, "onednn", "onednn", variant, "conv") for variant in seconds]
        samples = [[{"forward": s, "others_cores": 0.0}] * 3 for s in (0.001, *seconds.values())]
        raced = (layers.distinct(LISTINGS)[1], "forward", subjects, ["ours", "a", "b", "c"], samples)
        every, direct = layers.judge(*raced), layers.judge(*raced, variants=layers.DIRECT)
        self.assertEqual((every["ratio"], every["peer_layout"], every["peer_implementation"]), (1.0, "winograd", "b"))
        self.assertEqual((direct["ratio"], direct["peer_layout"], direct["peer_implementation"]), (0.5, "any", "a"))

    def test_a_layer_that_a_side_cannot_do_at_all_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(workers.WorkerError, "onednn has no forward"):
                self.run_it(folder, variants="winograd")

    def test_a_network_without_convolutions_is_an_error_before_the_race(self):
        for nets in ("bare", "a,bare"):
            with tempfile.TemporaryDirectory() as folder:
                with self.assertRaisesRegex(workers.WorkerError, "^no convolutions in bare, .* leave it out of --nets"):
                    self.run_it(folder, nets=nets)
                self.assertFalse(os.path.exists(os.path.join(folder, "out.json")))


if __name__ == "__main__":
    unittest.main()
