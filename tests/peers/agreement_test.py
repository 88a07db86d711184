"""The peers that bench/get-peers has brought, as themselves: a small network in every variant, whose numbers are
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
import processor_peers
import pythons

BENCH = sys.argv.pop(1)
PROGRAMS = [program for program in ("torch", *processor_peers.RUNTIMES)
            if processor_peers.brought(processor_peers.FOLDER, program)]
VARIANTS = {"torch": ("torch", "torch+hugepages", "torch+compiled", "torch+compiled+frozen@nchw")}


def words_of(program):
    return VARIANTS.get(program, (program, f"{program}+hugepages"))


class Agreement(unittest.TestCase):
    def test_every_variant_of_those_that_are_here_agrees(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.json")
            words = [word for program in PROGRAMS for word in words_of(program)]
            modes = "training,inference" if "torch" in PROGRAMS else "inference"
            done = subprocess.run(
                [os.path.join(RACE, "compare"), "--program", BENCH, "--nets", "mnist_cnn", "--batch", "2", "--samples", "2",
                 "--retries", "0", "--memory", "no", "--passive", "--modes", modes, "--peers", ",".join(words), "--out",
                 out], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(out) as file:
                result = json.load(file)
        checked = {(one["name"], one["mode"]) for one in result["checks"]}
        for word in words:
            name = word.partition("@")[0].replace("+", " ", 1)
            for mode in processor_peers.modes_of(word):
                self.assertTrue("torch" not in PROGRAMS or (name, mode) in checked, (name, mode))
        self.assertTrue(all(0 < one["difference"] < 1e-5 for one in result["checks"]), result["checks"])

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
                python = processor_peers.brought(processor_peers.FOLDER, program)
                peer = processor_peers.Peer(program, "", ("nchw",), python, program)
                arguments = type("Arguments", (), {"batch": 2, "threads": 1, "passive": True})
                done = subprocess.run(peer.command("mnist_cnn", arguments, folder), input="check inference nchw\n",
                                      capture_output=True, text=True, check=True,
                                      env=os.environ | {"LAMINA_BENCH": BENCH})
                difference = json.loads(done.stdout.splitlines()[-1])["difference"]
                self.assertGreater(difference, 1e-4)


if __name__ == "__main__":
    if not PROGRAMS:
        print(f"skipped: none of torch, {', '.join(processor_peers.RUNTIMES)} in {processor_peers.FOLDER}. "
              "bench/get-peers brings them")
        sys.exit(pythons.SKIPPED)
    unittest.main()
