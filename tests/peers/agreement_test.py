"""The peers that bench/get-peers has installed, as themselves: a small network in every variant, whose numbers are
Lamina's, and weights of which one is another, which are an error. Usage: agreement_test.py LAMINA_BENCH"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RACE = os.path.join(HERE, "../../bench/race")
sys.path.insert(0, RACE)
import options
import pythons
import variants

BENCH = sys.argv.pop(1)
PROGRAMS = [engine for engine in ("torch", "onnxruntime", "openvino") if pythons.installed(variants.FOLDER, engine)]
WORDS = {"torch": ("torch", "torch+hugepages", "torch+compiled@nhwc", "torch+compiled+frozen")}


class Agreement(unittest.TestCase):
    def test_every_variant_of_those_that_are_here_agrees(self):
        words = [f"{word}+passive" if "@" not in word else word for program in PROGRAMS
                 for word in WORDS.get(program, (program, f"{program}+hugepages"))]
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.json")
            done = subprocess.run(
                [os.path.join(RACE, "race"), "mnist_cnn", "--program", BENCH, "--batch", "2", "--rounds", "2",
                 "--retries", "0", "--memory", "no", "--modes",
                 "training,inference" if "torch" in PROGRAMS else "inference", "--peers",
                 ",".join(words), "--benchmark_out", out], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(out) as file:
                rows = [row for row in json.load(file)["benchmarks"] if row["variant"] != "eigen"]
        self.assertEqual({row["variant"] for row in rows}, set(words))
        self.assertTrue(all(0 < row["check"]["difference"] < 1e-5 for row in rows), rows)

    def test_other_weights_give_other_numbers_and_their_difference(self):
        for program in PROGRAMS:
            with self.subTest(program), tempfile.TemporaryDirectory() as folder:
                config = {"net": "mnist_cnn", "batch": 2, "threads": 1, "onnx": True, "files": folder}
                subprocess.run([BENCH, "serve", json.dumps(config)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, check=True)
                for name in ("network.onnx", "weights.safetensors"):
                    path = os.path.join(folder, name)
                    with open(path, "r+b") as file:  # the last weights come last, or nearly so
                        file.seek(os.path.getsize(path) // 2)
                        file.write(b"\0" * 4096)
                given = options.parse("", ["--program", BENCH, "--threads", "1", "--peers", program, "--modes",
                                           "inference"])
                variant, = variants.with_pythons(given.peers_variants, [], variants.FOLDER)
                done = subprocess.run(variant.command("networks", "mnist_cnn", 2, given, folder),
                                      input="check inference nchw\n", capture_output=True, text=True, check=True,
                                      env=os.environ | {"LAMINA_BENCH": BENCH})
                self.assertGreater(json.loads(done.stdout.splitlines()[-1])["difference"], 1e-4)


if __name__ == "__main__":
    if not PROGRAMS:
        print(f"skipped: none of torch, onnxruntime, openvino is in {variants.FOLDER}. "
              "bench/get-peers installs them")
        sys.exit(pythons.SKIPPED)
    unittest.main()
