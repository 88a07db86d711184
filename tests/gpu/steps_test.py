"""What run-all plans: its steps, with the libraries and Pythons that it finds on a machine."""

import argparse
import os
import re
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "../../bench", folder) for folder in ("gpu", "race")]

import options  # noqa: E402
from runner import machine, steps  # noqa: E402

MACHINE = types.SimpleNamespace(cudnn=["/a", "/b"], torch="/python",
                                tools={"nvidia-smi": "smi", "compute-sanitizer": "sanitizer", "ncu": "ncu"})


def plan(found=MACHINE, rehearse=False):
    return steps.Plan("/pack", found, rehearse).steps()


class Plan(unittest.TestCase):
    def test_the_first_minutes_are_a_smoke_test_and_the_race_of_resnet50(self):
        found = plan()
        names = [step.name for step in found]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(names[:9], ["nvidia-smi", "device and cuBLAS, cuda", "NCCL itself, cuda",
                                     "cuDNN itself, cudnn", "PyTorch's first import", "smoke test, cuda",
                                     "smoke test, cudnn", "resnet50 beside PyTorch, f32",
                                     "resnet50 beside PyTorch, TF32"])
        self.assertLess(sum(step.seconds for step in found[:9]), 300)
        parts = [names.index(name) for name in ("convolution, cuda", "alexnet beside PyTorch, f32",
                                                "alexnet beside PyTorch, TF32", "ledger of resnet50, cuda",
                                                "memcheck, smoke test")]
        self.assertEqual(parts, sorted(parts))

    def test_a_call_of_nine_minutes_has_every_suite_and_the_races_of_five_networks(self):
        found, left = [], 540
        for step in plan():  # as run-all does it
            if step.seconds <= left:
                found.append(step.name)
                left -= step.seconds
        self.assertLessEqual({f"{net} beside PyTorch, f32" for net in ("resnet50", "alexnet", "vgg16", "inception_v1",
                                                                      "vgg19")}, set(found))
        self.assertLessEqual({f"{suite}, cuda" for suite in ("tiles of every size", "convolution", "other ops", "plans",
                                                             "training", "networks against eigen")}, set(found))
        self.assertLessEqual({f"{suite}, cudnn" for suite in ("convolution", "other ops", "networks against eigen")},
                             set(found))

    def test_every_step_can_end_within_a_call_of_ten_minutes(self):
        for step in plan():
            self.assertLess(max(step.seconds, step.time_limit()), 600, step.name)

    def test_pytorch_has_time_for_a_cold_import(self):
        for step in plan():
            if "/pack/race/race" in step.command:
                words = [word.replace("=/a", "=/").replace("/pack/bin/lamina_bench.sh", sys.executable)
                         for word in step.command[3:]]
                self.assertEqual(options.parse("", words).patience, 240)  # and the race takes what it is given
            if "import torch" in " ".join(step.command):
                self.assertEqual(step.time_limit(), 240)

    def test_every_file_of_tests_for_a_device_is_in_a_suite_of_both_backends(self):
        ran = {backend: "".join(step.command[-1] for step in plan() if step.cases and step.name.endswith(backend))
               for backend in (", cuda", ", cudnn")}
        for folder in ("ops", "plan", "train"):
            for name in os.listdir(os.path.join(HERE, "..", folder)):
                if name.endswith("_test.cpp") and name != "bounds_test.cpp":  # which is of the processor alone
                    for backend, patterns in ran.items():
                        self.assertIn(f"[#{name[:-len('.cpp')]}]", patterns, backend)

    def test_every_file_that_a_step_names_is_there(self):
        there = {name.partition(".")[0] for _, _, names in os.walk(os.path.join(HERE, "..")) for name in names}
        named = {name for step in plan() for word in step.command for name in re.findall(r"\[#(\w+)\]", word)}
        self.assertEqual(named - there, set())
        self.assertIn("conv_test", named)

    def test_commands_name_the_cudnn_that_was_found_and_leave_it_out_where_none_was(self):
        found = {step.name: step for step in plan()}
        self.assertIn("--cudnn=/a", found["passes, cudnn"].command)
        self.assertIn(("LAMINA_TEST_BACKEND", "cudnn:/a"), found["convolution, cudnn"].environment)
        self.assertIn("--cudnn=/a,/b", found["two versions of cuDNN"].command)
        self.assertIn("cuda,cuda+graph,cudnn=/a,cudnn+graph=/a", found["resnet50 beside PyTorch, f32"].command)
        found = {step.name: step for step in plan(types.SimpleNamespace(**{**vars(MACHINE), "cudnn": []}))}
        self.assertIn("cuda,cuda+graph", found["resnet50 beside PyTorch, f32"].command)
        self.assertEqual(found["resnet50 beside PyTorch, TF32"].needs, ("torch", "cudnn"))

    def test_a_rehearsal_asks_for_no_device(self):
        for step in plan(rehearse=True):
            self.assertLessEqual(set(step.needs), {"torch"}, step.name)
            self.assertFalse([word for word in step.command if word in ("cuda", "--backend=cuda")], step.name)


class Machines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def file(self, name, content=""):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        os.chmod(path, 0o755)
        return path

    def find(self, **options):
        given = {"python": None, "cudnn": [], **options}
        return machine.Machine(argparse.Namespace(**given))

    def test_pytorch_of_an_environment_that_is_not_active_is_found_and_brings_its_libraries(self):
        site = os.path.join(self.root, "venv/lib/python3.12/site-packages")
        python = self.file("venv/bin/python3", f"#!/bin/sh\necho {site}\n")
        for name in ("torch/__init__.py", "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cu13/lib/libcublas.so.13"):
            self.file(os.path.join(site, name))
        toolkit = os.path.dirname(self.file("cuda/lib64/libcudnn.so.9"))
        tool = self.file("cuda/bin/ncu")
        os.symlink(os.path.join(self.root, "cuda"), os.path.join(self.root, "the same"))
        environment = {"CUDA_HOME": os.path.join(self.root, "cuda"), "CUDA_PATH": os.path.join(self.root, "the same"),
                       "PATH": "/no/such", "LD_LIBRARY_PATH": ""}
        with mock.patch.object(machine, "USUAL", ("/no/such/python", "/bin/true")), \
                mock.patch.object(machine, "ENVIRONMENTS", (self.root + "/*",)), \
                mock.patch.dict(os.environ, environment):
            found = self.find()
        self.assertEqual(found.torch, python)
        self.assertEqual([folder for folder in found.cudnn if folder.startswith(self.root)],
                         [site + "/nvidia/cudnn/lib", toolkit])
        self.assertEqual([folder for folder in found.libraries if folder.startswith(self.root)],
                         [site + "/nvidia/cu13/lib", toolkit, os.path.join(self.root, "the same/lib64")])
        self.assertEqual(found.tools["ncu"], tool)
        self.assertEqual([found.lacks(need) for need in ("torch", "cudnn", "two cudnn", "ncu")], ["", "", "", ""])

    def test_what_options_name_is_taken_alone_or_refused(self):
        one = os.path.dirname(self.file("one/libcudnn.so.8"))
        self.assertEqual(self.find(cudnn=[one]).cudnn, [one])
        self.assertIn("1 folders with cuDNN", self.find(cudnn=[one]).lacks("two cudnn"))
        for options in ({"cudnn": [self.root]}, {"python": "/bin/true"}, {"python": "/no/such"}):
            with self.assertRaises(machine.NotThere):
                self.find(**options)


if __name__ == "__main__":
    unittest.main()
