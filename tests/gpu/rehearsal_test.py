"""A rehearsal of run-all that is killed at random. usage: rehearsal_test.py SOURCE LAMINA_BENCH TEST_OPS"""

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
STEPS = os.environ.get("LAMINA_TEST_STEPS", "smoke|, cudnn|ledger of resnet50, cudnn")  # other steps take minutes


class Rehearsal(unittest.TestCase):
    def test_a_rehearsal_that_is_killed_at_random_moments_goes_on_and_ends(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        root, out, gpu = folder + "/pack", folder + "/out", SOURCE + "/bench/gpu"
        os.makedirs(root + "/bin")
        shutil.copy(gpu + "/run-all", root)
        links = {name: os.path.join(gpu, name) for name in os.listdir(gpu) if name.endswith(".py")}
        links |= {"race": SOURCE + "/bench/race", "data": SOURCE + "/tests/data",
                  "atomic.py": SOURCE + "/bench/atomic.py",
                  "interrupts.py": SOURCE + "/bench/interrupts.py", "bin/lamina_bench.sh": gpu + "/lamina_bench.sh"}
        for name, path in {**links, **{f"bin/{name}": path for name, path in PROGRAMS.items()}}.items():
            os.symlink(path, os.path.join(root, name))
        passed = set()
        command = [sys.executable, root + "/run-all", "--out", out, "--rehearse", "--minutes", "15", "--steps", STEPS]
        for kill in [True] * KILLS + [False]:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
            if kill:
                time.sleep(random.uniform(0.5, 8 if KILLS == 3 else 60))
                child.kill()
            printed = child.communicate()[0]
            now = {line.rsplit(": passed", 1)[0] for line in printed.splitlines() if ": passed" in line}
            self.assertEqual(now & passed, set())  # no finished step runs again
            passed |= now
        self.assertEqual(child.returncode, 0, printed)
        self.assertLessEqual({"smoke test, cuda", "smoke test, cudnn", "passes, cudnn f32"}, passed)
        page = pathlib.Path(out, "summary.md").read_text(encoding="utf-8")
        self.assertIn("a rehearsal: no device took part", page)
        self.assertRegex(page, "memcheck of the smoke test.*: a rehearsal has no GPU")
        self.assertRegex(page, r"cudnn f32 +\| net/mnist_cnn/total/eigen/.* ms")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
