"""Lamina's real worker in a race. usage: serve_test.py LAMINA_BENCH"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/race"))
from variants import serve_command

BENCH = sys.argv.pop(1) if len(sys.argv) > 1 else None


class Serve(unittest.TestCase):
    def ask(self, *lines, **config):
        done = subprocess.run(serve_command(BENCH, **config), input="".join(line + "\n" for line in lines),
                              capture_output=True, text=True, check=False)
        return [json.loads(line) for line in done.stdout.splitlines()], done.returncode

    def test_a_network_is_opened_run_and_dropped_on_every_backend_that_needs_no_gpu(self):
        for backend in ("eigen", "cuda-host"):
            (facts, opened, sample, dropped, again, later, state), status = self.ask(
                "open training nchw", "pass training nchw", "drop training", "pass inference nchw",
                "facts training nchw", "state", net="mnist_mlp", batch=2, threads=1, backend=backend)
            self.assertEqual((status, dropped), (0, {}))
            self.assertEqual((facts["math"], facts["graph"], facts["measure"]), ("strict", False, False))
            self.assertEqual("CUDA kernels" in facts["backend"], backend == "cuda-host")
            self.assertGreater(opened["plan_bytes"], 1 << 20)
            self.assertEqual(list(opened["math_of_calls"]), ["strict"])
            self.assertEqual(set(sample), {"forward", "forward_cpu", "backward", "backward_cpu"})
            self.assertEqual(set(again), {"inference", "inference_cpu"})
            self.assertEqual((later["plan_bytes"], state), (opened["plan_bytes"], {}))
            self.assertTrue(facts["device"])

    def test_it_says_the_commit_that_files_of_the_program_have(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "out.json")
            subprocess.run([BENCH, "memory", "mnist_mlp", "--backend=eigen", f"--benchmark_out={file}"],
                           stdout=subprocess.DEVNULL, check=True)
            with open(file) as written:
                commit = json.load(written)["context"]["commit"]
        (facts,), _ = self.ask(threads=1)
        self.assertEqual(facts["commit"], commit)

    def written(self, net, **more):
        """The files that the worker writes for a network, and the extents of the tensors in check.safetensors."""
        with tempfile.TemporaryDirectory() as folder:
            _, status = self.ask(net=net, batch=2, threads=1, files=folder, **more)
            self.assertEqual(status, 0)
            with open(os.path.join(folder, "check.safetensors"), "rb") as file:
                header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
            return sorted(os.listdir(folder)), {name: entry["shape"] for name, entry in header.items()
                                                if name != "__metadata__"}

    def test_a_network_is_written_with_what_it_computes_for_peers(self):
        files, extents = self.written("mnist_cnn", write_onnx=True)
        self.assertEqual(files, ["check.safetensors", "network.onnx", "weights.safetensors"])
        self.assertEqual(extents, {"x": [2, 1, 28, 28], "y": [2, 10, 1, 1]})  # a network with dropout has no y_training
        files, extents = self.written("resnet18")
        self.assertEqual(files, ["check.safetensors", "weights.safetensors"])
        self.assertEqual(extents, {"x": [2, 3, 224, 224], "y": [2, 1000, 1, 1], "y_training": [2, 1000, 1, 1]})

    def test_a_convolution_is_timed_and_its_numbers_are_exact_in_every_pass(self):
        conv = "1 1 1 2 1 1 1 1 1 0 0 1 1 1 0"
        passes = {"forward": 2, "backward_params": 1, "backward_data": 2}  # the number of results of each pass
        (_, *answers, listed), status = self.ask(
            *(f"{command} {what} nchw {conv}" for what in passes for command in ("open", "pass", "result")),
            "list resnet18 4", threads=1)
        self.assertEqual(status, 0)
        for (what, count), (opened, sample, result) in zip(passes.items(), zip(*[iter(answers)] * 3)):
            self.assertTrue(opened["implementation"])
            self.assertGreater(sample[what], 0)
            self.assertGreaterEqual(sample["runs"], 1)
            self.assertEqual([value % 1 for value in result["result"]], [0] * count)
        found = listed["convolutions"]
        self.assertEqual((found[0]["conv"], len(found)), ("4 3 224 224 64 7 7 2 2 3 3 1 1 1 0", 20))

    def test_what_a_backend_refuses_is_answered_with_the_reason(self):
        for config, reason in (({"cuda_graph": True}, "cannot record"), ({"math": "tf32"}, "no tf32 products")):
            answers, _ = self.ask("open training nchw", net="mnist_mlp", batch=2, threads=1, backend="cuda-host",
                                  **config)
            self.assertIn(reason, answers[-1]["error"])
            self.assertTrue(answers[-1]["refused"])

    def test_an_invalid_request_ends_the_child_with_what_was_wrong(self):
        for config, lines, near in (({"backend": "nosuch"}, (), "nosuch"),
                                    ({"net": "nosuch"}, ("pass training nchw",), "nosuch"),
                                    ({"net": "mnist_mlp"}, ("pass learning nchw",), "learning"),
                                    ({"net": "mnist_mlp"}, ("pass training hwcn",), "hwcn"), ({}, ("go",), "go"),
                                    ({}, ("list resnet19 4",), "resnet19"),
                                    ({}, ("pass sideways nchw 1",), "sideways"),
                                    ({}, ("pass forward nchw 1 2",), "15")):
            answers, status = self.ask(*lines, **config)
            self.assertEqual(status, 1)
            self.assertIn(near, answers[-1]["error"])
            self.assertNotIn("refused", answers[-1])
        done = subprocess.run(serve_command(BENCH, math="f16"), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("strict,tf32", done.stderr)


if __name__ == "__main__":
    unittest.main()
