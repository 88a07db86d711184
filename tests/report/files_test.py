"""Reading of result files, and the messages about unusable files."""

import contextlib
import io
import json
import os
import re
import stat

import made
import atomic
from page import command, results


class Files(made.Case):
    def read(self, *documents):
        return results.read([made.write(self.folder, f"{i}.json", one) for i, one in enumerate(documents)])

    def problem(self, document):
        """The message about a file that is not read. Another file beside it is read."""
        model, problems = self.read(document, made.document(made.network()))
        self.assertEqual([os.path.basename(one["file"]) for one in problems], ["0.json"])
        self.assertEqual((list(model.files), len(model.rows)), (["1.json"], 3))
        return problems[0]["what"]

    def test_samples_of_a_row_are_together(self):
        total = made.model_of(made.document(made.network())).rows[2]
        self.assertEqual((total.key["part"], len(total.seconds)), ("total", 6))
        found = [round(seconds, 9) for seconds in (total.quartiles[0], total.median, total.quartiles[1])]
        self.assertEqual(found, [0.29775, 0.30075, 0.302625])

    def test_all_passes_of_a_row_may_be_in_one_entry_with_its_unit(self):
        entry = made.row(made.key(), 250, factors=[1], time_unit="us", real_times=[240, 250, 270])[0]
        for its in (entry, {name: value for name, value in entry.items() if name != "real_time"}):
            one = made.model_of(made.document([its | {"flops_per_second": 4e9}])).rows[0]
            self.assertEqual([round(1e6 * seconds, 6) for seconds in one.seconds], [240, 250, 270])
            self.assertAlmostEqual(one.amount("flops_per_second"), 1e6)

    def test_only_passes_are_samples_and_readings_are_medians(self):
        rows = made.row(made.key(), 10)
        for row, peak in zip(rows, (9, 1, 2, 3, 4, 5)):
            row["peak_flops_per_second"] = peak
        model = made.model_of(made.document(rows + [rows[0] | {"run_type": "aggregate", "real_time": 99}]))
        self.assertEqual(len(model.rows[0].seconds), 6)
        self.assertEqual(model.rows[0].reading("peak_flops_per_second"), 3.5)
        rows = made.failed(made.key(), "OutOfMemory: 5 bytes wanted", bytes_wanted=5)
        one = made.model_of(made.document(rows)).rows[0]
        self.assertEqual((one.seconds, one.out_of_memory, one["bytes_wanted"]), ([], True, 5))

    def test_variants_that_took_turns_are_runs_of_their_own(self):
        rows = made.race({"eigen": [10, 12], "torch+compiled@nhwc": [20, 22]})
        model = made.model_of(made.document(rows, {"variants": made.VARIANTS}))
        who = ["Test CPU, Lamina eigen", "Test CPU, PyTorch 2.15.0 compiled nhwc"]
        self.assertEqual([(one.who, one.run.is_ours) for one in model.rows], list(zip(who, (True, False))))
        rows = made.race({"9.1": [10], "cuda+graph": [20]})
        model = made.model_of(made.document(rows, {"gpu": {"name": "NVIDIA H200", "description": "..."}}))
        found = [model.rows[0].run.program("cudnn"), model.rows[1].run.program("cuda"), model.runs[1].machine("cuda")]
        self.assertEqual(found, ["Lamina cudnn 9.1", "Lamina cuda+graph", "NVIDIA H200"])

    def test_runs_of_two_machines_or_commits_or_with_the_same_row_are_told_apart(self):
        def whose(*files):
            documents = [made.document(made.network(net), facts) for net, facts in files]
            return [one.who.removesuffix(", Lamina eigen") for one in made.model_of(*documents).rows[::3]]

        other, two, eight = {"commit": "fedcba9876543210"}, {"num_cpus": 2}, {"num_cpus": 8}
        self.assertEqual(whose(("a", {}), ("b", {})), ["Test CPU"] * 2)
        self.assertEqual(whose(("a", two), ("a", eight)), ["Test CPU, 2 CPUs", "Test CPU, 8 CPUs"])
        self.assertEqual(whose(("a", {}), ("b", other)), ["Test CPU (0123456)", "Test CPU (fedcba9)"])
        self.assertEqual(whose(("a", {}), ("a", other)), ["Test CPU (file0)", "Test CPU (file1)"])

    def test_files_of_one_name_are_called_by_their_folders_too(self):
        folders = {os.path.join(self.folder, name): made.document(made.network(name)) for name in ("before", "after")}
        paths = [made.write(folder, "1.json", document) for folder, document in folders.items()]
        self.assertEqual(list(results.read(paths)[0].files), ["before-1.json", "after-1.json"])
        self.assertEqual(list(results.read(paths[:1])[0].files), ["1.json"])

    def test_a_file_given_twice_counts_once_and_a_missing_file_is_named(self):
        paths = [made.write(self.folder, name, made.document(made.network())) for name in ("a.json", "copy.json")]
        model, problems = results.read([paths[0], *paths])
        self.assertEqual(len(model.rows), 3)
        self.assertEqual({one["what"] for one in problems}, {"the same as a.json, which is in the page"})
        self.assertEqual([os.path.basename(one["file"]) for one in problems], ["a.json", "copy.json"])
        _, problems = results.read([os.path.join(self.folder, "none.json")])
        self.assertRegex("{file}: {what}".format(**problems[0]), "none.json: .*No such file")

    def test_a_result_file_is_not_overwritten_by_the_page(self):
        path = made.write(self.folder, "a.json", made.document(made.network()))
        with contextlib.redirect_stderr(io.StringIO()) as text, self.assertRaises(SystemExit) as ended:
            command.run([path, "-o", os.path.join(self.folder, ".", "a.json")])
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("one of the result files", text.getvalue())
        with open(path) as file:
            self.assertIn("benchmarks", json.load(file))

    def test_links_are_followed_and_pipes_are_written_to(self):
        with self.assertRaises(IsADirectoryError):
            atomic.write(self.folder, b"page")
        self.assertEqual(os.listdir(self.folder), [])
        link, target, pipe, full = (os.path.join(self.folder, name) for name in ("link", "target", "pipe", "full"))
        os.symlink(made.write(self.folder, "target", ""), link)
        atomic.write(link, b"page")
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        atomic.write(pipe, b"page")
        with open(target, "rb") as file, open(reader, "rb") as piped:
            self.assertEqual((file.read(), piped.read(), os.path.islink(link)), (b"page", b"page", True))
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
        os.symlink("/dev/full", full)
        path = made.write(self.folder, "a.json", made.document(made.network()))
        with contextlib.redirect_stderr(io.StringIO()) as text:
            self.assertEqual(command.run([path, "-o", full]), 1)
        self.assertIn("full cannot be written: No space left on device", text.getvalue())
        self.assertTrue(os.path.islink(full))

    def test_what_is_no_result_file_is_left_out_with_the_reason(self):
        whole = json.dumps(made.document(made.network()))
        nan = json.dumps(made.document(made.row(made.key(), float("nan"))))
        old = made.document(made.network(), {"lamina_format": 1})
        row = made.row(made.key(), 1)[0]
        keyless, nameless = ({name: row[name] for name in row if name != left_out} for left_out in ("key", "name"))
        for content, what in (
            ("", "empty"),
            (made.document([keyless]), "benchmarks[0]: 'key' is a required property"),
            (made.document([nameless]), "benchmarks[0]: 'name' is a required property"),
            (whole[:-40], "line 1 column"),
            (b"\xff\xfe{}", "utf-8"),
            (nan, "NaN"),
            ("[" * 100000, "not usable JSON"),
            ({"hello": 1}, "not a result file"),
            ([1, 2], "not a result file"),
            ({"benchmarks": []}, "not of Lamina's format 2"),
            (old, "not of Lamina's format 2: of another program, or another version"),
        ):
            with self.subTest(what=what):
                self.assertIn(what, self.problem(content))

    def test_a_file_with_a_wrong_field_is_left_out_and_the_path_of_the_field_is_named(self):
        training = {"name": "x", "key": made.key(), "samples": 1, "epochs": 1}
        training["best_possible"] = {"loss": 1, "accuracy": 1}
        lists = {"ledgers": [made.ledger()], "memories": [made.memory()], "comparisons": [made.comparison()]}
        lists |= {"answers": [made.answer("batch_flat", "A text.", 4)], "trainings": [training]}
        lists["frontiers"] = [made.frontier(("c", 1, [made.tried()]))]
        whole = made.document(made.row(made.key(), 1, real_times=[1.0]), **lists)
        self.assertEqual(self.read(whole)[1], [])
        wrong = {
            "benchmarks": ({},),
            "benchmarks[3].rerun": ("",),
            "benchmarks[3].key.network": ("",),
            "benchmarks[3].real_time": ("fast", 0, -1, True, 1e308, 10**400, 1e-320),
            "benchmarks[3].real_times": ([],),
            "benchmarks[3].real_times[0]": (0,),
            "benchmarks[3].time_unit": ("days",),
            "benchmarks[3].key": (3,),
            "benchmarks[3].key.batch": (16.5, 0),
            "benchmarks[3].grade_reasons": ("slow",),
            "benchmarks[3].peak_flops_per_second": (-1,),
            "benchmarks[3].loss": ("small",),
            "ledgers[0].calls[0].seconds": (-1,),
            "ledgers[0].peak_flops_per_second": (5e-324,),
            "frontiers[0].lines[0].algorithms[0].error": (-1,),
            "frontiers[0].lines[0].algorithms[0].low": ("x",),
            "memories[0].total": (-1,),
            "memories[0].largest_batch": ("many",),
            "comparisons[0].verdict": ("nicer",),
            "answers[0].value": ("4",),
            "trainings[0].best_possible.loss": ("low",),
        }
        for path, value in [(path, value) for path, values in wrong.items() for value in values]:
            with self.subTest(path=path, value=value):
                document = place = json.loads(json.dumps(whole))
                *steps, last = (int(one) if one.isdigit() else one for one in re.findall(r"\w+", path))
                for step in steps:
                    place = place[step]
                place[last] = value
                self.assertIn(f"{path}: ", self.problem(document))


if __name__ == "__main__":
    made.main()
