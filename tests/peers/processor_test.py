"""The peers of a race on the processor, with children that compute nothing: who is in which mode, with which settings,
whose numbers are not Lamina's, and the best as they come and of all."""

import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RACE = os.path.join(HERE, "../../bench/race")
COMPARE = os.path.join(RACE, "compare")
sys.path.insert(0, RACE)
import processor_peers

# Seconds of a pass by the words of a child's command; twice as much processor time for onnxruntime. Ours gets `serve`.
CHILD = """
import json, os, sys
if sys.argv[1:2] == ["-c"]:
    sys.exit(0)
words, told = sys.argv[1:], json.loads(os.environ["FAKE"])
name = "lamina" if words[0] == "serve" else next((word for word in words if word in ("onnxruntime", "ncnn")), words[-1])
seconds = told["seconds"].get(name, 1.0)
seen = {key: os.environ.get(key) for key in ("OMP_WAIT_POLICY", "MALLOC_TOP_PAD_")}
with open(told["log"], "a") as log:
    log.write(json.dumps([name, words, seen]) + "\\n")
print(json.dumps({"torch": "9.9"}), flush=True)
for line in sys.stdin:
    with open(told["log"], "a") as log:
        log.write(json.dumps([name, line.split(), seen]) + "\\n")
    answer = {"difference": told["differences"].get(name, 1e-6)} if line.startswith("check") else {}
    if line.startswith("rounding"):
        answer = {"rounding": told["rounding"]}
    if name in told["errors"]:
        answer = {"error": told["errors"][name]}
    if line.startswith("pass"):
        answer = dict.fromkeys(("forward", "backward", "inference"), seconds)
        cpu = seconds * (2 if name == "onnxruntime" else 1)
        answer |= dict.fromkeys(("forward_cpu", "backward_cpu", "inference_cpu"), cpu)
    print(json.dumps(answer), flush=True)
"""


class Words(unittest.TestCase):
    def test_what_is_for_inference_alone_says_so(self):
        for word, modes in (("torch", 2), ("torch+compiled+hugepages", 2), ("torch+max-autotune@nhwc", 2),
                            ("torch+compiled+frozen", 1), ("torch+max-autotune+frozen+hugepages@nchw", 1),
                            ("onnxruntime", 1), ("openvino+hugepages", 1), ("ncnn", 1), ("ncnn+hugepages", 1)):
            self.assertIn(word, processor_peers.known_words())
            self.assertEqual(processor_peers.modes_of(word), ("training", "inference")[-modes:], word)

    def test_a_child_of_torch_gets_its_variant_without_the_settings_of_its_environment(self):
        arguments = types.SimpleNamespace(batch=16, threads=2, passive=False)
        for variant, asked in (("", "eager"), ("hugepages", "eager"), ("compiled+frozen+hugepages", "compiled+frozen")):
            peer = processor_peers.Peer("torch", variant, ("nchw",), "python", "torch")
            command = peer.command("resnet50", arguments, "folder")
            self.assertEqual(command[command.index("--variant") + 1], asked)
            self.assertEqual(bool(peer.environment), "hugepages" in variant)


