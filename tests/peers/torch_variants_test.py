"""PyTorch's variants on a GPU, as far as a processor shows them: what is set is read back, passes run through the same
code, and the recording of CUDA graphs is played with graphs that record nothing. Skipped (77) without torch."""

import contextlib
import json
import os
import subprocess
import sys
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
RACE = os.path.join(HERE, "../../bench/race")
PEERS = os.path.join(RACE, "peers")
sys.path[:0] = [RACE, PEERS]
import child
import pythons

try:
    import torch
    import torch_settings
    import timed_network
except ImportError:
    pythons.start_again(None, "torch")


class Settings(unittest.TestCase):
    def test_every_precision_is_set_as_it_says_whatever_was_set_before(self):
        for precision in ("tf32", "f32", "bf16", "tf32", "f16"):
            found = torch_settings.Variant((), precision, "cpu").apply()
            tf32 = precision == "tf32"
            self.assertEqual((found["matmul.allow_tf32"], found["cudnn.allow_tf32"]), (tf32, tf32))
            if "cudnn.conv.fp32_precision" in found:
                self.assertEqual((found["matmul.fp32_precision"] == "tf32",
                                  found["cudnn.conv.fp32_precision"] == "tf32"),
                                 (tf32, tf32))
            self.assertEqual(found["autocast"] is not None, precision in ("f16", "bf16"))

    def test_benchmark_is_set_and_taken_back(self):
        for flags in (["benchmark"], []):
            self.assertEqual(torch_settings.Variant(flags, "f32", "cpu").apply()["cudnn.benchmark"], bool(flags))

    def test_a_setting_that_does_not_hold_is_an_error(self):
        variant = torch_settings.Variant((), "tf32", "cpu")
        with mock.patch.object(variant, "read_back", return_value={"matmul.allow_tf32": True, "cudnn.allow_tf32": False,
                                                                   "cudnn.benchmark": False}):
            with self.assertRaisesRegex(torch_settings.SettingError, "cudnn.allow_tf32 is False where True was set"):
                variant.apply()

    def test_every_variant_has_a_mode_and_graphs_need_a_gpu(self):
        for flags, mode, captures in (("", None, False), ("benchmark", None, False), ("benchmark+graph", None, True),
                                      ("compiled+benchmark", "default", False), ("compiled+frozen", "default", False),
                                      ("compiled+graph", "reduce-overhead", False),
                                      ("max-autotune+benchmark", "max-autotune", False)):
            variant = torch_settings.Variant(flags.split("+"), "f32", "cuda:0")
            self.assertEqual((variant.compile_mode, variant.captures), (mode, captures), flags)
            self.assertEqual(variant.compiler_graphs, mode in ("reduce-overhead", "max-autotune"), flags)
            if "graph" in flags:
                with self.assertRaisesRegex(child.Refused, "needs a GPU"):
                    torch_settings.Variant(flags.split("+"), "f32", "cpu")

    def test_the_forward_runs_under_autocast(self):
        for precision, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32)):
            variant = torch_settings.Variant((), precision, "cpu")
            with variant.context():
                self.assertEqual((torch.ones(2, 2) @ torch.ones(2, 2)).dtype, dtype)


