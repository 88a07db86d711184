"""The race of trainings, with children that compute nothing: sides, turns, ratios by both clocks, who fails."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
COMPARE = os.path.join(HERE, "../../bench/race/compare")

# Epochs of `seconds`, and half as much processor time. Ours gets its config, a peer the workload, the folder of batches,
# the batch, the threads and its variant.
CHILD = """
import json, os, sys
if sys.argv[1:2] == ["-c"]:
    print("9.9")
    sys.exit(0)
seconds, words = float(os.environ["FAKE_SECONDS"]), sys.argv[1:]
if words[0] == "serve":
    config = json.loads(words[1])
    name = "lamina/" + config["backend"] if "device" in config else "lamina"
else:
    name = words[5] if len(words) > 5 else "keras"
    seconds *= {"eager": 2, "compiled": 4, "keras": 8}[name]
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(json.dumps([name, words, os.environ.get("OMP_WAIT_POLICY"), sys.argv[0]]) + "\\n")
if name == os.environ.get("FAKE_FAILS") == "compiled":
    print(json.dumps({"error": "no compiler"}), flush=True)
    sys.exit(1)
print(json.dumps({"torch": "9.9"}), flush=True)
passes = 0
for line in sys.stdin:
    if line.startswith("facts"):
        print(json.dumps({"batch": 32, "samples": 320, "data": "synthetic nothing"}), flush=True)
        continue
    passes += 1
    if name == os.environ.get("FAKE_FAILS") and passes == 2:
        print(json.dumps({"error": "out of memory"}), flush=True)
        continue
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(json.dumps([name, line.strip()]) + "\\n")
    print(json.dumps({"epoch": seconds, "epoch_cpu": seconds / (4 if name == "lamina" else 2), "loss": 0.5}), flush=True)
