"""The options of `compare`: what cannot be meant is refused, with the reason, before anything runs."""

import contextlib
import csv
import io
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bench/race"))
import options
import protocol

# Networks of the table that are neighbours of others, for orientation only.
LEFT_OUT = {"googlenet_caffe", "resnet50_v1"}


class Options(unittest.TestCase):
    def setUp(self):
        """A folder with programs to be found and never to be run."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.worker = os.path.join(folder.name, "peer_worker")
        for name in ("peer_worker", "layer_worker"):
            with open(os.path.join(folder.name, name), "w", opener=lambda path, how: os.open(path, how, 0o755)):
                pass

    def parse(self, *words):
        return options.parse("", ["--worker", self.worker, *words])

    def refused(self, reason, *words):
        with contextlib.redirect_stderr(io.StringIO()) as text, self.assertRaises(SystemExit) as end:
            self.parse(*words)
        self.assertEqual(end.exception.code, 2)
        self.assertIn(reason, text.getvalue())

    def test_what_can_be_meant_passes(self):
        found = self.parse("--nets", "mnist_cnn,bottleneck_stack", "--threads", "1", "--batch", "2", "--samples", "2",
                           "--retries", "0", "--others", "0.5", "--modes", "training,inference")
        self.assertEqual((found.nets, found.threads, found.batch, found.samples, found.retries, found.others),
                         ("mnist_cnn,bottleneck_stack", 1, 2, 2, 0, 0.5))
        self.assertEqual(found.out, "results/peers.json")
        self.assertEqual(self.parse("--layers", "--nets", "mnist_cnn").out, "results/peer_layers.json")

    def test_counts_below_one_and_no_numbers_are_refused(self):
        for flag in ("--threads", "--batch", "--samples"):
            for text in ("0", "-3", "two", "1.5", "99999999999"):
                self.refused(f"argument {flag}: '{text}' is no whole number from 1 to", f"{flag}={text}")
        self.refused("--samples must be 2 or more", "--samples", "1")
        self.refused("argument --retries: '-1' is no whole number from 0 to", "--retries=-1")
        for flag in ("--others", "--limit"):
            for text in ("-1", "nan", "much"):
                self.refused(f"argument {flag}: '{text}' is no number of 0 or more", f"{flag}={text}")

    def test_an_unknown_network_is_named_with_the_near_and_the_known_ones(self):
        self.refused("--nets: there is no 'nosuch', but alexnet, ", "--nets", "mnist_cnn,nosuch")
        self.refused("--nets: there is no 'VGG-16'; did you mean vgg16 ", "--nets", "VGG-16")
        self.refused("--nets: there is no 'bottleneck_stack', but alexnet, ", "--layers", "--nets", "bottleneck_stack")

    def test_every_list_is_held_against_what_there_is(self):
        self.refused("--modes: there is no 'train'; did you mean training? There are training, inference", "--modes",
                     "train")
        for flag in ("--layouts", "--our_layouts"):
            self.refused(f"{flag}: there is no 'hwcn'", flag, "hwcn")
        self.refused("--variants: there is no 'fft', but any, winograd, nchw", "--variants", "any,fft")

    def test_a_comma_too_many_and_a_word_given_twice_are_told(self):
        for text in ("mnist_cnn,", ",mnist_cnn", "mnist_cnn,,vgg16", ""):
            self.refused(f"--nets: there is an empty word in '{text}'", "--nets", text)
        self.refused("--nets: 'vgg16' is there twice", "--nets", "vgg16,mnist_cnn,vgg16")

    def test_a_limit_without_times_is_refused(self):
        self.refused("--limit is held against times, which --memory only leaves out", "--memory", "only", "--limit",
                     "2")

    def test_a_limit_on_layers_is_refused(self):
        self.refused("--limit is held against the totals of networks, which --layers does not race", "--layers",
                     "--limit", "2")

    def test_a_race_on_a_gpu_has_defaults_of_its_own(self):
        found = self.parse("--device", "cuda:3")
        self.assertEqual((found.device_number, found.precision, found.backends, found.ours, found.torch),
                         (3, "f32,tf32", "cuda,cudnn", "plain,graph", "eager,eager+benchmark,compiled+benchmark@nhwc"))
        self.assertEqual((found.compile_seconds, found.patience, found.others), (600, 300, 1.0))
        self.assertEqual(self.parse("--device", "rehearsal").backends, "cuda-host")
        found = self.parse()
        self.assertEqual((found.on_device, found.precision, found.others), (False, "f32", 0.1))

    def test_variants_precisions_and_backends_are_held_against_what_there_is(self):
        for device in ("gpu", "cuda:", "cuda:-1", "cuda:x"):
            self.refused(f"--device: there is no '{device}', but cpu, cuda, cuda:N, rehearsal", "--device", device)
        for flag, word in (("torch", "jit"), ("torch", "eager@hwcn"), ("precision", "f64"), ("ours", "fast"),
                           ("backends", "cudnn:"), ("backends", "eigen")):
            self.refused(f"--{flag}: there is no '{word}'", "--device", "cuda", f"--{flag}", word)
        self.refused("--backends: 'cudnn:/a' is there twice", "--device", "cuda", "--backends", "cudnn:/a,cudnn:/a")
        self.refused("--torch: none of eager@nhwc is in the layouts nchw", "--device", "cuda", "--torch", "eager@nhwc",
                     "--layouts", "nchw")
        self.assertEqual(self.parse("--device", "cuda", "--backends", "cuda,cudnn:/a,cudnn:/b").backends,
                         "cuda,cudnn:/a,cudnn:/b")

    def test_options_of_a_gpu_are_refused_without_one_and_those_of_the_processor_with_one(self):
        for flag, word in (("precision", "tf32"), ("torch", "eager"), ("ours", "graph"), ("backends", "cuda"),
                           ("compile_seconds", "1"), ("patience", "1")):
            self.refused(f"--{flag} belongs to a race on a GPU", f"--{flag}", word)
        self.refused("--measure is of a race on the processor; on a GPU say --ours measured", "--device", "cuda",
                     "--measure")
        self.refused("--layers races on the processor", "--device", "cuda", "--layers")

    def test_a_program_that_is_not_there_is_named_with_its_target(self):
        os.remove(os.path.join(os.path.dirname(self.worker), "layer_worker"))
        self.refused("layer_worker: build the target layer_worker", "--layers")

    def test_the_help_tells_the_default_of_every_option_that_takes_a_value(self):
        for action in options.parser_of("")._actions:
            if action.nargs != 0:
                self.assertIn("(default: ", action.help, action.option_strings)


class Networks(unittest.TestCase):
    def test_those_of_the_zoo_are_those_of_the_table(self):
        with open(os.path.join(HERE, "../data/network_layers.csv"), newline="") as file:
            table = {row["network"] for row in csv.DictReader(file)}
        self.assertEqual(set(protocol.ZOO), table - LEFT_OUT)


if __name__ == "__main__":
    unittest.main()
