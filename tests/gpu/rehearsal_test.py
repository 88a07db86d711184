"""run-all from its first to its last step without a GPU: a rehearsal, with the programs of a build tree in the place of
a pack's; and a run that finds no device.

usage: rehearsal_test.py SOURCE LAMINA_BENCH TESTS, a program with the cases of tests/ops"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
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
                           ("bin/lamina_bench.sh", "bench/gpu/lamina_bench.sh"), ("atomic.py", "bench/atomic.py"),
                           ("interrupts.py", "bench/interrupts.py")):
            os.symlink(os.path.join(SOURCE, path), os.path.join(self.root, name))
        for name, path in PROGRAMS.items():
            os.symlink(path, os.path.join(self.root, "bin", name))

    def run_all(self, *flags, **environment):
        done = subprocess.run([sys.executable, "-B", os.path.join(self.root, "run-all"), "--out", self.out, *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                              env={**os.environ, **environment})
        with open(os.path.join(self.out, "results.json"), encoding="utf-8") as file:
            return done.stdout, done.returncode, json.load(file)["steps"]

    def test_a_rehearsal_runs_every_kind_of_step(self):
        # The kernels on the host take minutes for the others.
        printed, status, steps = self.run_all("--rehearse", "--steps", "smoke|, cudnn$")
        self.assertEqual(status, 0, printed)
        self.assertEqual({step["state"] for step in steps.values()}, {"passed"}, printed)
        self.assertLessEqual({"smoke test, cuda", "smoke test, cudnn", "passes, cudnn", "ledger of mnist_cnn, cudnn",
                              "layers of mnist_cnn, cudnn", "frontier of mnist_cnn, cudnn"}, set(steps))
        self.assertIn("a rehearsal: no device took part", printed)
        self.assertRegex(printed, r"cudnn +\| net/mnist_cnn/total/eigen/.* ms")
        self.assertEqual(set(os.listdir(self.out)), {"results.json", "results.tar", "summary.md"})
        with tarfile.open(os.path.join(self.out, "results.tar")) as tar:
            names = tar.getnames()
        for name in steps:
            self.assertEqual(names.count(name.replace(" ", "_") + ".txt.gz"), 1, name)

    def test_without_a_gpu_nothing_runs_and_the_page_says_why(self):
        printed, status, steps = self.run_all(CUDA_VISIBLE_DEVICES="")  # none, where there is one
        self.assertEqual((status, steps), (1, {}), printed)
        self.assertIn("no device, so no step was run: ", printed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
