"""What is shown of rows at several batches and numbers of threads; by numbers that can be reckoned by hand."""

import unittest

import made
from shown import main, model_of, values


class Batches(unittest.TestCase):
    def section(self):
        rows = [
            row
            for batch, ms in ((1, 10), (2, 16), (4, 24), (8, 47))
            for row in made.row(made.key(batch=batch), ms, factors=[1] * 6)
        ]
        rows += made.failed(
            made.key(batch=16), "OutOfMemory: 9 bytes wanted", bytes_wanted=9 * 2**20, failure="out_of_memory"
        )
        from page.sections import batches

        return batches.make(model_of(made.document(rows)))

    def test_milliseconds_are_those_of_an_image(self):
        self.assertEqual(
            {one["batch"]: one["ms"] for one in values(self.section()) if "samples" in one},
            {1: 10, 2: 8, 4: 6, 8: 5.875},
        )

    def test_what_does_not_fit_is_marked_with_the_bytes(self):
        ends = [one for one in values(self.section()) if "why" in one]
        self.assertEqual([one["batch"] for one in ends], [16])
        self.assertIn("9.00 MiB", ends[0]["why"])

    def test_questions_are_answered_from_the_times(self):
        its = self.section()
        flat, memory = (table.rows[0].cells[1] for table in its.tables)
        self.assertEqual((flat.text, flat.number), ("batch 4", 4))
        self.assertIn("from 4 to 8 the time per image is 0.979 times (0.979 .. 0.979)", flat.note)
        self.assertEqual((memory.text, memory.note), ("batch 8", "Batch 8 ran, and 16 was out of memory."))
        self.assertEqual(
            list(map(str, its.answers)),
            [
                "A larger batch gains less than 5 % per image from batch: 4 (resnet50).",
                "Largest batch within the limit of memory: 8 (resnet50).",
            ],
        )

    def test_of_what_a_file_answers_only_the_largest_batch_is_taken_as_it_is(self):
        from page.sections import batches, threads

        rows = made.row(made.key(batch=1), 10) + made.row(made.key(batch=2), 16)
        rows += [row for count in "12" for row in made.row(made.key(differs={"threads": count}), 9)]
        said = made.key()
        del said["batch"]
        answers = [
            {"network": "resnet50", "backend": "eigen", "what": what, "text": "Of an older rule.", "value": 2, "key": said}
            for what in ("odd_batches", "batch_flat", "best_threads", "largest_batch")
        ]
        model = model_of(made.document(rows, answers=answers))
        its = batches.make(model)
        self.assertEqual(its.notes, [])
        self.assertEqual(
            [[(cell.text, cell.note) for cell in table.rows[0].cells] for table in its.tables],
            [
                [
                    ("resnet50, total", "Test CPU, Lamina eigen"),
                    (
                        "none of those tried",
                        "A larger batch than 2 may gain more: from 1 to 2 the time per image is 0.800 times "
                        "(0.784 .. 0.816).",
                    ),
                ],
                [("resnet50, total", "Test CPU, Lamina eigen"), ("batch 2", "Of an older rule.")],
            ],
        )
        self.assertEqual(
            list(map(str, threads.make(model).answers)),
            [
                "resnet50, total, batch 16, Test CPU, Lamina eigen: 1 thread is the fastest: with 2 a pass takes 1.000 "
                "times (0.980 .. 1.020); as good within noise: 2."
            ],
        )

    def test_a_sweep_of_many_networks_is_answered_in_a_sentence_for_each_question(self):
        from page.sections import batches

        rows = []
        for network, times in (("vgg16", {1: 10, 2: 20, 3: 28}), ("alexnet", {1: 10, 2: 15, 3: 22})):
            for batch, ms in times.items():
                rows += made.row(made.key(network=network, batch=batch), ms, [1] * 6, others_share=0.1 * batch)
            rows += made.failed(made.key(network=network, batch=4), "OutOfMemory: 9 bytes wanted", failure="out_of_memory")
        its = batches.make(model_of(made.document(rows)))
        self.assertEqual(
            list(map(str, its.answers)),
            [
                "A larger batch gains less than 5 % per image from batch: 1, not sure (vgg16); none of those tried, not "
                "sure (alexnet).",
                "Largest batch within the limit of memory: 3 (vgg16, alexnet).",
                "Odd batches: cheaper per image than 2, not sure (vgg16, alexnet).",
            ],
        )

    def test_all_networks_are_shown_as_shares_of_their_best(self):
        from page.sections import batches

        rows = [
            row
            for network, times in (("vgg16", (10, 16, 24)), ("alexnet", (4, 10, 16)))
            for batch, ms in zip((1, 2, 4), times)
            for row in made.row(made.key(network=network, batch=batch), ms, factors=[1] * 6)
        ]
        its = batches.make(model_of(made.document(rows)))
        self.assertEqual([one.name for one in its.charts], ["batches", "gains"])
        self.assertEqual(
            {(one["series"], one["batch"]): round(one["share"], 6) for one in values(its, 1) if "batch" in one},
            {
                ("vgg16", 1): 60,
                ("vgg16", 2): 75,
                ("vgg16", 4): 100,
                ("alexnet", 1): 100,
                ("alexnet", 2): 80,
                ("alexnet", 4): 100,
            },
        )
        self.assertEqual(len(self.section().charts), 1)

    def test_the_machine_with_the_most_networks_is_shown_first(self):
        from page.sections import batches

        def document(processor, *networks):
            points = [made.key(network=network, batch=batch) for network in networks for batch in (1, 2)]
            return made.document([row for key in points for row in made.row(key, 10)], {"processor": processor})

        its = batches.make(model_of(document("A", "vgg16"), document("B", "vgg16", "alexnet")))
        chosen = next(param for param in its.charts[1].spec["params"] if param["name"] == "gains_of")
        self.assertEqual(chosen["value"], "B, Lamina eigen, total")


    def test_what_a_sweep_left_out_is_shown_with_the_reason(self):
        from page.sections import batches

        key = made.key(network="alexnet", differs={"image": "4"})
        del key["batch"]
        entry = {"network": "alexnet", "backend": "eigen", "series": "s", "reason": "too small", "failure": "failed"}
        rows = [row for batch, ms in ((1, 10), (2, 16)) for row in made.row(made.key(batch=batch), ms)]
        for measured in (rows, []):
            with self.subTest(rows=len(measured)):
                its = batches.make(model_of(made.document(measured, not_planned=[entry | {"key": key}])))
                self.assertFalse(its.empty)
                self.assertEqual(its.tables[-1].caption, "Left out of a sweep, as it cannot be planned")
                (row,) = its.tables[-1].rows
                self.assertEqual(
                    [(str(cell), getattr(cell, "note", "")) for cell in row.cells],
                    [("alexnet, total", "Test CPU, Lamina eigen image 4"), ("too small", "")],
                )
                self.assertEqual(
                    row.command,
                    "lamina_bench sweep alexnet --backend=eigen --image=4 --passes=6 --benchmark_out=sweep.json",
                )
        whole = batches.make(model_of(made.document(rows)))
        self.assertNotIn("Left out", str([table.caption for table in whole.tables]))


