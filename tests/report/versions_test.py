"""What is shown of two versions, and of programs that took turns; by numbers that can be reckoned by hand."""

import unittest

import made
from results_test import KEY
from shown import main, model_of, texts, values


class Turns(unittest.TestCase):
    def rows(self):
        noise = (1, 2, 1, 3, 1, 1.5)  # of the rounds, the same for both sides
        rows = []
        for backend, seconds in (("eigen", 2), ("torch-eager", 3), ("keras", 8)):
            its = made.training("mnist_mlp", [{"seconds": seconds * one, "loss": 0.5} for one in noise], "0.5")
            for row in its:
                row["key"] = row["key"] | {"backend": backend}
                row["name"] = row["run_name"] = f"train/{backend}"
            rows += its
        return rows

    def test_trainings_that_took_turns_are_compared_epoch_by_epoch(self):
        from page.sections import training

        its = training.make(model_of(made.document(self.rows(), {"executable": "/x/bench/race/compare"})))
        rows = texts(its.tables[0])
        self.assertEqual(
            [(row[1], row[3]) for row in rows],
            [
                ("Test CPU, Lamina eigen", ""),
                ("Test CPU, PyTorch eager", "×1.50"),
                ("Test CPU, Keras", "×4.00"),
            ],
        )
        self.assertEqual(its.tables[0].rows[1].cells[3].note, "1.50 – 1.50")
        self.assertIn("PyTorch eager ×1.50 (1.50 – 1.50), Keras ×4.00", its.answers[0].text)
        self.assertTrue(its.tables[0].rows[2].command.startswith("bench/race/compare --trainings=mnist_mlp"))

    def test_trainings_of_two_variants_of_a_race_are_compared(self):
        from page.sections import training

        rows = self.rows()
        for row in rows:
            row["variant"] = "plain" if row["key"]["backend"] == "eigen" else "compiled"
        its = training.make(model_of(made.document(rows, {"executable": "compare"})))
        self.assertEqual([row[3] for row in texts(its.tables[0])], ["", "×1.50", "×4.00"])

    def test_trainings_of_other_files_are_not_compared(self):
        from page.sections import training

        races = [made.document(self.rows(), {"executable": "compare", "date": day}) for day in ("1", "2")]
        self.assertEqual(len(training.make(model_of(*races)).tables[0].rows), 6)

        self.assertEqual(training.make(model_of(made.document(self.rows()))).tables, [])


