"""Result files that are made small, to be kept: of the same measurements."""

import contextlib
import io
import json
import os
import tempfile
import unittest

import made
from page import command, result_files


class Small(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def small(self, document):
        """Both models: of the file, and of the small one."""
        path = made.write(self.folder, "a.json", document)
        kept = os.path.join(self.folder, "kept")
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(command.run([path, "--small", kept]), 0)
        self.assertIn("a.json", said.getvalue())
        self.path = os.path.join(kept, "a.json")
        models = []
        for one in (path, self.path):
            model, problems = result_files.read([one])
            self.assertEqual(problems, [])
            models.append(model)
        return models

    def test_times_and_facts_stay_and_the_rest_goes(self):
        rows = made.network(forward=1.23456789)
        for row in rows:
            row |= {"grade": "B", "grade_reasons": ["load"], "plan_MiB": 3, "cpu_time": 2.5, "others_share": 0.1}
        rows += [rows[0] | {"run_type": "aggregate", "aggregate_name": "mean"}]
        rows += made.failed(made.key(batch=64), "OutOfMemory: 9 bytes", failure="out_of_memory", bytes_wanted=9)
        rows += made.training("mnist_mlp", [{"seconds": 2, "loss": 0.5}, {"seconds": 3, "loss": 0.4}])
        for row in rows:
            row["sm_mhz"] = 1000  # of no use for the page
        answers = [
            {"network": "resnet50", "backend": "eigen", "what": what, "text": "y", "key": made.key()}
            for what in ("batch_flat", "largest_batch")
        ]
        whole, small = self.small(made.document(rows, answers=answers))
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        entries = json.loads(text)["benchmarks"]
        self.assertEqual(len(entries), 3 + 1 + 2)
        self.assertEqual(len(entries[0]["real_times"]), 6)
        self.assertEqual(entries[0]["cpu_times"], [2.5] * 6)
        self.assertEqual(entries[0]["others_share"], 0.1)
        self.assertNotIn("sm_mhz", entries[0])
        self.assertIn(entries[0]["real_time"], [row["real_time"] for row in rows[:6]])
        for one, other in zip(whole.timings, small.timings, strict=True):
            self.assertEqual(one.name, other.name)
            for a, b in zip(one.seconds, other.seconds, strict=True):
                self.assertAlmostEqual(a, b, delta=1e-9)
            for fact in ("key", "grade", "reasons", "failure", "out_of_memory", "bytes_wanted", "counters"):
                self.assertEqual(getattr(one, fact), getattr(other, fact), fact)
        self.assertEqual([one["epochs"] for one in whole.trainings], [one["epochs"] for one in small.trainings])
        self.assertEqual([one["what"] for one in small.answers], ["largest_batch"])  # which times do not say
        self.assertEqual(max(text.splitlines(), key=len).count('"key"'), 1)  # a line for each entry

    def test_a_small_file_stays_as_it_is(self):
        self.small(made.document(made.network()))
        with open(self.path, "rb") as file:
            first = file.read()
        again = os.path.join(self.folder, "again")
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(command.run([self.path, "--small", again]), 0)
        with open(os.path.join(again, "a.json"), "rb") as file:
            self.assertEqual(file.read(), first)

    def test_what_only_a_small_file_reads_is_named_where_it_is_damaged_and_other_files_are_written(self):
        good = made.write(self.folder, "good.json", made.document(made.network()))
        for number, odd in enumerate(
            ({"name": None}, {"round": [1]}, {"round": "x"}, {"repetition_index": "first"}, {"cpu_time": "2"})
        ):
            with self.subTest(odd=odd):
                rows = made.network()
                rows[1].update(odd)
                if rows[1]["name"] is None:
                    del rows[1]["name"]  # its run_name stays
                bad = made.write(self.folder, f"bad{number}.json", made.document(rows))
                kept = os.path.join(self.folder, f"kept{number}")
                said = io.StringIO()
                with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(command.run([bad, good, "--small", kept]), 1)
                self.assertIn(f"bad{number}.json is left out: benchmarks[1]", said.getvalue())
                self.assertIn(next(iter(odd)), said.getvalue())
                self.assertEqual(os.listdir(kept), ["good.json"])

    def test_a_very_short_time_does_not_become_none(self):
        rows = made.row(made.key(), 1e-8, factors=[1, 2, 3], cpu_time=1e-8)
        whole, small = self.small(made.document(rows))
        self.assertEqual([round(1e12 * one) for one in small.timings[0].seconds], [10, 20, 30])
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["benchmarks"][0]["cpu_times"], [1e-8] * 3)
        self.assertEqual(len(whole.timings[0].seconds), 3)

    def test_a_file_that_is_there_and_one_that_is_damaged_are_named(self):
        self.small(made.document(made.network()))
        bad = made.write(self.folder, "bad.json", "{")
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            words = [os.path.join(self.folder, "a.json"), bad, "--small", os.path.dirname(self.path)]
            self.assertEqual(command.run(words), 1)
        self.assertIn("a.json", said.getvalue())
        self.assertIn("exists", said.getvalue())
        self.assertIn("bad.json", said.getvalue())


if __name__ == "__main__":
    unittest.main()
