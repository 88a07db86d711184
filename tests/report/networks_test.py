"""What is shown of the rows of networks; by numbers that can be reckoned by hand."""

import json
import unittest

import made
from shown import main, model_of, texts, values


class Networks(unittest.TestCase):
    def ours(self, *rows):
        from page.sections import networks

        return [
            one
            for one in networks.make(model_of(made.document([row for its in rows for row in its]))).data["machines"]
            if one["ours"]
        ]

    def test_of_several_batches_the_published_one_is_shown(self):
        found = self.ours(made.network(forward=100), made.network(forward=10, batch=1))
        self.assertEqual([one["batch"] for one in found], [16])
        found = self.ours(made.network(), made.network("vgg16", batch=8))  # which has no other
        self.assertEqual({tuple(one["times"]): one["batch"] for one in found}, {("resnet50",): 16, ("vgg16",): 8})

    def test_another_batch_is_shown_for_sixteen_images(self):
        found = self.ours(made.row(made.key(batch=4), 10, factors=[1] * 6))
        self.assertEqual(found[0]["times"]["resnet50"]["total"]["ms"], 40)
        self.assertIn("batch 4", found[0]["label"])

    def test_smaller_images_are_not_beside_the_published_times(self):
        from page.sections import tables

        rows = made.row(made.key(differs={"image": "64"}), 1)
        self.assertEqual(self.ours(rows), [])
        self.assertNotIn("Test CPU", str(texts(tables.make(model_of(made.document(rows))).tables[0])))

    def test_another_program_of_the_files_is_what_ours_is_compared_with(self):
        from page.sections import networks

        rows = made.network(forward=100)
        alone = networks.make(model_of(made.document(rows))).data
        self.assertEqual(alone["machines"][alone["reference"]]["label"], "Pascal Titan X, cuDNN 5.1.05")
        its = networks.make(model_of(made.document(rows + made.network(forward=150, backend="torch-2.15.0"))))
        self.assertEqual(its.data["machines"][its.data["reference"]]["label"], "Test CPU, PyTorch 2.15.0")
        self.assertEqual([one.name for one in its.charts], ["speedups"])
        self.assertIn("against PyTorch 2.15.0 ×1.50.", its.answers[1].text)

    def test_programs_that_took_turns_are_compared_round_by_round(self):
        from page.sections import networks

        noise = (1, 3, 1, 2, 1, 1.5)  # of the rounds, the same for both sides
        race = {
            "date": "2026-01-01",
            "commit": "abc",
            "rows": [
                {"key": made.key(backend=backend), "ms": [ms * one for one in noise]}
                for backend, ms in (("eigen", 100), ("torch-2.15.0", 150))
            ],
        }
        its = networks.make(model_of({"processor": "P", "races": [race]}))
        ours, torch = its.data["machines"][:2]
        rounds = ours["times"]["resnet50"]["total"]["rounds"]
        ends = {other: [round(end, 9) for end in its.values()] for other, its in rounds.items()}
        self.assertEqual(ends, {torch["id"]: [1.5] * 3})
        self.assertIn("×1.50", its.answers[1].text)

    def test_rows_of_a_race_are_compared_round_by_round(self):
        from page.sections import networks

        noise = (1, 3, 1, 2, 1, 1.5)
        rows = [
            row
            for backend, ms in (("eigen", 100), ("torch-2.15.0", 150))
            for row in made.row(made.key(backend=backend), ms, factors=noise)
        ]
        for executable in ("bench/race/compare", "/x/bench/race/compare", "compare", "lamina_bench"):
            with self.subTest(executable=executable):
                its = networks.make(model_of(made.document(rows, {"executable": executable})))
                rounds = its.data["machines"][0]["times"]["resnet50"]["total"].get("rounds", {})
                ends = {other: [round(end, 9) for end in its.values()] for other, its in rounds.items()}
                self.assertEqual(ends, {} if executable == "lamina_bench" else {1: [1.5] * 3})

    def test_a_race_on_a_gpu_has_turns_across_variants_and_within_a_precision(self):
        from page.sections import networks

        noise = (1, 3, 1, 2, 1, 1.5)
        rows = [
            row
            for type_ in ("f32", "tf32")
            for backend, variant, ms in (("cuda", "plain", 100), ("torch-2.15.0", "compiled", 150))
            for row in made.row(
                made.key(backend=backend) | {"type": type_, "differs": {} if variant == "plain" else {variant: ""}},
                ms if type_ == "f32" else ms / 2,
                factors=noise,
                variant=variant,
            )
        ]
        its = networks.make(model_of(made.document(rows, {"executable": "bench/race/compare"})))
        machines = [one for one in its.data["machines"] if one["measured"]]
        self.assertEqual(len(machines), 4)
        for one in machines:
            same = [its for its in machines if its is not one and ("tf32" in its["label"]) == ("tf32" in one["label"])]
            rounds = one["times"]["resnet50"]["total"]["rounds"]
            self.assertEqual(list(rounds), [its["id"] for its in same])
            for ends in rounds.values():
                self.assertEqual({round(end, 6) for end in ends.values()}, {1.5 if one["ours"] else round(1 / 1.5, 6)})

    def test_what_the_table_says_is_said_in_words(self):
        from page.sections import networks

        rows = made.row(made.key(), 1600, factors=[1] * 6) + made.row(made.key(network="alexnet"), 160, factors=[1] * 6)
        its = networks.make(model_of(made.document(rows)))
        self.assertIn("takes 10.0 ms (alexnet) to 100 ms (resnet50).", its.answers[0].text)
        self.assertIn("the nearest published machine", its.answers[1].text)

    def test_the_memory_of_the_plan_is_beside_its_time(self):
        found = self.ours(made.row(made.key(), 10, plan_MiB=12.5))
        self.assertEqual(found[0]["times"]["resnet50"]["total"]["MiB"], 12.5)

    def test_each_published_pass_has_ours_of_one_run_beside_it(self):
        from page.sections import tables

        # Of two batches the one with the least total counts for all passes, though the other's forward is quicker.
        rows = made.network(forward=100, factors=[1] * 6) + [
            *made.row(made.key("forward", batch=8), 10, factors=[1] * 6),
            *made.row(made.key("total", batch=8), 500, factors=[1] * 6),
        ]
        its = tables.make(model_of(made.document(rows)))
        whole = its.folded[0]
        line = next(row for row in texts(whole) if row[1] == "resnet50")
        self.assertEqual(line[7:10], ["100", "200", "300"])
        theirs = [float(text) for text in line[4:7]]
        for text, one, ours in zip(line[10:13], theirs, (100, 200, 300)):
            self.assertAlmostEqual(float(text.removeprefix("×")), one / ours, delta=0.006 * one / ours)
        self.assertEqual(len(whole.head), len(line))
        passes = [row[1] for row in texts(its.tables[0]) if row[0] == "resnet50"]
        self.assertEqual(passes, ["forward", "backward", "total"])

    def test_sources_that_print_the_same_are_one_machine(self):
        from page import published

        labels = [(one.label, json.dumps(one.milliseconds, sort_keys=True)) for one in published.machines()]
        self.assertEqual(len(labels), len(set(labels)))
        self.assertEqual(
            sum(len(one.milliseconds) for one in published.machines() if one.label == "Pascal Titan X, cuDNN 5.1.05"),
            10,
        )


if __name__ == "__main__":
    main()
