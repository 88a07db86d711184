"""The words of --ours and --peers and the other options of a race: their meaning, and the errors for wrong words."""

import contextlib
import csv
import glob
import io
import json
import os
import shlex
import sys
import unittest

import fakes  # makes the modules of a race importable
import networks
import options
import pythons
import variants

HERE = os.path.dirname(os.path.abspath(__file__))
LEFT_OUT = {"googlenet_caffe", "resnet50_v1"}  # only in the table of layers, to show variants


class Options(fakes.Folder):
    def setUp(self):
        """Makes programs that can be found but must not run."""
        super().setUp()
        for name in ("lamina_bench", "onednn_worker"):
            self.program(name)

    def parse(self, *words):
        return options.parse("", ["--program", os.path.join(self.folder, "lamina_bench"), *words])

    def variant(self, word, *words):
        """The variant of a word of --ours or --peers, and the parsed options."""
        side = "--ours" if word.split("=")[0].split("+")[0].split(":")[0].split("@")[0] in variants.OURS else "--peers"
        found = self.parse(side, word, *words)
        return (found.ours_variants if side == "--ours" else found.peers_variants)[0], found

    def test_the_commands_of_the_stored_races_are_taken(self):
        stored = glob.glob(os.path.join(HERE, "../../bench/results/races/*.json"))
        self.assertTrue(stored)
        for path in stored:
            with open(path) as file:
                result = json.load(file)
            # Only rows of peers that can still race have a command.
            for command in {one["rerun"] for one in result["benchmarks"] + result["comparisons"] if "rerun" in one}:
                program, *words = shlex.split(command)
                self.assertEqual(program, "bench/race/race")
                self.parse(*(self.program(word) if word.endswith(".onnx") else word for word in words))

    def test_a_word_has_an_engine_a_precision_flags_a_layout_and_a_path(self):
        for word, words, expected in (
                ("torch", (), ("torch", "f32", (), "nchw", "")),
                ("torch+compiled+hugepages@nhwc", (), ("torch", "f32", ("compiled", "hugepages"), "nhwc", "")),
                ("torch:tf32+benchmark", ("--device", "cuda"), ("torch", "tf32", ("benchmark",), "nchw", "")),
                ("onednn", ("--what", "layers"), ("onednn", "f32", (), "any", "")),
                ("onednn:bf16@winograd", ("--what", "layers", "--ours", "eigen:bf16"),
                 ("onednn", "bf16", (), "winograd", "")),
                ("cuda:tf32+graph+measured@nhwc", ("--device", "cuda"),
                 ("cuda", "tf32", ("graph", "measured"), "nhwc", "")),
                (f"cudnn+graph={self.folder}", ("--device", "cuda"),
                 ("cudnn", "f32", ("graph",), "nchw", self.folder))):
            found, _ = self.variant(word, *words)
            self.assertEqual((found.engine, found.precision, found.flags, found.layout, found.path), expected)
            self.assertEqual(found.name, word)

    def test_a_worker_is_started_with_what_its_word_says(self):
        for word, words, expected in (
                ("eigen", (), {"--backend=eigen", "--dtype=f32"}),
                ("eigen:bf16", (), {"--backend=eigen", "--dtype=bf16"}),
                ("cudnn:tf32+measured+graph", ("--device", "cuda:2"),
                 {"--backend=cudnn", "--math=tf32", "--measure", "--cuda_graph", "--device=2"}),
                (f"cudnn={self.folder}", ("--device", "cuda"),
                 {"--backend=cudnn", f"--cudnn={self.folder}", "--dtype=f32"})):
            variant, given = self.variant(word, *words)
            program, command, network, *flags = variant.command("networks", "vgg16", 4, given, None)
            self.assertEqual((program, command, network), (given.program, "serve", "vgg16"))
            self.assertEqual(set(flags), expected | {"--batch=4", f"--threads={given.threads}"})
        for word, flags, inference_alone in (("torch", [], False), ("torch+hugepages", ["hugepages"], False),
                                             ("torch+compiled+frozen", ["compiled", "frozen"], True)):
            variant, given = self.variant(word, "--modes", "inference")
            command = variant.command("networks", "vgg16", 4, given, "files")
            self.assertEqual(json.loads(command[-1])["flags"], flags)
            self.assertEqual(variant.modes == ("inference",), inference_alone)

    def test_valid_options_pass_and_others_have_their_defaults(self):
        found = self.parse("mnist_cnn", "resnet18", "--threads", "1", "--batch", "2", "--rounds", "2", "--retries",
                           "0", "--modes", "training,inference", "--memory", "no", "--patience", "5")
        self.assertEqual((found.networks, found.threads, found.batch, found.rounds, found.retries, found.modes),
                         (["mnist_cnn", "resnet18"], 1, 2, 2, 0, ["training", "inference"]))
        for words, networks_, ours, peers in (
                ((), networks.PUBLISHED, 1, 2), (("--what", "layers"), networks.PUBLISHED, 1, 3),
                (("--what", "trainings"), networks.WORKLOADS, 1, 2), (("--device", "cuda:3"), networks.PUBLISHED, 6, 6),
                (("--device", "cuda", "--what", "trainings"), networks.WORKLOADS, 2, 2),
                (("--device", "rehearsal"), networks.PUBLISHED, 1, 2)):
            found = self.parse(*words)
            self.assertEqual((found.networks, len(found.ours_variants), len(found.peers_variants)),
                             (list(networks_), ours, peers), words)
        self.assertEqual(self.parse("--device", "cuda:3").device_number, 3)
        self.assertEqual(self.parse("--what", "trainings").retries, 0)

    def test_what_cannot_be_meant_is_refused_with_the_reason(self):
        file = self.program("vgg16.onnx")
        for words, *named in (
                *((f"{flag}={text}", flag, f"'{text}'") for flag in ("--threads", "--batch", "--rounds")
                  for text in ("0", "-3", "two", "1.5", "99999999999")),
                ("--rounds 1", "--rounds"), ("--retries=-1", "--retries", "'-1'"),
                *((f"{flag}={text}", flag, f"'{text}'") for flag in ("--share", "--patience")
                  for text in ("0", "-1", "nan", "much")), ("--share 1.5", "--share"),
                ("mnist_cnn nosuch", "'nosuch'", "alexnet, "), ("VGG-16", "'VGG-16'", "mean vgg16"),
                ("nosuch.onnx", "no file nosuch.onnx"), ("--what trainings a.onnx", "a.onnx", "no files"),
                ("--what layers a.onnx", "takes no files"), (f"vgg16 {file}", f"vgg16 and {file}", "rename a file"),
                ("resnet50 --what trainings", "'resnet50'"),
                ("--modes train", "'train'", "mean training"), ("--what nets", "--what"),
                *((f"--device {device}", f"'{device}'", "cuda:N") for device in ("gpu", "cuda:", "cuda:-1", "cuda:x")),
                ("--what layers --device cuda", "--what layers", "--device"),
                ("--peers torhc", "'torhc'", "mean torch"),
                ("--ours eigen+foo", "eigen has no flag 'foo'; valid names: measured"),
                ("--peers torch+jit", "torch has no flag 'jit'; valid names: compiled,"),
                ("--peers torch@hwcn", "no layout 'hwcn'"), ("--peers torch:f64", "torch has no precision 'f64'"),
                ("--peers torch+", "torch has no flag ''"), ("--peers torch@", "ENGINE[:PRECISION]"),
                ("--peers torch,torch", "duplicate 'torch'"), ("--peers torch+compiled+compiled", "duplicate flag"),
                ("--peers torch+frozen", "add compiled"), ("--peers torch+compiled+max-autotune", "leave out one"),
                *((f"--device cuda --peers torch{flags}+graph", "add compiled") for flags in ("", "+max-autotune")),
                ("--peers torch+compiled+graph", "--device cuda"), ("--ours eigen:tf32", "no precision 'tf32'"),
                ("--device cuda --peers torch+hugepages", "on the processor"),
                ("--what trainings --peers torch+frozen+compiled", "frozen"),
                ("--what trainings --peers torch:bf16", "torch:bf16: trainings race in f32 alone"),
                ("--what layers --peers onednn:f16", "no precision 'f16'"),
                ("--what layers --peers onednn:bf16", "onednn:bf16 has none of ours beside it", "--ours races in f32"),
                ("--peers onnxruntime", "training", "--modes"), ("--peers onednn", "onednn races layers on cpu"),
                ("--device cuda --peers openvino --modes inference", "openvino races networks on cpu"),
                ("--ours torch", "--ours", "--peers"), ("--limit 1000%", "as 3%"),
                ("--ours cuda", "cuda races networks and trainings on cuda"), ("--peers eigen", "--ours"),
                ("--ours eigen=/bin/sh", "versions --programs"), ("--peers torch=/tmp", "only cudnn"),
                ("--device cuda --ours cudnn=/no/such", "/no/such"), ("--peers Torch!", "ENGINE[:PRECISION]"),
                ("--memory only --limit 2%", "--limit"), ("--what layers --memory only", "--memory only"),
                (f"--program {self.folder}", "no program"), ("--program /no/such", "target lamina_bench")):
            with self.subTest(words), contextlib.redirect_stderr(io.StringIO()) as text:
                with self.assertRaises(SystemExit) as end:
                    self.parse(*words.split())
                self.assertEqual(end.exception.code, 2)
                for each in named:
                    self.assertIn(each, text.getvalue())
        os.remove(os.path.join(self.folder, "onednn_worker"))
        with contextlib.redirect_stderr(io.StringIO()) as text, self.assertRaises(SystemExit):
            self.parse("--what", "layers")
        self.assertIn("libdnnl-dev", text.getvalue())

    def test_the_help_has_the_default_of_every_option_that_takes_a_value(self):
        for action in options.parser_of("")._actions:
            if action.nargs != 0:
                self.assertIn("(default: ", action.help, action.option_strings)


class Pythons(unittest.TestCase):
    def test_an_interpreter_without_the_modules_is_refused(self):
        with self.assertRaisesRegex(pythons.NoPython, "can import no_such_module.*docs/peers.md.*--python"):
            pythons.find("no_such_module", [sys.executable])


class Networks(unittest.TestCase):
    def test_those_of_the_zoo_are_those_of_the_table(self):
        with open(os.path.join(HERE, "../data/network_layers.csv"), newline="") as file:
            table = {row["network"] for row in csv.DictReader(file)}
        self.assertEqual(set(networks.NAMES), table - LEFT_OUT)


if __name__ == "__main__":
    unittest.main()
