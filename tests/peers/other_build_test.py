"""Another build of lamina_bench as a peer: by the program that was built, beside itself, and by what stands for one
that computes something else or knows no files. usage: other_build_test.py LAMINA_BENCH"""

import array
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RACE = os.path.join(HERE, "../../bench/race")
sys.path.insert(0, RACE)
import other_build
from worker import WorkerError

PROGRAM = sys.argv.pop(1)

# The real program, but what it writes of a network is changed by the lines of CHANGE.
OTHER = """
import glob, json, os, subprocess, sys
words = sys.argv[1:]
if {fails!r} and "files" in words[1]:
    sys.exit(3)
ended = subprocess.run([{program!r}, *words]).returncode
folder = json.loads(words[1]).get("files") if words[:1] == ["serve"] else None
if folder:
    path = os.path.join(folder, "check.safetensors")
    {change}
sys.exit(ended)
"""


def write(folder, **arrays):
    """A check.safetensors of lists of numbers."""
    header, data = {}, b""
    for name, values in arrays.items():
        its = array.array("f", values).tobytes()
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), len(data) + len(its)]}
        data += its
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "check.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


class Difference(unittest.TestCase):
    def between(self, ours, theirs, mode="inference"):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            write(first, **ours)
            write(second, **theirs)
            return other_build.difference(first, second, mode)

    def test_it_is_the_largest_over_the_largest_of_ours(self):
        ours = {"x": [1, 2], "y": [1, -4, 2], "y_training": [8, 0]}
        self.assertEqual(self.between(ours, ours), 0)
        self.assertEqual(self.between(ours, ours | {"y": [1, -5, 2.5]}), 0.25)
        self.assertEqual(self.between(ours, ours | {"y": [9, 9, 9]}, "training"), 0)
        self.assertEqual(self.between(ours, ours | {"y_training": [8, 4]}, "training"), 0.5)

    def test_without_results_of_training_which_dropout_makes_random_those_of_inference_count(self):
        self.assertEqual(self.between({"x": [1], "y": [2]}, {"x": [1], "y": [3]}, "training"), 0.5)

    def test_what_cannot_be_compared_is_an_error_with_the_reason(self):
        ours = {"x": [1, 2], "y": [1, 4]}
        for theirs, reason in (({"x": [1, 3]}, "other images"), ({"y": [1]}, "1 logits, not 2"),
                               ({"y": [1, float("nan")]}, "not finite"), ({"y": [float("inf"), 4]}, "not finite")):
            with self.assertRaisesRegex(WorkerError, reason):
                self.between(ours, ours | theirs)
        with self.assertRaisesRegex(WorkerError, "0 logits, not 1"):
            self.between(ours | {"y_training": [1]}, ours, "training")

    def test_zeros_are_compared_too(self):
        zeros = {"x": [1], "y": [0, 0]}
        self.assertEqual((self.between(zeros, zeros), self.between(zeros, zeros | {"y": [0, 2]})), (0, 2))

    def test_no_file_and_a_damaged_one_are_errors(self):
        with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
            write(ours, x=[1], y=[1])
            for content in (None, b"", b"12345678", struct.pack("<Q", 10) + b'{"x": [1]}'):
                if content is not None:
                    with open(os.path.join(theirs, "check.safetensors"), "wb") as file:
                        file.write(content)
                with self.assertRaisesRegex(WorkerError, "not written its numbers"):
                    other_build.difference(ours, theirs, "inference")


class Race(unittest.TestCase):
    def run_race(self, build, *words):
        """The program's end, and its file."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.json")
            done = subprocess.run(
                [sys.executable, "-B", os.path.join(RACE, "race"), "mnist_cnn", "--program", PROGRAM, "--peers",
                 f"eigen={build}", "--batch", "2", "--rounds", "2", "--retries", "0", "--memory", "no",
                 "--benchmark_out", out, *words], capture_output=True, text=True, check=False,
                 cwd=os.path.dirname(PROGRAM))
            with open(out) as file:
                return done, json.load(file)

    def test_the_program_beside_itself_computes_the_same_and_is_judged(self):
        name = os.path.basename(PROGRAM)  # of this folder, without it
        done, result = self.run_race(name, "--modes", "training,inference")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual({(row["key"]["part"], row["check"]["difference"]) for row in result["benchmarks"]
                          if row["variant"] == f"eigen={name}"},
                         {(part, 0.0) for part in ("forward", "backward", "total", "inference")})
        self.assertEqual({(one["first"], one["second"], one["key"]["part"]) for one in result["comparisons"]},
                         {(f"eigen={name}", "eigen", part) for part in ("forward", "backward", "total", "inference")})

    def other(self, change, fails=False):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lamina_bench")
            with open(path, "w", opener=lambda name, how: os.open(name, how, 0o755)) as file:
                file.write(f"#!{sys.executable}\n" + OTHER.format(program=PROGRAM, change=change, fails=fails))
            return self.run_race(path, "--modes", "inference")

    def test_one_that_computes_something_else_or_writes_no_numbers_is_left_out(self):
        damage = "data = bytearray(open(path, 'rb').read()); data[-1] ^= 64; open(path, 'wb').write(data)"
        for change, fails, stage, reason in (
                (damage, False, "check inference", "more than 1.0e-04: its time would be of another function"),
                ("os.remove(path)", False, "check inference", "not written its numbers as today's lamina_bench does"),
                ("pass", True, "start", "ended with status 3")):
            done, result = self.other(change, fails)
            self.assertEqual((done.returncode, [one["stage"] for one in result["failures"]]), (1, [stage]))
            self.assertIn(reason, result["failures"][0]["reason"])
            self.assertEqual({row["variant"] for row in result["benchmarks"]}, {"eigen"})


if __name__ == "__main__":
    unittest.main()
