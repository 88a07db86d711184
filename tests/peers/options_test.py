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
        self.program = os.path.join(folder.name, "lamina_bench")
        with open(self.program, "w", opener=lambda path, how: os.open(path, how, 0o755)):
            pass

    def parse(self, *words):
        return options.parse("", ["--program", self.program, *words])

    def refused(self, words, *named):
        """With all that the message has to name."""
        with contextlib.redirect_stderr(io.StringIO()) as text, self.assertRaises(SystemExit) as end:
            self.parse(*words.split())
        self.assertEqual(end.exception.code, 2, words)
        for each in named:
            self.assertIn(each, text.getvalue())

    def test_valid_options_pass(self):
        found = self.parse("--nets", "mnist_cnn,bottleneck_stack", "--threads", "1", "--batch", "2", "--samples", "2",
                           "--retries", "0", "--others", "0.5", "--modes", "training,inference")
        self.assertEqual((found.nets, found.threads, found.batch, found.samples, found.retries, found.others),
                         ("mnist_cnn,bottleneck_stack", 1, 2, 2, 0, 0.5))
        self.assertEqual(found.out, "results/peers.json")
        self.assertEqual(self.parse("--layers", "--nets", "mnist_cnn").out, "results/peer_layers.json")

    def test_counts_and_numbers_out_of_range_are_refused(self):
        for flag in ("--threads", "--batch", "--samples"):
            for text in ("0", "-3", "two", "1.5", "99999999999"):
                self.refused(f"{flag}={text}", flag, f"'{text}'")
        self.refused("--samples 1", "--samples")
        self.refused("--retries=-1", "--retries", "'-1'")
        for flag in ("--others", "--limit"):
            for text in ("-1", "nan", "much"):
                self.refused(f"{flag}={text}", flag, f"'{text}'")

    def test_an_unknown_word_is_named_with_near_and_known_ones(self):
        self.refused("--nets mnist_cnn,nosuch", "--nets", "'nosuch'", "alexnet, ")
        self.refused("--nets VGG-16", "'VGG-16'", "mean vgg16 ")
        self.refused("--layers --nets bottleneck_stack", "'bottleneck_stack'")
        self.refused("--modes train", "'train'", "mean training")
        for flag in ("--layouts", "--our_layouts"):
            self.refused(f"{flag} hwcn", flag, "'hwcn'")
        self.refused("--variants any,fft", "'fft'", "any, winograd, nchw")
        for text in ("mnist_cnn,", ",mnist_cnn", "mnist_cnn,,vgg16"):
            self.refused(f"--nets={text}", "--nets", "''")
        self.refused("--nets vgg16,mnist_cnn,vgg16", "'vgg16'", "twice")

    def test_a_limit_without_totals_of_networks_is_refused(self):
        self.refused("--memory only --limit 2", "--limit", "--memory only")
        self.refused("--layers --limit 2", "--limit", "--layers")

    def test_a_race_on_a_gpu_has_its_own_defaults(self):
        found = self.parse("--device", "cuda:3")
        self.assertEqual((found.device_number, found.precision, found.backends, found.ours, found.torch),
                         (3, "f32,tf32", "cuda,cudnn", "plain,graph", "eager,eager+benchmark,compiled+benchmark@nhwc"))
        self.assertEqual((found.compile_seconds, found.patience, found.others), (600, 300, 1.0))
        self.assertEqual(self.parse("--device", "rehearsal").backends, "cuda-host")
        found = self.parse()
        self.assertEqual((found.on_device, found.precision, found.others), (False, "f32", 0.1))

    def test_unknown_variants_precisions_and_backends_are_refused(self):
        for device in ("gpu", "cuda:", "cuda:-1", "cuda:x"):
            self.refused(f"--device {device}", f"'{device}'", "cuda:N")
        for flag, word in (("torch", "jit"), ("torch", "eager@hwcn"), ("precision", "f64"), ("ours", "fast"),
                           ("backends", "cudnn:"), ("backends", "eigen")):
            self.refused(f"--device cuda --{flag} {word}", f"--{flag}", f"'{word}'")
        self.refused("--device cuda --backends cudnn:/a,cudnn:/a", "'cudnn:/a'", "twice")
        self.refused("--device cuda --torch eager@nhwc --layouts nchw", "eager@nhwc", "--layouts")
        self.assertEqual(self.parse("--device", "cuda", "--backends", "cuda,cudnn:/a,cudnn:/b").backends,
                         "cuda,cudnn:/a,cudnn:/b")

    def test_options_of_a_gpu_are_refused_without_one_and_those_of_the_processor_with_one(self):
        for flag, word in (("precision", "tf32"), ("torch", "eager"), ("ours", "graph"), ("backends", "cuda"),
                           ("compile_seconds", "1"), ("patience", "1")):
            self.refused(f"--{flag} {word}", f"--{flag}", "--device cuda")
        self.refused("--device cuda --measure", "--measure", "--ours measured")
        self.refused("--device cuda --layers", "--layers", "--device")

    def test_a_missing_program_is_named_with_its_target(self):
        os.remove(self.program)
        self.refused("--layers", self.program, "target lamina_bench")

    def test_the_help_has_the_default_of_every_option_that_takes_a_value(self):
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