class Versions(unittest.TestCase):
    def section(self, before, after):
        from page.sections import versions

        def rows(factor):
            return made.network(forward=100 * factor) + made.row(
                made.key(what="layer", layer="l", algorithm="default"), 10 * factor
            )

        return versions.make(
            model_of(made.document(rows(before)), made.document(rows(after)), names=["before.json", "after.json"])
        )

    def test_the_ratio_is_that_of_the_second_to_the_first_and_nothing_is_judged_here(self):
        its = self.section(1, 1.1)
        self.assertEqual({round(one["ratio"], 6) for one in values(its) if "row" in one}, {1.1})
        self.assertEqual({row[2] for row in texts(its.charts[0].table)}, {"not judged"})
        self.assertIn("after (0123456) against before (0123456): 4 rows, 4 not judged", its.notes[0])
        self.assertIn("lamina_bench compare", its.notes[1])

    def test_runs_of_different_threads_are_no_two_versions(self):
        from page.sections import versions

        one, two = (made.document(made.network(), {"threads": count}) for count in "12")
        self.assertTrue(versions.make(model_of(one, two)).empty)
        two["context"]["threads"] = "1"
        self.assertFalse(versions.make(model_of(one, two | {"answers": []})).empty)

    def test_runs_of_two_machines_are_named_with_them(self):
        from page.sections import versions

        here, there = (made.document(made.network(), {"processor": name}) for name in ("A", "B"))
        self.assertIn("file1 (0123456) on B against file0 (0123456) on A: 3 rows", versions.make(model_of(here, there)).notes[0])

    def test_what_fails_or_is_missing_is_counted_and_comes_first_without_a_ratio(self):
        from page.sections import versions

        found = [
            {"name": "a", "key": made.key(), "ratio": 1, "low": 0.9, "high": 1.1, "verdict": "equal"},
            {"name": "b", "key": made.key(), "verdict": "fails", "reason": "OutOfMemory: 1 GiB"},
            {"name": "c", "key": made.key(), "verdict": "missing", "reason": "not in the second"},
            # As bench/race/versions wrote a row without a time.
            {"name": "d", "verdict": "fails", "ratio": 1, "low": 1, "high": 1, "seconds": 0, "first_seconds": 1},
        ]
        its = versions.make(model_of({"context": made.context(), "comparisons": found}))
        self.assertEqual([(row[1], row[2], row[3]) for row in texts(its.charts[0].table)],
                         [("b", "fails", ""), ("c", "missing", ""), ("d", "fails", ""), ("a", "equal", "1.000")])
        self.assertEqual({one["row"] for one in values(its) if "row" in one}, {"a"})
        self.assertEqual(list(map(str, its.answers)), ["the second against the first: 4 rows, 1 equal, 2 fails, 1 missing."])
        none = versions.make(model_of({"context": made.context(), "comparisons": found[1:2]}))
        self.assertEqual((none.charts, texts(none.tables[0])[0][6]), ([], "OutOfMemory: 1 GiB"))

    def test_rows_of_a_file_with_verdicts_are_not_compared_once_more(self):
        from page.sections import versions

        rows = [row | {"variant": name} for name in ("old", "new") for row in made.network()]
        judged = {"name": "a", "ratio": 1, "low": 0.9, "high": 1.1, "verdict": "equal", "variant": "new", "against": "old"}
        its = versions.make(model_of(made.document(rows, comparisons=[judged])))
        self.assertEqual([row[0] for row in texts(its.charts[0].table)], ["new against old"])
        self.assertEqual(len(versions.make(model_of(made.document(rows))).charts[0].table.rows), 3)

    def test_folders_of_one_name_are_called_by_more_of_their_paths(self):
        from page.sections import versions

        one = {"name": "a", "ratio": 1, "low": 0.9, "high": 1.1, "verdict": "equal"}
        its = versions.make(model_of({"context": made.context(), "files": ["x/runs/", "y/runs"], "comparisons": [one]}))
        self.assertEqual(texts(its.charts[0].table)[0][0], "y/runs against x/runs")

    def test_a_call_of_a_ledger_is_measured_again_by_a_ledger_and_a_row_with_its_flags(self):
        from page.sections import versions

        common = {"ratio": 1.2, "low": 1.1, "high": 1.3, "verdict": "slower"}
        call = KEY | {"part": "forward", "layer": "c + relu"}
        row = made.key(batch=32, differs={"threads": "1"})
        found = [common | {"name": name, "key": key} for name, key in (("ledger/x", call), ("net/x", row), ("y", {}))]
        table = versions.make(model_of({"context": made.context(), "comparisons": found})).charts[0].table
        commands = {row.cells[1]: row.command for row in table.rows}
        self.assertTrue(commands["ledger/x"].startswith("lamina_bench ledger net "))
        self.assertIn("--benchmark_filter=^net/resnet50/total/eigen/f32/nchw/batch:32$", commands["net/x"])
        for flag in ("--batch=32", "--backend=eigen", "--threads=1"):
            self.assertIn(flag, commands["net/x"])
        self.assertIn("'--benchmark_filter=^y$'", commands["y"])

    def test_what_was_judged_is_said_in_words(self):
        from page.sections import versions

        found = [
            {"name": name, "key": made.key(), "ratio": ratio, "low": ratio, "high": ratio, "verdict": verdict}
            for name, ratio, verdict in (("a", 1.1, "slower"), ("b", 1.4, "slower"), ("c", 1, "equal"))
        ]
        its = versions.make(model_of({"context": made.context(), "files": ["x/old", "x/new"], "comparisons": found}))
        self.assertEqual(
            list(map(str, its.answers)),
            ["new against old: 3 rows, 1 equal, 2 slower; the greatest slowdown: b, 1.400 times."],
        )
        self.assertEqual(self.section(1, 1.1).answers, [])

    def test_what_a_file_says_of_two_versions_is_shown(self):
        from page.sections import versions

        one = {
            "name": "net/x",
            "key": made.key(),
            "ratio": 1.2,
            "low": 1.1,
            "high": 1.3,
            "verdict": "slower",
            "first_seconds": 1,
            "seconds": 1.2,
            "reason": "kernel",
        }
        rows = texts(
            versions.make(
                model_of({"context": made.context(), "files": ["x/old.json", "x/new.json"], "comparisons": [one]})
            )
            .charts[0]
            .table
        )
        self.assertEqual(rows[0], ["new against old", "net/x", "slower", "1.200", "1000", "1200", "kernel"])


if __name__ == "__main__":
    main()
