#!/usr/bin/env python3
"""Files of results fit the schema, and the command of an entry measures it again. usage: schema_test.py LAMINA_BENCH"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import packages

jsonschema = packages.need("jsonschema")
BENCH = os.path.abspath(sys.argv.pop(1))
SMALL = "--backend=eigen --passes=2 --width_divisor=8"
LISTS = (  # a subcommand, and how many entries of each list in its file are run again
    (f"run {SMALL} --benchmark_filter=^net/mnist_mlp/inference/", {"benchmarks": 1}),
    (f"run {SMALL} --benchmark_filter=^layer/mnist_mlp/dense_1/forward/ --max_error=1e-3", {"benchmarks": 1}),
    (f"ledger mnist_mlp {SMALL} --unfused", {"ledgers": 1}),
    (f"frontier mnist_mlp {SMALL} --max_measured_error=1e-3", {"frontiers": 1}),
    ("conv --input=2x8x9x9 --channels=6 --kernel=3x1 --pad=1x0 --groups=2 --no_bias --backend=eigen --passes=2",
     {"frontiers": 1}),
    ("memory mnist_mlp --backend=eigen --optimiser=adam --memory_limit=1GiB", {"memories": 1}),
    ("train mnist_mlp --share=0.002 --epochs=1 --seed=3", {"trainings": 1}),
    (f"sweep cifar10_cnn {SMALL} --images=4,16 --batch=1,2 --thread_counts=1",
     {"benchmarks": 1, "not_planned": 0, "answers": 0}),
)


def run(command, out):
    program, *words = [word for word in shlex.split(command) if not word.startswith("--benchmark_out=")]
    assert program == "lamina_bench", command
    done = subprocess.run([BENCH, *words, f"--benchmark_out={out}"], capture_output=True, text=True, check=False)
    with open(out, encoding="utf-8") as file:
        return done, json.load(file)


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(HERE, "../../bench/results.schema.json"), encoding="utf-8") as file:
            schema = json.load(file)
        jsonschema.Draft202012Validator.check_schema(schema)
        cls.validator = jsonschema.Draft202012Validator(schema)
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.files = []
        for i, (command, _) in enumerate(LISTS):
            done, file = run(f"lamina_bench {command}", os.path.join(cls.scratch.name, f"{i}.json"))
            assert done.returncode in (0, 1), done.stderr
            cls.files.append(file)

    def test_each_file_fits(self):
        for (command, _), file in zip(LISTS, self.files):
            with self.subTest(command):
                self.assertEqual([f"{one.json_path}: {one.message}" for one in self.validator.iter_errors(file)], [])
        path = os.path.join(self.scratch.name, "0.json")
        done, found = run(f"lamina_bench compare {path} {path}", os.path.join(self.scratch.name, "compared.json"))
        self.assertEqual((done.returncode, list(self.validator.iter_errors(found))), (0, []))
        self.assertTrue(all(one["rerun"] for one in found["comparisons"]))

    def test_each_entry_has_a_command_that_measures_it_again(self):
        for (command, lists), file in zip(LISTS, self.files):
            for name, count in lists.items():
                entries = file[name]
                self.assertTrue(entries and all(entry["rerun"] for entry in entries), (command, name))
                for entry in [one for one in entries if one.get("run_type", "iteration") == "iteration"][:count]:
                    with self.subTest(entry["rerun"]), tempfile.TemporaryDirectory() as folder:
                        done, again = run(entry["rerun"], os.path.join(folder, "again.json"))
                        self.assertEqual(done.returncode, 0, done.stderr)
                        self.assertEqual(again[name][0]["key"], entry["key"])


if __name__ == "__main__":
    unittest.main()
