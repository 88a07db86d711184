"""What is read from result files, and what is said of those that cannot be used."""

import contextlib
import io
import json
import os
import tempfile
import unittest

import made
from page import command, result_files, training_command, written


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def read(self, *documents):
        paths = [made.write(self.folder, f"{i}.json", one) for i, one in enumerate(documents)]
        return result_files.read(paths)

    def problem(self, document):
        """What is said of a file, which is not read, while another beside it is."""
        model, problems = self.read(document, made.document(made.network()))
        self.assertEqual([os.path.basename(one.file) for one in problems], ["0.json"])
        self.assertEqual([source.name for source in model.sources], ["1.json"])
        self.assertEqual(len(model.timings), 3)
        return problems[0].what

    def test_samples_of_a_row_are_together(self):
        model, problems = self.read(made.document(made.network()))
        self.assertEqual(problems, [])
        total = next(one for one in model.timings if one.key["part"] == "total")
        self.assertEqual(len(total.seconds), 6)
        self.assertAlmostEqual(total.interval.middle, 0.30075)
        self.assertAlmostEqual(total.interval.low, 0.294)
        self.assertAlmostEqual(total.interval.high, 0.306)

    def test_all_passes_of_a_row_may_be_in_one_entry(self):
        entry = made.row(made.key(), 250, factors=[1], time_unit="us", real_times=[240, 250, 270])[0]
        model, problems = self.read(made.document([entry]))
        self.assertEqual(problems, [])
        self.assertEqual([round(1e6 * one, 6) for one in model.timings[0].seconds], [240, 250, 270])
        for wrong in ([], [1, 0], [1, "x"], 3):
            with self.subTest(wrong=wrong):
                said = self.problem(made.document([entry | {"real_times": wrong}]))
                self.assertIn("benchmarks[0].real_times", said)

    def test_a_whole_number_may_be_written_with_a_point_but_has_no_fraction(self):
        model, problems = self.read(made.document(made.row(made.key(batch=16.0), 10)))
        self.assertEqual(problems, [])
        self.assertEqual(repr(model.timings[0].key["batch"]), "16")  # as it is shown
        for wrong in (16.5, True, "16"):
            with self.subTest(wrong=wrong):
                said = self.problem(made.document(made.row(made.key(batch=wrong), 10)))
                self.assertIn("benchmarks[0].key.batch", said)
                self.assertIn("a whole number is needed", said)

    def test_units_of_time_are_those_of_the_row(self):
        model, _ = self.read(made.document(made.row(made.key(), 250, factors=[1], time_unit="us")))
        self.assertAlmostEqual(model.timings[0].seconds[0], 250e-6)

    def test_aggregates_are_not_samples(self):
        rows = made.row(made.key(), 10)
        model, _ = self.read(made.document(rows + [rows[0] | {"run_type": "aggregate", "real_time": 99}]))
        self.assertEqual(len(model.timings[0].seconds), 6)

    def test_a_row_that_is_out_of_memory_has_no_time(self):
        model, _ = self.read(
            made.document(made.failed(made.key(batch=512), "OutOfMemory: 5 bytes wanted, 3 free", bytes_wanted=5))
        )
        self.assertEqual(model.timings[0].seconds, [])
        self.assertTrue(model.timings[0].out_of_memory)
        self.assertEqual(model.timings[0].bytes_wanted, 5)

    def test_of_a_network_in_several_races_the_latest_counts(self):
        def race(date, milliseconds):
            return {
                "date": date,
                "commit": "abc",
                "rows": [{"key": made.key(part), "ms": [milliseconds] * 6} for part in ("forward", "backward")],
            }

        model, _ = self.read({"processor": "P", "races": [race("2026-02-02", 7), race("2026-01-01", 5)]})
        self.assertEqual(
            {one.key["part"]: one.interval.middle for one in model.timings},
            {"forward": 0.007, "backward": 0.007, "total": 0.014},
        )

    def test_two_runs_of_one_machine_are_told_apart(self):
        model, _ = self.read(made.document(made.network()), made.document(made.network(forward=90)))
        self.assertEqual(len({one.who for one in model.timings}), 2)

    def test_files_of_one_name_are_called_by_their_folders_too(self):
        paths = []
        for folder, ms in (("before", 1), ("after", 2)):
            path = os.path.join(self.folder, folder)
            os.mkdir(path)
            paths.append(made.write(path, "1.json", made.document(made.network(forward=ms))))
        names = [source.name for source in result_files.read(paths)[0].sources]
        self.assertEqual(names, ["before-1.json", "after-1.json"])
        self.assertEqual(result_files.read(paths[:1])[0].sources[0].name, "1.json")

    def test_the_table_beside_the_rows_is_passed_over(self):
        rows = made.write(self.folder, "2026.json", made.document(made.network()))
        table = made.write(self.folder, "2026.table.json", [{"network": "resnet50", "total_ms": 3}])
        model, problems = result_files.read([rows, table])
        self.assertEqual(problems, [])
        self.assertEqual([source.name for source in model.sources], ["2026.json"])

    def test_a_file_that_is_there_twice_counts_once(self):
        one = made.document(made.network())
        with tempfile.TemporaryDirectory() as folder:
            paths = [made.write(folder, name, one) for name in ("a.json", "copy.json")]
            model, problems = result_files.read([paths[0], *paths])
        self.assertEqual(len(model.sources), 1)
        self.assertEqual([os.path.basename(one.file) for one in problems], ["a.json", "copy.json"])
        self.assertEqual({one.what for one in problems}, {"the same as a.json, which is in the page"})

    def test_a_result_file_is_not_overwritten_by_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            path = made.write(folder, "a.json", made.document(made.network()))
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as ended:
                command.run([path, "-o", os.path.join(folder, ".", "a.json")])
            self.assertEqual(ended.exception.code, 2)
            self.assertIn("one of the result files", said.getvalue())
            with open(path) as file:
                self.assertIn("benchmarks", json.load(file))

    def test_a_round_of_two_versions_is_one_sample(self):
        rows = [
            row | {"variant": name, "round": place}
            for place, ms in ((0, 10), (1, 20))
            for name in ("old", "new")
            for row in made.row(made.key(), ms, factors=(1, 1.5, 5))
        ]
        with tempfile.TemporaryDirectory() as folder:
            model, _ = result_files.read([made.write(folder, "a.json", made.document(rows))])
        self.assertEqual([[round(1e3 * one, 6) for one in its.seconds] for its in model.timings], [[15, 30]] * 2)

    def test_a_reading_of_a_row_is_the_median_of_its_passes(self):
        rows = made.row(made.key(), 10)
        for row, peak in zip(rows, (9, 1, 2, 3, 4, 5)):
            row["peak_flops_per_second"] = peak
        with tempfile.TemporaryDirectory() as folder:
            model, _ = result_files.read([made.write(folder, "a.json", made.document(rows))])
        self.assertEqual(model.timings[0].counters["peak_flops_per_second"], 3.5)

    def test_a_file_that_is_not_there_is_named(self):
        _, problems = result_files.read([os.path.join(self.folder, "none.json")])
        self.assertIn("none.json", problems[0].file)

    def test_an_empty_file_is_left_out(self):
        self.assertIn("empty", self.problem(""))

    def test_a_file_that_was_cut_is_left_out_with_the_place(self):
        whole = json.dumps(made.document(made.network()))
        self.assertRegex(self.problem(whole[:-40]), "line 1, column")

    def test_bytes_that_are_no_text_are_left_out(self):
        self.assertIn("UTF-8", self.problem(b"\xff\xfe{}"))

    def test_no_number_of_json_is_left_out(self):
        self.assertIn("NaN", self.problem(json.dumps(made.document(made.row(made.key(), float("nan"))))))

    def test_a_nest_without_end_is_left_out(self):
        self.problem("[" * 100000)

    def test_a_foreign_file_is_left_out(self):
        self.assertIn("not a result file", self.problem({"hello": 1}))
        self.assertIn("a list", self.problem([1, 2]))

    def test_another_version_is_left_out(self):
        self.assertIn("format 2", self.problem(made.document(made.network(), {"lamina_format": 2})))

    def test_rows_of_before_keys_are_left_out(self):
        row = made.row(made.key(), 1)[0]
        del row["key"]
        self.assertIn("benchmarks[0]", self.problem(made.document([row])))

    def test_a_wrong_field_is_left_out_with_its_path(self):
        for name, value in (
            ("real_time", "fast"),
            ("real_time", 0),
            ("real_time", True),
            ("real_time", 1e308),
            ("real_time", 10**400),
            ("real_time", 1e-320),
            ("time_unit", "days"),
            ("key", 3),
            ("joules", -1),
            ("grade_reasons", "slow"),
        ):
            rows = made.row(made.key(), 1)
            rows[3][name] = value
            with self.subTest(name=name, value=value):
                self.assertIn(f"benchmarks[3].{name}", self.problem(made.document(rows)))
        wrong = made.row(made.key() | {"batch": 0}, 1)
        self.assertIn("batch", self.problem(made.document(wrong)))

    def test_a_race_without_times_is_left_out(self):
        race = {"date": "2026-01-01", "rows": [{"key": made.key(), "ms": []}]}
        self.assertIn("races[0].rows[0].ms", self.problem({"processor": "P", "races": [race]}))


    def test_a_call_that_took_no_time_is_left_out(self):
        call = {"layers": "c", "op": "conv", "pass": "forward", "algorithm": "a", "seconds": 0}
        its = {"key": made.key(), "calls": [call]}
        self.assertIn("ledgers[0].calls[0].seconds", self.problem(made.document(ledgers=[its])))

    def test_an_amount_below_0_or_too_small_for_a_ratio_is_left_out(self):
        key = made.key()
        of_ledger = {"key": key, "calls": [], "peak_flops_per_second": 5e-324}
        tried = {"node": "c", "pass": "forward", "algorithms": [made.tried(error=-1)]}
        of_memory = {"key": key, "total": -1, "steps": []}
        for name, its, said in (
            ("ledgers", of_ledger, "ledgers[0].peak_flops_per_second"),
            ("frontiers", {"key": key, "lines": [tried]}, "frontiers[0].lines[0].algorithms[0].error"),
            ("memories", of_memory, "memories[0].total"),
        ):
            with self.subTest(name=name):
                self.assertIn(f"{said} is the number", self.problem(made.document(**{name: [its]})))
        rows = made.row(made.key(), 1, peak_flops_per_second=-1)
        self.assertIn("benchmarks[0].peak_flops_per_second", self.problem(made.document(rows)))

    def test_half_of_a_surrogate_pair_is_left_out(self):
        self.assertIn("ud800", self.problem(made.document(made.network(), {"processor": "\ud800"})))
        _, problems = self.read(made.document(made.network(), {"processor": "\U0001f600"}))
        self.assertEqual(problems, [])

    def test_what_is_said_of_a_row_that_is_no_training_is_passed_over(self):
        rows = made.network() + made.training("mnist_mlp", [{"seconds": 1}])
        names = (rows[0]["name"], rows[-1]["name"])
        said = [{"name": name, "optimiser": "adam", "published": None} for name in names]
        model, problems = self.read(made.document(rows, trainings=said))
        self.assertEqual(problems, [])
        self.assertEqual([(one["optimiser"], one["is_network"]) for one in model.trainings], [("adam", True)])

    def test_a_training_with_an_optimiser_a_rate_threads_or_joules_has_their_flags(self):
        rows = made.training("net", [{"seconds": 1, "joules": 30}])
        rows[0]["key"]["differs"] = {"synthetic": "0.1", "optimiser": "sgd", "learning_rate": "0.05"}
        rows[0]["name"] = rows[0]["run_name"] = made.rows.name_of(rows[0]["key"])
        said = [{"name": rows[0]["name"], "published": None, "onnx": "nets/net.onnx"}]
        model, problems = self.read(made.document(rows, {"threads": "3", "energy_eigen": "RAPL"}, trainings=said))
        self.assertEqual(problems, [])
        words = training_command.of(model.trainings[0]).split()
        flags = ["--onnx=nets/net.onnx", "--optimiser=sgd", "--learning_rate=0.05", "--share=0.1", "--threads=3"]
        for flag in (*flags, "--energy", "--batch=128"):
            self.assertEqual(words.count(flag), 1, flag)
        self.assertNotIn("net", words)
        plain = training_command.of(self.read(made.document(made.training("net", [{"seconds": 1}])))[0].trainings[0])
        for flag in ("--onnx", "--optimiser", "--learning_rate", "--threads", "--energy"):
            self.assertNotIn(flag, plain)

    def test_a_file_that_cannot_be_written_leaves_nothing(self):
        with self.assertRaises(UnicodeEncodeError):
            written.write(os.path.join(self.folder, "page.html"), "\ud800")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
