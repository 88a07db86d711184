"""The layer workers of Lamina and oneDNN have the same results. usage: onednn_test.py LAMINA_BENCH ONEDNN_WORKER"""

import itertools
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bench/race"))
from runner import LAYER_PASSES
from variants import serve_command
from worker import Worker, WorkerError, close_all

def commands(precision):
    return {"lamina": serve_command(sys.argv[1], threads=2, dtype=precision), "onednn": [sys.argv[2], "2", precision]}


CONVOLUTIONS = {  # n c h w, k r s, stride, pad, dilation, groups, bias
    "3x3": "2 16 14 13 32 3 3 1 1 1 1 1 1 1 0",
    "first layer, with a bias": "2 3 31 31 16 7 7 2 2 3 3 1 1 1 1",
    "grouped": "2 8 9 10 12 5 5 1 1 2 2 1 1 2 1",
    "dilated, odd in every number": "1 6 17 12 10 3 2 2 1 2 0 2 3 1 0",
    "1x1": "3 24 7 7 40 1 1 1 1 0 0 1 1 1 0",
}
# Numbers are whole, so all sums are exact except with Winograd, which multiplies by fractions. f32 rounds by 6e-8, and
# Winograd's six-point transforms amplify this about 100 times. In bf16 both sides round their results by 2^-8.
TOLERANCES = {"f32": 1e-5, "bf16": 2 * 2**-8 + 1e-5}


class Workers(unittest.TestCase):
    def ask(self, name, precision="f32"):
        worker = Worker(name, commands(precision)[name], 2, 600)
        self.addCleanup(close_all, [worker], True)
        return worker.greet()

    def test_every_variant_gives_the_same_numbers_as_ours(self):
        for precision, tolerance in TOLERANCES.items():
            ours, theirs = (self.ask(name, precision) for name in commands(precision))
            variants = set()
            for title, what in itertools.product(CONVOLUTIONS, LAYER_PASSES):
                conv = CONVOLUTIONS[title]
                expected = ours.ask(f"result {what} nchw {conv}")["result"]
                largest = max(map(abs, expected))
                self.assertGreater(largest, 10, "numbers too small to compare")
                for worker, variant in ((ours, "nhwc"), (theirs, "any"), (theirs, "nchw"), (theirs, "winograd")):
                    try:
                        answer = worker.ask(f"result {what} {variant} {conv}")
                    except WorkerError as error:
                        self.assertTrue(error.refused, error)
                        continue
                    with self.subTest(precision, conv=title, what=what, side=worker.name, variant=variant):
                        variants.add((worker.name, variant, what))
                        self.assertEqual(len(answer["result"]), len(expected))
                        error = max(abs(a - b) for a, b in zip(answer["result"], expected))
                        self.assertLessEqual(error, tolerance * largest)
            if precision == "f32":  # oneDNN has bf16 only on some processors
                self.assertLessEqual({("onednn", variant, what) for variant in ("any", "nchw")
                                      for what in LAYER_PASSES}, variants)

    def test_a_pass_is_timed_and_a_bad_request_refused(self):
        worker = self.ask("onednn")
        for what in LAYER_PASSES:
            request = f"{what} any {CONVOLUTIONS['3x3']}"
            self.assertTrue(worker.ask(f"open {request}")["implementation"])
            self.assertGreater(worker.timed_pass(request)[what], 0)
        with self.assertRaisesRegex(WorkerError, "no pass 'sideways'"):
            worker.ask(f"pass sideways any {CONVOLUTIONS['3x3']}")
        with self.assertRaisesRegex(WorkerError, "15 whole numbers"):
            self.ask("onednn").ask("pass forward any 1 2 3")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