class Networks(unittest.TestCase):
    def variant(self, warms=False):
        variant = torch_settings.Variant((), "f32", "cpu")
        variant.warms_each_pass = warms
        return variant

    def test_a_sample_is_one_pass_after_one_untimed_on_fresh_numbers(self):
        network = timed_network.TimedNetwork("mnist_cnn", "training", "nhwc", 2, self.variant(warms=True))
        drawn, call = [], network.call
        network.call = lambda x: drawn.append(x.detach().clone()) or call(x)
        self.assertEqual(set(network.run()), {"forward", "forward_cpu", "backward", "backward_cpu"})
        self.assertEqual(len(drawn), 2)
        self.assertFalse(torch.equal(*drawn))
        self.assertIsNone(network.y)

    def test_gradients_add_up_but_for_keras_networks(self):
        network = timed_network.TimedNetwork("resnet18", "training", "nchw", 1, self.variant())
        grad = next(network.net.parameters()).grad
        self.assertFalse(grad.any())
        network.run()
        self.assertIs(next(network.net.parameters()).grad, grad)  # added to where it was
        self.assertTrue(grad.any())
        keras = timed_network.TimedNetwork("mnist_mlp", "training", "nchw", 2, self.variant())
        keras.run()
        first = next(keras.net.parameters()).grad
        keras.run()
        self.assertIsNot(next(keras.net.parameters()).grad, first)

    def test_inference_computes_no_gradient(self):
        network = timed_network.TimedNetwork("mnist_cnn", "inference", "nchw", 2, self.variant())
        network.draw_input()
        network.forward()
        self.assertFalse(network.y.requires_grad)
        self.assertEqual(set(network.run()), {"inference", "inference_cpu"})

    def test_a_recorded_pass_is_replayed_forward_and_backward_by_their_own_graphs(self):
        log = []

        class Graph:
            def pool(self):
                return "pool"

            def replay(self):
                log.append(self)

        class Stream:
            def wait_stream(self, _):
                pass

        @contextlib.contextmanager
        def graph(recorded, pool=None, stream=None):
            log.append((recorded, pool, isinstance(stream, Stream)))
            yield

        fakes = {"Stream": Stream, "current_stream": Stream, "stream": lambda _: contextlib.nullcontext(),
                 "CUDAGraph": Graph, "graph": graph}
        with mock.patch.multiple(torch.cuda, **fakes):
            for mode in ("training", "inference"):
                log.clear()
                network = timed_network.CapturedNetwork("resnet18", mode, "nhwc", 1, self.variant(warms=True))
                forward, backward = network.recorded_forward, network.recorded_backward
                recorded = [(forward, None, True)] + [(backward, "pool", True)] * (mode == "training")
                self.assertEqual(log, recorded)
                x, y = network.x.data_ptr(), network.y.data_ptr()
                before = network.x.detach().clone()
                network.run()
                replays = [forward, backward] if mode == "training" else [forward]
                self.assertEqual(log[len(recorded):], replays * 2)
                self.assertEqual((network.x.data_ptr(), network.y.data_ptr()), (x, y))
                self.assertFalse(torch.equal(network.x, before))


class Worker(unittest.TestCase):
    def ask(self, *lines, flags="", precision="f32"):
        config = {"net": "mnist_mlp", "batch": 2, "threads": 1, "device": "cpu", "precision": precision,
                  "flags": flags.split(), "files": None}
        done = subprocess.run([sys.executable, "-B", os.path.join(PEERS, "torch_worker.py"), json.dumps(config)],
                              input="".join(line + "\n" for line in lines),
                              capture_output=True, text=True, check=False)
        return [json.loads(line) for line in done.stdout.splitlines()], done.returncode

    def test_a_worker_says_what_it_is_opens_runs_and_drops(self):
        (facts, opened, sample, dropped), status = self.ask("open training nhwc", "pass training nhwc", "drop training",
                                                            flags="benchmark", precision="tf32")
        self.assertEqual((status, dropped), (0, {}))
        self.assertTrue(facts["settings"]["cudnn.allow_tf32"] and facts["settings"]["cudnn.benchmark"])
        self.assertEqual(opened["settings"], facts["settings"])
        self.assertIn("first_pass_seconds", opened)
        self.assertIn("backward", sample)

    def test_a_variant_that_cannot_run_ends_the_worker_with_its_reason_in_one_line(self):
        answers, status = self.ask("open training nhwc", flags="graph")
        self.assertEqual((len(answers), status), (1, 1))
        self.assertIn("records CUDA graphs", answers[0]["error"])
        self.assertTrue(answers[0]["refused"])

    def test_what_a_compiler_prints_does_not_reach_the_answers(self):
        program = ("import os, sys\n"
                   f"sys.path[:0] = [{PEERS!r}]\n"
                   "import child\n"
                   "class Server:\n"
                   "    greeting = {}\n"
                   "    def answer(self, line):\n"
                   "        print('AUTOTUNE convolution', flush=True)\n"
                   "        os.write(1, b'from a compiler below\\n')\n"
                   "        return {'line': line}\n"
                   "child.serve(Server)\n")
        done = subprocess.run([sys.executable, "-B", "-c", program], input="a\n", capture_output=True, text=True,
                              check=True)
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], [{}, {"line": "a\n"}])
        self.assertIn("AUTOTUNE convolution", done.stderr)
        self.assertIn("from a compiler below", done.stderr)


if __name__ == "__main__":
    unittest.main()