class Race(unittest.TestCase):
    def run_race(self, *words, differences=(), seconds=(), missing=(), errors=(), rounding=0.0):
        """The program's end, its file, and what each child was asked."""
        with tempfile.TemporaryDirectory() as folder:
            for program in ("lamina", "torch", "onnxruntime", "openvino", "ncnn"):
                if program not in missing:
                    path = os.path.join(folder, program, "python")
                    os.mkdir(os.path.dirname(path))
                    with open(path, "w", opener=lambda name, how: os.open(name, how, 0o755)) as file:
                        file.write(f"#!{sys.executable}\n{CHILD}")
            out, log = os.path.join(folder, "out.json"), os.path.join(folder, "log")
            told = {"seconds": {"lamina": 1.0} | dict(seconds), "differences": dict(differences), "log": log,
                    "errors": dict(errors), "rounding": rounding}
            done = subprocess.run(
                [sys.executable, "-B", COMPARE, "--program", os.path.join(folder, "lamina/python"), "--nets", "vgg16",
                 "--peers_folder", folder, "--samples", "2", "--retries", "0", "--memory", "no", "--out", out, *words],
                capture_output=True, text=True, check=False, env=os.environ | {"FAKE": json.dumps(told)})
            result, asked = None, []
            if os.path.exists(out):
                with open(out) as file:
                    result = json.load(file)
            if os.path.exists(log):
                with open(log) as file:
                    asked = [json.loads(line) for line in file]
            return done, result, asked

    PEERS = ("--peers", "torch@nchw,torch+compiled@nchw,torch+compiled+frozen@nchw,onnxruntime")
    SECONDS = {"eager": 2.0, "compiled": 4.0, "compiled+frozen": 0.25, "onnxruntime": 0.5}

    def ratios(self, result, what):
        return {line["peer"]: line["ratio"] for line in result["comparison"] if line["pass"] == what}

    def test_as_it_comes_and_tuned_are_shown_apart_and_by_both_clocks(self):
        done, result, _ = self.run_race(*self.PEERS, "--modes", "training,inference", seconds=self.SECONDS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.ratios(result, "total"), {"torch": 0.5, "torch compiled": 0.25, "best of all peers": 0.5})
        self.assertEqual(self.ratios(result, "inference"),
                         {"torch": 0.5, "torch compiled": 0.25, "torch compiled+frozen": 4.0, "onnxruntime": 2.0,
                          "best as it comes": 2.0, "best of all peers": 4.0})
        by_processor = self.ratios(result, "inference cpu")
        self.assertEqual((by_processor["onnxruntime"], by_processor["best of all peers"]), (1.0, 4.0))
        names = {row["name"] for row in result["benchmarks"]}
        self.assertIn("net/vgg16/inference/torch/f32/nchw/batch:16/compiled+frozen", names)
        self.assertIn("net/vgg16/inference/torch/f32/nchw/batch:16", names)
        self.assertIn("net/vgg16/inference/onnxruntime/f32/nchw/batch:16", names)

    def test_all_are_checked_before_they_are_timed_on_files_that_are_gone_afterwards(self):
        _, result, asked = self.run_race(*self.PEERS, "--modes", "inference")
        self.assertEqual({one["name"] for one in result["checks"]},
                         {"torch", "torch compiled", "torch compiled+frozen", "onnxruntime"})
        for name in ("eager", "compiled", "compiled+frozen", "onnxruntime"):
            its = [words[0] for who, words, _ in asked if who == name]
            self.assertLess(its.index("check"), its.index("pass"))
        config = json.loads(asked[0][1][1])
        self.assertEqual((config["net"], config["onnx"]), ("vgg16", True))
        self.assertFalse(os.path.exists(config["files"]))

    def test_other_numbers_than_ours_are_an_error_and_their_time_does_not_count(self):
        for difference in (2e-4, float("inf"), float("nan")):
            done, result, asked = self.run_race(*self.PEERS, "--modes", "inference", seconds=self.SECONDS,
                                                differences={"compiled+frozen": difference})
            self.assertEqual(done.returncode, 1)
            self.assertIn("vgg16 torch compiled+frozen", done.stderr)
            self.assertEqual(self.ratios(result, "inference")["best of all peers"], 2.0)
            self.assertNotIn("pass", [words[0] for who, words, _ in asked if who == "compiled+frozen"])
            self.assertEqual([one["name"] for one in result["failures"]], ["torch compiled+frozen"])

    def test_in_training_rounding_of_f32_widens_the_bound_to_its_double_and_no_further(self):
        for difference, rounding, bound, agrees in ((9e-4, 1e-3, 1e-3, True), (1.8e-3, 1e-3, 2e-3, True),
                                                    (1.8e-3, 8e-4, 1.6e-3, False), (1.8e-3, 1e-6, 1e-3, False),
                                                    (6e-3, 1.0, 5e-3, False)):
            done, result, asked = self.run_race("--peers", "torch@nchw", "--modes", "training", rounding=rounding,
                                                differences={"eager": difference})
            checked = result["checks"] if result else None
            commands = [words[0] for who, words, _ in asked if who == "eager"]
            self.assertEqual("rounding" in commands, difference > 1e-3)
            self.assertEqual((done.returncode == 0, "pass" in commands), (agrees, agrees), done.stderr)
            if agrees:
                self.assertEqual([one["bound"] for one in checked], [bound])
        commands = {words[0] for _, words, _ in self.run_race("--peers", "torch@nchw", "--modes", "inference", rounding=1.0,
                                                              differences={"eager": 2e-4})[2]}
        self.assertNotIn("rounding", commands)

    def test_a_network_that_a_peer_cannot_convert_is_a_line_and_the_others_race(self):
        done, result, asked = self.run_race("--peers", "onnxruntime,ncnn", "--modes", "inference", seconds=self.SECONDS,
                                            errors={"ncnn": "RuntimeError: it has no layer for pnnx's F.pad"})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.ratios(result, "inference"), {"onnxruntime": 2.0})
        failure, = result["failures"]
        self.assertEqual((failure["name"], failure["stage"]), ("ncnn", "check inference"))
        self.assertIn("F.pad", failure["reason"])
        self.assertNotIn("pass", [words[0] for who, words, _ in asked if who == "ncnn"])

    def test_in_training_where_statistics_are_of_the_batch_the_bound_is_wider(self):
        for difference, status in ((5e-4, 0), (2e-3, 1)):
            done, _, _ = self.run_race("--peers", "torch@nchw,torch+compiled@nchw",
                                       differences={"compiled": difference})
            self.assertEqual(done.returncode, status)

    def test_settings_of_the_environment_reach_the_children_that_they_are_for(self):
        _, result, asked = self.run_race("--peers", "torch@nchw,onnxruntime,onnxruntime+hugepages,ncnn,ncnn+hugepages",
                                         "--passive", "--modes", "inference")
        started = [(name, seen) for name, words, seen in asked if words[0] not in ("check", "pass", "drop")]
        self.assertEqual({seen["OMP_WAIT_POLICY"] for _, seen in started}, {"passive"})
        for runtime in ("onnxruntime", "ncnn"):
            self.assertEqual([seen["MALLOC_TOP_PAD_"] for name, seen in started if name == runtime], [None, "67108864"])
            self.assertTrue(all("--passive" in words for name, words, _ in asked
                                if name == runtime and words[0] not in ("check", "pass", "drop")))
        self.assertTrue(result["context"]["passive"])
        _, result, asked = self.run_race("--peers", "torch@nchw,onnxruntime", "--modes", "inference")
        self.assertEqual({seen["OMP_WAIT_POLICY"] for _, _, seen in asked}, {os.environ.get("OMP_WAIT_POLICY")})
        self.assertFalse(result["context"]["passive"])

    def test_a_peer_that_was_not_brought_is_named_with_what_brings_it(self):
        done, _, asked = self.run_race("--peers", "torch,onnxruntime", "--modes", "inference", missing=("onnxruntime",))
        self.assertEqual((done.returncode, asked), (1, []))
        self.assertIn("bench/get-peers onnxruntime", done.stderr)

    def test_peers_that_do_not_go_with_the_rest_are_refused(self):
        for words, named in ((("--peers", "onnxruntime"), "training"), (("--peers", "torch+frozen"), "'torch+frozen'"),
                             (("--peers", "torch+compiled", "--layers"), "--peers"),
                             (("--peers", "torch@nhwc", "--layouts", "nchw"), "torch@nhwc")):
            done, _, asked = self.run_race(*words)
            self.assertEqual((done.returncode, asked), (2, []))
            self.assertIn(named, done.stderr)


if __name__ == "__main__":
    unittest.main()
