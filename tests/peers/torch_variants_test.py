"""PyTorch's variants on a processor: settings, passes, results compared with Lamina. Status 77: no torch."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
RACE = os.path.join(HERE, "../../bench/race")
PEERS = os.path.join(RACE, "peers")
sys.path[:0] = [RACE, PEERS, os.path.join(HERE, "../torch")]
import child
import comparison
import networks
import variants

try:
    import torch
    import torch_settings
    import timed_network
except ImportError:
    comparison.start_again(None, "torch")


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
        for flags, mode in (("", None), ("benchmark", None), ("compiled+benchmark", "default"),
                            ("compiled+frozen", "default"), ("benchmark+graph+compiled", "reduce-overhead"),
                            ("max-autotune+benchmark", "max-autotune")):
            variant = torch_settings.Variant(flags.split("+"), "f32", "cuda:0")
            self.assertEqual(variant.compile_mode, mode, flags)
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
        self.assertIs(next(network.net.parameters()).grad, grad)  # gradients are added in place
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


class Worker(unittest.TestCase):
    def ask(self, *lines, flags="", script="torch_worker.py", **more):
        config = {"net": "mnist_mlp", "batch": 2, "threads": 1, "device": "cpu", "precision": "f32",
                  "flags": flags.split(), "files": None} | more
        done = subprocess.run([sys.executable, "-B", os.path.join(PEERS, script), json.dumps(config)],
                              input="".join(line + "\n" for line in lines),
                              capture_output=True, text=True, check=False)
        return [json.loads(line) for line in done.stdout.splitlines()], done.returncode

    def written(self, *lines, **config):
        """A folder with the files that Lamina writes for peers, and Lamina's last answer."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        program = os.environ.get(networks.ASKED, networks.BENCH)
        done = subprocess.run(variants.serve_command(program, threads=1, files=folder, **config),
                              input="".join(line + "\n" for line in lines), capture_output=True, text=True, check=True)
        return folder, json.loads(done.stdout.splitlines()[-1])

    def test_a_peer_computes_what_lamina_computes_and_with_other_weights_something_else(self):
        folder, _ = self.written(net="mnist_cnn", batch=2, write_onnx=True)
        engines = [name for name in ("onnxruntime", "openvino") if importlib.util.find_spec(name)]
        workers = [("torch_worker.py", {"flags": flags}) for flags in ("", "compiled frozen")]
        workers += [("runtimes.py", {"engine": name}) for name in engines]
        half, differences = self.ask("check inference nchw", "rounding inference nchw", net="mnist_cnn", files=folder,
                                     precision="bf16")[0], []
        for damaged in (False, True):
            for name in ("network.onnx", "weights.safetensors") if damaged else ():
                path = os.path.join(folder, name)
                with open(path, "r+b") as file:  # the middle of the file is in the weights of a late layer
                    file.seek(os.path.getsize(path) // 2)
                    file.write(b"\0" * 4096)
            differences.append([self.ask("check inference nchw", script=script, net="mnist_cnn", files=folder,
                                         **more)[0][-1]["difference"] for script, more in workers])
        self.assertTrue(all(0 < each < 1e-5 for each in differences[0]) and half[-2]["difference"] > 1e-4, differences)
        self.assertAlmostEqual(half[-1]["rounding"], half[-2]["difference"], delta=1e-4)
        self.assertTrue(all(each > 1e-4 for each in differences[1]), differences)

    def test_a_file_has_images_of_its_own_size_and_what_differs_from_torchvision_is_named(self):
        from torchvision import models
        net, x = models.mobilenet_v2().eval(), torch.randn(2, 3, 64, 48)
        weights = {name: value.numpy() for name, value in net.state_dict().items() if "num_batches" not in name}
        y, folder = net(x).detach().numpy(), self.enterContext(tempfile.TemporaryDirectory())
        comparison.write_safetensors(os.path.join(folder, "weights.safetensors"), weights)
        comparison.write_safetensors(os.path.join(folder, "check.safetensors"),
                                     {"x": x.numpy(), "y": y, "y_training": y})
        for name, mode, field, text in (("mobilenet_v2", "inference", "difference", r"^0\.0$|e-0[5-9]$"),
                                        ("mobilenet_v2", "training", "error", "lacks the dropout classifier.0"),
                                        ("resnet18", "inference", "error", 'dynamo=False.*Missing.*"conv1.weight"')):
            answer = self.ask(f"check {mode} nchw", net=f"a/{name}.onnx", files=folder)[0][-1]
            self.assertRegex(str(answer[field]), text)

    def test_a_training_learns_on_the_batches_that_lamina_wrote(self):
        folder, facts = self.written("facts epoch nchw", training="mnist_mlp", share=0.0043, epochs=3)
        for flags in ("", "compiled"):
            (_, *epochs, dropped), status = self.ask(
                "open epoch nchw", "pass epoch nchw", "pass epoch nchw", "drop epoch", script="torch_training.py",
                batch=facts["batch"], files=folder, flags=flags)
            self.assertEqual((status, dropped, set(epochs[0])), (0, {}, {"epoch", "epoch_cpu", "loss"}))
            self.assertLess(epochs[2]["loss"], epochs[0]["loss"])

    def test_a_worker_says_what_it_is_opens_runs_and_drops(self):
        (facts, opened, sample, dropped), status = self.ask("open training nhwc", "pass training nhwc", "drop training",
                                                            flags="benchmark", precision="tf32")
        self.assertEqual((status, dropped), (0, {}))
        self.assertTrue(facts["settings"]["cudnn.allow_tf32"] and facts["settings"]["cudnn.benchmark"])
        self.assertEqual(opened["settings"], facts["settings"])
        self.assertIn("first_pass_seconds", opened)
        self.assertIn("backward", sample)

    def test_a_variant_that_cannot_run_ends_the_worker_with_its_reason_in_one_line(self):
        answers, status = self.ask("open training nhwc", flags="compiled graph")
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
