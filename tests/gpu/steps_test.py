"""What run-all plans: its steps, with the libraries and Pythons that it finds on a machine."""

import os
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "../../bench", folder) for folder in ("gpu", "race")]

import options  # noqa: E402
import trainings  # noqa: E402
from runner import machine, program, steps  # noqa: E402


class Plan(unittest.TestCase):
    target = steps.Target(root="/pack", python="python3", cudnn_folders=("/a", "/b"))

    def test_no_two_steps_have_the_same_name_and_every_part_has_steps_of_the_first_rank(self):
        for how in ("", "quick", "whole"):
            found = steps.all_steps(steps.rehearsal(self.target, how) if how else self.target)
            self.assertEqual(len({step.name for step in found}), len(found))
            self.assertEqual({step.part for step in found if step.rank == 1}, {"A", "B", "C"})

    def test_the_first_rank_fits_into_ten_minutes(self):
        self.assertLess(sum(step.seconds for step in steps.all_steps(self.target) if step.rank <= 1), 600)

    def test_only_a_rehearsal_runs_without_a_device(self):
        for step_ in steps.all_steps(self.target):
            self.assertTrue("device" in step_.needs or step_.needs == ("cudnn",), step_.name)

    def test_the_tests_of_kernels_on_the_host_are_not_run_for_a_device(self):
        kernels = {name[:-len("_test.cpp")] for name in os.listdir(os.path.join(HERE, "../kernels"))
                   if name.endswith("_test.cpp")} - {"host"}  # which is in a separate program
        self.assertLessEqual(kernels, set(steps.NOT_THE_REST))

    def test_a_race_has_time_to_compile_and_to_end(self):
        for step_ in steps.all_steps(self.target):
            if step_.kind == "peers":
                words = dict(zip(step_.command, step_.command[1:]))
                compiling = float(words.get("--compile_seconds", 0))
                self.assertLess(compiling + float(words["--patience"]), step_.time_limit())
                self.assertLess(step_.time_limit(), 600)  # of one command

    def test_each_of_the_six_trainings_is_raced_in_the_second_rank(self):
        found = {step_.name: step_ for step_ in steps.all_steps(self.target)}
        for workload in trainings.WORKLOADS:
            step_ = found[f"train/{workload} beside PyTorch"]
            self.assertEqual((step_.part, step_.rank, step_.kind), ("B", 2, "peers"))
            words = [word.replace("@work@", "/tmp") for word in step_.command[3:]]
            words[words.index("--program") + 1] = sys.executable
            given = options.parse("", words)
            self.assertEqual((given.trainings, given.backends), (workload, "cuda,cudnn:/a"))

    def test_the_commands_name_the_cudnn_that_was_found(self):
        found = {step.name: step for step in steps.all_steps(self.target)}
        self.assertIn("--cudnn=/a", found["strict, first networks, cudnn"].command)
        self.assertIn(("LAMINA_TEST_BACKEND", "cudnn:/a"), found["convolution, cudnn"].environment)
        self.assertIn("/a,/b", found["two versions of cuDNN"].command)

    def test_options_have_defaults_that_pass_their_own_checks(self):
        options = program.parse([], "/pack")
        self.assertEqual((options.parts, options.out, options.minutes), ("ABC", "/pack/results", 30))


class Machines(unittest.TestCase):
    def test_libraries_are_found_in_wheels_and_toolkits_once_each(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel, toolkit = os.path.join(folder, "site/nvidia/cudnn/lib"), os.path.join(folder, "cuda/lib64")
            for path in (wheel, toolkit):
                os.makedirs(path)
                with open(os.path.join(path, "libcudnn.so.9"), "w", encoding="utf-8"):
                    pass
            os.symlink(toolkit, os.path.join(folder, "cuda/lib"))
            python = type("Python", (), {"folders": [os.path.join(folder, "site")]})
            before, os.environ["CUDA_HOME"] = os.environ.get("CUDA_HOME"), os.path.join(folder, "cuda")
            try:
                found = machine.libraries(machine.CUDNN, [], [python])
            finally:
                os.environ.pop("CUDA_HOME")
                if before is not None:
                    os.environ["CUDA_HOME"] = before
            self.assertEqual(found[0], wheel)
            self.assertEqual([path for path in found if path.startswith(folder)], [wheel, toolkit])
            with self.assertRaises(machine.NotThere):
                machine.libraries(machine.CUDNN, [folder], [])

    def test_a_wheel_of_cublas_brings_the_other_wheels_but_no_cudnn(self):
        with tempfile.TemporaryDirectory() as folder:
            def wheel(name, file):
                path = os.path.join(folder, "site-packages/nvidia", name, "lib")
                os.makedirs(path)
                with open(os.path.join(path, file), "w", encoding="utf-8"):
                    return path
            nvrtc, cublas = wheel("cuda_nvrtc", "libnvrtc.so.12"), wheel("cublas", "libcublas.so.12")
            wheel("cudnn", "libcudnn.so.9")
            self.assertEqual(machine.beside(cublas), [cublas, nvrtc])
            self.assertEqual(machine.beside(folder), [folder])

    def test_pytorch_is_found_in_a_virtual_environment_that_is_not_active(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "venv/lib/python3.12/site-packages/torch"))
            os.makedirs(os.path.join(folder, "venv/bin"))
            python = os.path.join(folder, "venv/bin/python3")
            with open(python, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho '[\"{python}\", \"3.12\", [\"{folder}/venv\"], true]'\n")
            os.chmod(python, 0o755)
            with mock.patch.object(machine, "ENVIRONMENTS", (folder + "/*",)):
                self.assertIn(python, [found.executable for found in machine.pythons(None) if found.has_torch])

    def test_the_cublas_of_the_build_comes_first(self):
        with tempfile.TemporaryDirectory() as folder:
            for major in ("12", "13"):
                os.makedirs(os.path.join(folder, major))
                with open(os.path.join(folder, major, f"libcublas.so.{major}"), "w", encoding="utf-8"):
                    pass
            both = [os.path.join(folder, major) for major in ("12", "13")]
            self.assertEqual(machine.of_major(both, machine.CUBLAS, "13"), both[::-1])


if __name__ == "__main__":
    unittest.main()
