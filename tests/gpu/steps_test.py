"""The steps that run-all plans, with the libraries and Pythons that it finds on a machine."""

import os
import pathlib
import re
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "../../bench", folder) for folder in ("gpu", "race")]

import machine  # noqa: E402
import options  # noqa: E402
import steps  # noqa: E402

TOOLS = {"nvidia-smi": "smi", "compute-sanitizer": "sanitizer", "ncu": "ncu"}
FOUND = types.SimpleNamespace(cudnn="/a", torch="/python", tools=TOOLS, libraries=["/l"])


def every():
    return steps.every("/pack", FOUND, False)


class Steps(unittest.TestCase):
    def test_call_1_ends_within_420_seconds_by_its_estimates(self):
        found, lanes = every()[:len(steps.STEPS)], {}
        self.assertEqual(len({step.name for step in every()}), len(every()))
        for step in found:
            lanes[step.lane] = lanes.get(step.lane, 0) + step.seconds
        alone = lanes.pop("")
        self.assertLessEqual(15 + alone + max(lanes.values()), 420)  # 15 s to examine the machine
        for item in ("tiles", "convolution, cudnn", "plans, cudnn", "training, cuda", "import and numbers", "memcheck",
                     "f32 and TF32", "resnet50 beside PyTorch, bf16", "passes, cudnn bf16 nhwc", "passes, cuda f32",
                     "passes, cudnn f32", "passes, cudnn TF32", "vgg16 beside", "ledger of resnet50, cudnn", "Nsight"):
            self.assertIn(item, "\n".join(step.name for step in found))
        # Timed steps begin after all other steps, the most valuable ones first.
        timed = [step.name for step in found[1 + max(i for i, step in enumerate(found) if step.lane):]]
        self.assertRegex(str(timed), "resnet50.*resnet50.*passes.*alexnet.*ledger")

    def test_the_race_takes_its_commands_and_they_name_the_cudnn_that_was_found(self):
        for step in every():
            if "/pack/race/race" in step.command:
                words = [word.replace("=/a", "=/").replace("/pack/bin/lamina_bench.sh", sys.executable)
                         for word in step.command[3:]]
                given = options.parse("", words)
                self.assertLessEqual(given.patience, step.limit())
                self.assertTrue(given.rounds >= options.FEWEST_ROUNDS or "numbers" in step.name)
        found = {step.name: step for step in every()}
        self.assertIn("--cudnn=/a", found["passes, cudnn f32"].command)
        self.assertIn("LAMINA_TEST_BACKEND=cudnn:/a", found["convolution, cudnn"].command)

    def test_every_file_of_tests_for_a_device_is_in_a_suite_of_both_backends_and_exists(self):
        there = {name.partition(".")[0] for _, _, names in os.walk(os.path.join(HERE, "..")) for name in names}
        ran = {backend: set(re.findall(r"\[#(\w+)\]", " ".join(step.command[-1] for step in every()
                                                               if step.name.endswith(backend))))
               for backend in (", cuda", ", cudnn")}
        for named in ran.values():
            self.assertEqual(named - there, set())
            for folder in ("ops", "plan", "train"):
                for name in os.listdir(os.path.join(HERE, "..", folder)):
                    if name.endswith("_test.cpp") and name != "bounds_test.cpp":  # it runs on the processor only
                        self.assertIn(name[:-len(".cpp")], named)


class Machines(unittest.TestCase):
    def setUp(self):
        self.root = self.enterContext(tempfile.TemporaryDirectory())

    def file(self, name, content=""):
        path = pathlib.Path(self.root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def test_pytorch_of_an_environment_that_is_not_active_is_found_and_brings_its_libraries(self):
        site = os.path.join(self.root, "venv/lib/python3.12/site-packages")
        python = self.file("venv/bin/python3", f"#!/bin/sh\necho {site}\n")
        for name in ("torch/__init__.py", "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cu13/lib/libcublas.so.13"):
            self.file(os.path.join(site, name))
        tool, kit = self.file("cuda/bin/ncu"), os.path.dirname(self.file("cuda/lib64/libcudnn.so.9"))
        without = self.file("none/bin/python3", f"#!/bin/sh\nexec {sys.executable} -S -I \"$@\"\n")  # it lacks PyTorch
        tried = ("/no/such/python", "/bin/true", without, self.root + "/*/bin/python3")
        with mock.patch.object(machine, "PYTHONS", tried), \
                mock.patch.dict(os.environ, {"CUDA_HOME": os.path.join(self.root, "cuda"), "PATH": "/no/such"}):
            found = machine.Machine(False)
        self.assertEqual((found.torch, found.cudnn, found.tools["ncu"]), (python, site + "/nvidia/cudnn/lib", tool))
        self.assertEqual([folder for folder in found.libraries if folder.startswith(self.root)],
                         [site + "/nvidia/cu13/lib", kit])
        self.assertEqual([found.lacks(need) for need in ("gpu", "torch", "cudnn", "ncu")], ["", "", "", ""])


if __name__ == "__main__":
    unittest.main()
