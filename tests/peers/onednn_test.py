"""The layer workers compute the same: usage: onednn_test.py LAMINA_BENCH ONEDNN_WORKER"""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bench/race"))
from runner import LAYER_PASSES
from variants import serve_command
from worker import Worker, WorkerError, close_all

COMMANDS = {"lamina": serve_command(sys.argv[1], threads=2), "onednn": [sys.argv[2], "2"]}
CONVOLUTIONS = {  # n c h w, k r s, stride, pad, dilation, groups, bias
    "3x3": "2 16 14 13 32 3 3 1 1 1 1 1 1 1 0",
    "first layer, with a bias": "2 3 31 31 16 7 7 2 2 3 3 1 1 1 1",
    "grouped": "2 8 9 10 12 5 5 1 1 2 2 1 1 2 1",
    "dilated, odd in every number": "1 6 17 12 10 3 2 2 1 2 0 2 3 1 0",
    "1x1": "3 24 7 7 40 1 1 1 1 0 0 1 1 1 0",
}
# The numbers are whole and the sums exact; only Winograd, which multiplies by fractions, rounds. f32 has 6e-8, its
# transforms of six points amplify by some hundred.
TOLERANCE = 1e-5


class Workers(unittest.TestCase):
    def ask(self, name):
        worker = Worker(name, COMMANDS[name], 2, 600)
        self.addCleanup(close_all, [worker], True)
        return worker.greet()

    def test_every_variant_gives_the_same_numbers_as_ours(self):
        ours, theirs = (self.ask(name) for name in COMMANDS)
        variants = set()
        for title, conv in CONVOLUTIONS.items():
            for what in LAYER_PASSES:
                expected = ours.ask(f"result {what} nchw {conv}")["result"]
                largest = max(map(abs, expected))
                self.assertGreater(largest, 10, "numbers too small to compare")
                for worker, variant in ((ours, "nhwc"), (theirs, "any"), (theirs, "nchw"), (theirs, "winograd")):
                    try:
                        answer = worker.ask(f"result {what} {variant} {conv}")
                    except WorkerError as error:
                        self.assertTrue(error.refused and variant in ("winograd", "nhwc"), error)
                        continue
                    with self.subTest(conv=title, what=what, side=worker.name, variant=variant):
                        variants.add((worker.name, variant))
                        self.assertEqual(len(answer["result"]), len(expected))
                        error = max(abs(a - b) for a, b in zip(answer["result"], expected))
                        self.assertLessEqual(error, TOLERANCE * largest)
        self.assertLessEqual({("onednn", "any"), ("onednn", "nchw")}, variants)

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
