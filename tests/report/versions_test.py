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
        self.assertIn("PyTorch eager ×1.50 (1.50 – 1.50), Keras ×4.00", its.answers[0])
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

        race = made.document(self.rows(), {"executable": "compare"})
        self.assertEqual(len(training.make(model_of(race, race)).tables[0].rows), 6)

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
        self.assertFalse(versions.make(model_of(one, one)).empty)

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
        self.assertEqual(its.answers, ["new against old: 3 rows, 1 equal, 2 slower; the greatest slowdown: b, 1.400 times."])
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
