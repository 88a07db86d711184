"""run-all without a GPU: a rehearsal, killed at random moments, with the programs of a build tree in the place of a
pack's; and a run that finds no device.

usage: rehearsal_test.py SOURCE LAMINA_BENCH TESTS, a program with the cases of tests/ops"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE, PROGRAMS = sys.argv[1], dict(zip(("lamina_bench", "gpu_tests"), sys.argv[2:4]))
KILLS = int(os.environ.get("LAMINA_TEST_KILLS", "3"))
STEPS = os.environ.get("LAMINA_TEST_STEPS", "smoke|, cudnn|ledger of resnet50, cudnn")  # others take minutes on the host


class Rehearsal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.out = os.path.join(folder.name, "pack"), os.path.join(folder.name, "out")
        os.makedirs(os.path.join(self.root, "bin"))
        gpu = os.path.join(SOURCE, "bench/gpu")
        shutil.copy(os.path.join(gpu, "run-all"), self.root)
        links = {name: os.path.join(gpu, name) for name in os.listdir(gpu) if name.endswith(".py")}
        links |= {"race": SOURCE + "/bench/race", "data": SOURCE + "/tests/data", "atomic.py": SOURCE + "/bench/atomic.py",
                  "bin/lamina_bench.sh": gpu + "/lamina_bench.sh"}
        for name, path in {**links, **{f"bin/{name}": path for name, path in PROGRAMS.items()}}.items():
            os.symlink(path, os.path.join(self.root, name))
        self.command = [sys.executable, "-B", os.path.join(self.root, "run-all"), "--out", self.out]

    def page(self):
        return pathlib.Path(self.out, "summary.md").read_text(encoding="utf-8")

    def test_a_rehearsal_that_is_killed_at_random_moments_goes_on_and_ends(self):
        seed = random.randrange(1 << 30)
        print("seed", seed)
        moments, passed = random.Random(seed), set()
        command = [*self.command, "--rehearse", "--minutes", "15", "--steps", STEPS]
        for kill in [True] * KILLS + [False]:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
            if kill:
                time.sleep(moments.uniform(0.5, 8 if KILLS == 3 else 60))
                child.kill()
            printed = child.communicate()[0]
            now = {line.rsplit(": passed", 1)[0] for line in printed.splitlines() if ": passed" in line}
            self.assertEqual(now & passed, set())  # nothing that is done runs again
            passed |= now
        self.assertEqual(child.returncode, 0, printed)
        self.assertLessEqual({"smoke test, cuda", "smoke test, cudnn", "passes, cudnn f32", "ledger of resnet50, cudnn"}, passed)
        self.assertIn("a rehearsal: no device took part", self.page())
        self.assertIn("memcheck of the smoke test: a rehearsal has no GPU", self.page())
        self.assertRegex(self.page(), r"cudnn f32 +\| net/mnist_cnn/total/eigen/.* ms")
        self.assertEqual(set(os.listdir(self.out)), {"results.tar.gz", "summary.md"})

    def test_without_a_gpu_nothing_runs_and_the_page_says_why(self):
        done = subprocess.run(self.command, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},  # none, where there is one
                              stdout=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no device, so no step was run: ", self.page())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
