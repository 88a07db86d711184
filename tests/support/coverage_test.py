"""tests/coverage: the lines it counts on a program made for this, the table, the bound, and its errors."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

TESTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
loader = importlib.machinery.SourceFileLoader("coverage", os.path.join(TESTS, "coverage"))
coverage = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(coverage)

PROGRAM = """#include "twice.h"
int never(int x) {
  return x + 1;
}
int main(int count, char**) {
  int sum = 0;
  for (int i = 0; i < count; ++i)
    sum += twice(i);
  if (sum == 7)
    sum = never(sum);
  return sum;
}
"""
HEADER = """inline int twice(int x) {
  return 2 * x;
}
template <class T>
T half(T x) {
  return x / 2;
}
"""


def ended(words):
    """Exit status, standard output and standard error of the command."""
    said, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
        status = coverage.main(words)
    return status, said.getvalue(), wrong.getvalue()


def measured(words, counts):
    """The command on counts that are told, without a build."""
    with mock.patch.multiple(coverage, configure=mock.DEFAULT, find_gcov=mock.DEFAULT, build=lambda *_: {},
                             run_tests=mock.DEFAULT, count_lines=lambda *_: counts):
        return ended(words)


def of_cudnn(run, never):
    """Counts of one file of the backend cudnn."""
    lines = {number: 1 if number <= run else 0 for number in range(1, run + never + 1)}
    return {os.path.join(coverage.ROOT, "lib/backends/cudnn/add.cpp"): lines}


class CoverageTest(unittest.TestCase):
    def test_lines_of_a_program_are_counted_and_those_never_run_are_named(self):
        gcov = coverage.find_gcov(shutil.which(os.environ.get("CXX", "c++")))
        with tempfile.TemporaryDirectory() as folder:
            folder = os.path.realpath(folder)
            unused = "int none() { return 0; }\n"
            for name, text in (("program.cpp", PROGRAM), ("twice.h", HEADER), ("unused.cpp", unused)):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            compiler = os.environ.get("CXX", "c++")
            for name in ("program", "unused"):
                subprocess.run([compiler, "-O0", "--coverage", "-c", f"{name}.cpp", "-o", f"{name}.o"], cwd=folder,
                               check=True)
            subprocess.run([compiler, "--coverage", "program.o", "-o", "program"], cwd=folder, check=True)
            subprocess.run([os.path.join(folder, "program")], cwd=folder, check=True)
            notes = [os.path.join(folder, f"{name}.gcno") for name in ("program", "unused")]
            counts = coverage.count_lines(gcov, notes)
            rows, whole = coverage.table_of(folder, counts)
        self.assertEqual(rows, [("program.cpp", 9, 6, "66.7", "2-3, 10"), ("twice.h", 2, 2, "100.0", ""),
                                ("unused.cpp", 1, 0, "0.0", "1"), ("total", 12, 8, "66.7", "")])
        self.assertAlmostEqual(whole, 100 * 8 / 12)

    def test_a_folder_below_its_bound_fails_with_both_figures(self):
        status, said, wrong = measured([], of_cudnn(899, 101))
        self.assertEqual(status, 1)
        self.assertIn("total     1000    899     89.9", said)
        self.assertEqual(wrong, "tests/coverage: 899 of 1000 lines of lib/backends/cudnn are run, 89.90 %; "
                                "the bound is 90 %\n")
        self.assertEqual(measured([], of_cudnn(900, 100))[0], 0)
        self.assertEqual(measured(["--at-least=91"], of_cudnn(900, 100))[0], 1)
        self.assertEqual(measured(["--at-least", "80"], of_cudnn(899, 101))[0], 0)

    def test_what_was_not_built_is_said(self):
        status, said, _ = measured([], of_cudnn(1, 0))
        self.assertEqual(status, 0)
        self.assertIn("not in this build: ", said)
        self.assertIn("machine_cuda.cpp", said)
        status, said, wrong = measured(["lib/graph"], of_cudnn(1, 0))
        self.assertEqual((status, said, wrong), (1, "", "tests/coverage: nothing of lib/graph is in this build\n"))

    def test_a_source_is_built_only_where_an_object_of_its_own_path_is(self):
        with tempfile.TemporaryDirectory() as folder:
            entries = []
            for place in ("eigen", "cuda"):
                os.mkdir(os.path.join(folder, place))
                output = os.path.join(place, "backend.cpp.o")
                entries.append({"directory": folder, "file": f"{place}/backend.cpp",
                                "command": f"c++ -o {output} -c {place}/backend.cpp"})
                for name in ("backend.cpp", *(["backend.cpp.gcno"] if place == "eigen" else [])):
                    with open(os.path.join(folder, place, name), "w", encoding="utf-8"):
                        pass
            built = coverage.built_objects(entries)
            self.assertEqual(built, {os.path.join(folder, "eigen/backend.cpp.gcno"):
                                     os.path.realpath(os.path.join(folder, "eigen/backend.cpp"))})
            sources = set(built.values())
            self.assertEqual(coverage.left_out(os.path.join(folder, "eigen"), sources), [])
            self.assertEqual(coverage.left_out(os.path.join(folder, "cuda"), sources), ["backend.cpp"])

    def test_a_build_with_no_program_or_two_of_a_name_is_refused(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(coverage, "ROOT", folder):
            for count in (0, 1, 2):
                if count > 0:
                    path = os.path.join(folder, coverage.BUILD, "tests", str(count), "test_add")
                    os.makedirs(os.path.dirname(path))
                    with open(path, "w", encoding="utf-8"):
                        pass
                if count == 1:
                    self.assertEqual(coverage.program_of("add"), path)
                    continue
                with self.assertRaisesRegex(coverage.Failure, f"^{count} programs test_add below build/coverage/tests, "
                                            "where one is expected; remove build/coverage and run this again$"):
                    coverage.run_tests(["add"])

    def test_a_folder_that_is_not_there_and_a_compiler_without_gcov_are_named(self):
        for name in ("lib/nowhere", os.path.dirname(coverage.ROOT)):
            self.assertEqual(ended([name]), (1, "", f"tests/coverage: no folder {name} in the project\n"))
        with mock.patch.object(coverage.shutil, "which", lambda _: None):
            with self.assertRaisesRegex(coverage.Failure, "no gcov of g\\+\\+ [0-9]+; it is part of GCC"):
                coverage.find_gcov(os.environ.get("CXX", "c++"))


if __name__ == "__main__":
    try:
        coverage.find_gcov(os.environ.get("CXX", "c++"))
    except coverage.Failure as failure:
        print(f"skipped: {failure}")
        sys.exit(77)
    unittest.main()
