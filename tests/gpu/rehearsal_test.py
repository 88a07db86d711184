"""run-all from its first to its last step, without a GPU: a quick rehearsal on the backend eigen, with the programs of
a build tree in the place of a pack's; and once without a rehearsal, where every step of the device has to fail.

usage: rehearsal_test.py SOURCE LAMINA_BENCH TESTS, a program with the cases of tests/ops"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, PROGRAMS = sys.argv[1], dict(zip(("lamina_bench", "gpu_tests"), sys.argv[2:4]))


class Rehearsal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.out = os.path.join(folder.name, "pack"), os.path.join(folder.name, "out")
        os.makedirs(os.path.join(self.root, "bin"))
        shutil.copy(os.path.join(SOURCE, "bench/gpu/run-all"), self.root)
        for name, path in (("runner", "bench/gpu/runner"), ("race", "bench/race"), ("data", "tests/data"),
                           ("bin/lamina_bench.sh", "bench/gpu/lamina_bench.sh")):
            os.symlink(os.path.join(SOURCE, path), os.path.join(self.root, name))
        for name, path in PROGRAMS.items():
            os.symlink(path, os.path.join(self.root, "bin", name))

    def run_all(self, *flags, **environment):
        done = subprocess.run([sys.executable, "-B", os.path.join(self.root, "run-all"), "--out", self.out, *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                              timeout=300, env={**os.environ, **environment})
        with open(os.path.join(self.out, "results.json"), encoding="utf-8") as file:
            return done, json.load(file)["steps"]

    def test_a_quick_rehearsal_runs_all_parts_to_the_end(self):
        done, steps = self.run_all("--rehearse", "quick")
        self.assertEqual(done.returncode, 0, done.stdout)
        passed = {name for name, step in steps.items() if step["state"] == "passed"}
        self.assertLessEqual({"ops, eigen for cuda", "strict, first networks, eigen for cuda",
                              "ledger of mnist_cnn, eigen for cudnn", "layers of mnist_cnn, eigen for cuda",
                              "frontier of mnist_cnn, eigen for cuda"}, passed, done.stdout)
        self.assertLessEqual({step["state"] for step in steps.values()}, {"passed", "not available"})
        self.assertIn("rehearsal, quick: no device took part", done.stdout)
        self.assertIn("| mnist_cnn", done.stdout)
        files = set(os.listdir(self.out))
        self.assertLessEqual(len(files), 8)
        self.assertLessEqual({"results.json", "summary.md", "logs.txt", "tables.txt", "bench.jsonl.gz"}, files)
        with gzip.open(os.path.join(self.out, "bench.jsonl.gz"), "rt", encoding="utf-8") as file:
            self.assertTrue(all(json.loads(line)["report"]["benchmarks"] for line in file))

    def test_without_a_gpu_every_step_of_the_device_fails_with_the_reason_and_the_page_comes(self):
        done, steps = self.run_all(CUDA_VISIBLE_DEVICES="")  # none, where there is one
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("## Failed", done.stdout)
        on_device = {name: step for name, step in steps.items() if name != "cuDNN itself"}
        self.assertGreater(len(on_device), 50)
        for name, step in on_device.items():
            self.assertEqual(step["state"], "failed", name)
            self.assertTrue(step["line"].startswith("no device: "), step["line"])
            self.assertNotIn("\n", step["line"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