class Threads(unittest.TestCase):
    def test_the_ideal_line_is_that_of_one_thread(self):
        rows = [
            row
            for threads, ms in ((1, 160), (2, 100), (4, 80))
            for row in made.row(made.key(differs={"threads": str(threads)}), ms, factors=[1] * 6)
        ]
        from page.sections import threads as section

        its = section.make(model_of(made.document(rows)))
        found = values(its)
        self.assertEqual(
            {one["threads"]: round(one["rate"]) for one in found if "of_ideal" not in one}, {1: 100, 2: 200, 4: 400}
        )
        self.assertEqual(
            {one["threads"]: round(one["of_ideal"], 3) for one in found if "of_ideal" in one}, {1: 1, 2: 0.8, 4: 0.5}
        )
        (row,) = its.tables[0].rows
        self.assertEqual((row.cells[0].text, row.cells[1].number), ("resnet50, total, batch 16", 4))
        self.assertIn("4 threads are the fastest: with 1 a pass takes 2.000 times", row.cells[1].note)

    def test_runs_in_files_of_their_own_are_one_line(self):
        from page.sections import threads as section

        one, two = (
            made.document(made.row(made.key(), ms, factors=[1] * 6), {"threads": count})
            for count, ms in (("1", 160), ("2", 100))
        )
        self.assertEqual(
            {(one["series"], one["threads"]) for one in values(section.make(model_of(one, two)))},
            {("Test CPU, Lamina eigen", 1), ("Test CPU, Lamina eigen", 2)},
        )

    def test_a_line_of_threads_is_of_one_commit(self):
        from page.sections import threads as section

        old, new, newer = (
            made.document(
                [row for ms, count in its for row in made.row(made.key(differs={"threads": count}), ms, factors=[1] * 6)],
                {"commit": commit},
            )
            for commit, its in (("a", ((160, "1"), (100, "2"))), ("b", ((80, "1"), (50, "2"))), ("c", ((10, "2"),)))
        )
        its = section.make(model_of(old, new, newer))
        self.assertEqual(
            {(one["series"], one["threads"], round(one["rate"])) for one in values(its) if "of_ideal" in one},
            {(f"Test CPU, Lamina eigen ({commit})", count, rate)
             for commit, count, rate in (("a", 1, 100), ("a", 2, 160), ("b", 1, 200), ("b", 2, 320))},
        )

    def test_rows_of_threads_are_not_in_the_table_of_networks(self):
        from page.sections import networks

        rows = made.row(made.key(differs={"threads": "1"}), 5)
        self.assertEqual(
            [one for one in networks.make(model_of(made.document(rows))).data["machines"] if one["ours"]], []
        )


if __name__ == "__main__":
    main()
