"""Lamina's child in the race against PyTorch, as itself: usage: peer_worker_test.py PEER_WORKER"""

import json
import subprocess
import sys
import unittest

PEER_WORKER = sys.argv.pop(1) if len(sys.argv) > 1 else None


class PeerWorker(unittest.TestCase):
    def ask(self, *lines, words=()):
        done = subprocess.run([PEER_WORKER, "mnist_mlp", "2", "1", *words], input="".join(line + "\n" for line in lines),
                              capture_output=True, text=True, check=False)
        return [json.loads(line) for line in done.stdout.splitlines()], done.returncode

    def test_it_opens_runs_and_drops_on_every_backend_that_needs_no_gpu(self):
        for words in ((), ("backend=eigen", "math=strict", "device=0"), ("backend=cuda-host", "math=strict")):
            (facts, opened, sample, dropped, again), status = self.ask(
                "open training nchw", "pass training nchw", "drop training", "pass inference nchw", words=words)
            self.assertEqual((status, dropped), (0, {}))
            self.assertEqual((facts["math"], facts["graph"], facts["measure"]), ("strict", False, False))
            self.assertEqual("CUDA kernels" in facts["backend"], "backend=cuda-host" in words)
            self.assertGreater(opened["plan_bytes"], 1 << 20)
            self.assertEqual(list(opened["math_of_calls"]), ["strict"])
            self.assertEqual(set(sample), {"forward", "forward_cpu", "backward", "backward_cpu"})
            self.assertEqual(set(again), {"inference", "inference_cpu"})

    def test_what_a_backend_refuses_ends_the_child_with_the_reason(self):
        for words, reason, refused in ((("backend=cuda-host", "graph"), "cannot record", True),
                                       (("backend=cuda-host", "math=tf32"), "no tf32 products", True),
                                       (("backend=nosuch",), "nosuch", False)):
            answers, status = self.ask("open training nchw", words=words)
            self.assertEqual(status, 1)
            self.assertIn(reason, answers[-1]["error"])
            self.assertEqual(answers[-1].get("refused", False), refused)  # no fault, or one

    def test_unknown_words_are_refused_with_the_known_ones(self):
        for word in ("fast", "math=half", "backend=", "device=", "device=-1"):
            answers, status = self.ask(words=(word,))
            self.assertEqual(status, 1)
            self.assertIn(f"no option '{word}'; there are measure, graph, backend=NAME", answers[0]["error"])


if __name__ == "__main__":
    unittest.main()