"""


class Trainings(unittest.TestCase):
    def run_race(self, *words, fails="", brought=False):
        """Exit status, what was printed, the file, and the log of the children."""
        with tempfile.TemporaryDirectory() as folder:
            child, out, log = (os.path.join(folder, name) for name in ("child", "out.json", "log"))
            with open(child, "w") as file:
                file.write(f"#!{sys.executable}\n{CHILD}")
            os.chmod(child, 0o755)
            os.makedirs(os.path.join(folder, "torch"))
            os.link(child, os.path.join(folder, "torch/python"))
            if "--keras" in words:
                words = [child if word == "CHILD" else word for word in words]
            python = ["--peers_folder", folder] if brought else ["--python", child]
            done = subprocess.run(
                [sys.executable, "-B", COMPARE, "--program", child, *python, "--samples", "2", "--retries", "0",
                 "--share", "0.5", "--out", out, *words], capture_output=True, text=True, check=False,
                env=os.environ | {"FAKE_SECONDS": "0.5", "FAKE_LOG": log, "FAKE_FAILS": fails})
            result = None
            if os.path.exists(out):
                with open(out) as file:
                    result = json.load(file)
            with open(log) as file:
                return done, result, [json.loads(line) for line in file]

    def test_the_pytorch_that_was_brought_races_with_keras_and_sleeps_where_that_is_asked(self):
        done, result, log = self.run_race("--trainings", "imdb_bilstm", "--keras", "CHILD", "--passive", brought=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        started = {line[0]: line[2:] for line in log if len(line) == 4}
        self.assertEqual(set(started), {"lamina", "eager", "compiled", "keras"})
        self.assertEqual({name: policy for name, (policy, _) in started.items()},
                         {"lamina": None, "eager": "passive", "compiled": "passive", "keras": "passive"})
        self.assertTrue(started["eager"][1].endswith("torch/python"), started["eager"])
        self.assertTrue(result["context"]["passive"])
        ratios = {line["peer"]: line["ratio"] for line in result["comparison"] if line["pass"] == "epoch"}
        self.assertEqual(ratios["keras"], 0.125)

    def test_all_sides_train_the_same_epochs_in_turns_and_are_judged_by_both_clocks(self):
        done, result, log = self.run_race("--trainings", "mnist_mlp,lstm_text")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {(line["net"], line["pass"], line["peer"]): line for line in result["comparison"]}
        self.assertEqual(len(lines), 2 * 2 * 3)
        for net in ("mnist_mlp", "lstm_text"):
            self.assertEqual(lines[net, "epoch", "torch eager"]["ratio"], 0.5)
            self.assertEqual(lines[net, "epoch", "torch compiled"]["ratio"], 0.25)
            self.assertEqual(lines[net, "epoch", "best of all peers"]["ratio"], 0.5)
            self.assertEqual(lines[net, "epoch cpu", "best of all peers"]["ratio"], 0.25)
        config = json.loads(log[0][1][1])
        self.assertEqual((config["training"], config["share"], config["epochs"]), ("mnist_mlp", 0.5, 3))
        self.assertEqual(log[1][1][1:], ["mnist_mlp", config["files"], "32", str(config["threads"]), "eager"])
        order = [name[0] for name, what, *_ in log if what == "pass epoch nchw"]
        self.assertEqual("".join(order), 2 * ("lec" + "lec" + "cel"))
        self.assertFalse(os.path.exists(config["files"]))
        row = result["benchmarks"][0]
        self.assertEqual(row["key"]["what"], "train")
        self.assertEqual((row["real_time"], row["items_per_second"], row["label"]), (500.0, 640.0, "synthetic nothing"))

    def test_a_peer_that_fails_is_left_out_and_the_others_are_compared(self):
        for fails, stage in (("compiled", "start"), ("eager", "race")):
            done, result, _ = self.run_race("--trainings", "mnist_mlp", fails=fails)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([(one["name"], one["stage"]) for one in result["failures"]],
                             [(f"torch {fails}", stage)])
            self.assertEqual(len({line["peer"] for line in result["comparison"]}), 1)

    def test_where_lamina_fails_the_race_ends(self):
        done, _, _ = self.run_race("--trainings", "mnist_mlp", fails="lamina")
        self.assertEqual(done.returncode, 1)
        self.assertIn("out of memory", done.stderr)

    def test_on_a_device_each_backend_races_the_faster_variant_of_pytorch(self):
        words = ("--trainings", "mnist_mlp", "--device", "rehearsal", "--backends", "cuda-host,cuda")
        done, result, log = self.run_race(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(line["lamina"], line["pass"], line["peer"], line["peer_variant"], line["ratio"])
                          for line in result["comparison"]],
                         [(f"lamina/{backend}", "epoch", "torch", "eager", 0.5) for backend in ("cuda-host", "cuda")])
        started = [words for name, words, *_ in log if isinstance(words, list)]
        first, second = (json.loads(words[1]) for words in started[:2])
        self.assertEqual((first["backend"], second["backend"], first["device"]), ("cuda-host", "cuda", 0))
        self.assertIn("files", first)
        self.assertNotIn("files", second)  # one side writes the batches
        self.assertEqual([words[2:] for words in started[2:]],
                         [[first["files"], "32", str(first["threads"]), variant, "cpu"] for variant in ("eager", "compiled")])
        self.assertEqual({row["key"]["backend"] for row in result["benchmarks"]},
                         {"cuda-host", "cuda", "torch-eager", "torch-compiled"})

    def test_a_backend_that_fails_on_a_device_is_left_out(self):
        words = ("--trainings", "mnist_mlp", "--device", "rehearsal", "--backends")
        done, result, _ = self.run_race(*words, "cuda-host,cuda", fails="lamina/cuda")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(one["name"], one["stage"]) for one in result["failures"]], [("lamina/cuda", "race")])
        self.assertEqual([line["lamina"] for line in result["comparison"]], ["lamina/cuda-host"])
        done = self.run_race(*words, "cuda", fails="lamina/cuda")[0]
        self.assertEqual(done.returncode, 1)
        self.assertIn("no ratio", done.stderr)

    def test_a_ratio_above_the_limit_is_a_failure(self):
        self.assertEqual(self.run_race("--trainings", "mnist_mlp", "--limit", "0.6")[0].returncode, 0)
        done = self.run_race("--trainings", "mnist_mlp", "--limit", "0.4")[0]
        self.assertEqual(done.returncode, 1)
        self.assertIn("mnist_mlp", done.stderr)

    def test_options_that_do_not_go_together_are_refused(self):
        for words in (("--trainings", "mnist_mlq"), ("--trainings", "mnist_mlp", "--layers"),
                      ("--trainings", "mnist_mlp", "--share", "0"), ("--trainings", "mnist_mlp", "--retries", "1"),
                      ("--trainings", "mnist_mlp", "--device", "cuda", "--precision", "f32"),
                      ("--trainings", "mnist_mlp", "--device", "cuda", "--keras", "python3")):
            done = subprocess.run([sys.executable, "-B", COMPARE, *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, words)


if __name__ == "__main__":
    unittest.main()
