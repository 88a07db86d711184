"""What the sections say of made-up results: by numbers that can be reckoned by hand. Skipped where the page's packages are
not here."""

import json
import os
import sys
import tempfile
import unittest

import made
from page import packages, prices, result_files


def model_of(*documents, names=None):
    with tempfile.TemporaryDirectory() as folder:
        paths = [made.write(folder, (names or [f"file{i}.json" for i in range(len(documents))])[i], one) for i, one in enumerate(documents)]
        model, problems = result_files.read(paths)
    assert not problems, problems
    model.prices = prices.read([])
    return model


def values(section, of=0):
    """All data of a chart."""
    spec = section.charts[of].spec
    found = list(spec.get("datasets", {}).values())
    stack = [spec]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            if "values" in one and isinstance(one["values"], list) and one["values"] and isinstance(one["values"][0], dict):
                found.append(one["values"])
            stack += one.values()
        elif isinstance(one, list):
            stack += one
    return [value for its in found for value in its]


def texts(table):
    return [[str(cell) for cell in row.cells] for row in table.rows]


class Batches(unittest.TestCase):
    def section(self):
        rows = [row for batch, ms in ((1, 10), (2, 16), (4, 24), (8, 47)) for row in made.row(made.key(batch=batch), ms, factors=[1] * 6)]
        rows += made.failed(made.key(batch=16), "OutOfMemory: 9 bytes wanted", bytes_wanted=9 * 2**20, failure="out_of_memory")
        from page.sections import batches
        return batches.make(model_of(made.document(rows)))

    def test_milliseconds_are_those_of_an_image(self):
        self.assertEqual({one["batch"]: one["ms"] for one in values(self.section()) if "samples" in one}, {1: 10, 2: 8, 4: 6, 8: 5.875})

    def test_what_does_not_fit_is_marked_with_the_bytes(self):
        ends = [one for one in values(self.section()) if "why" in one]
        self.assertEqual([one["batch"] for one in ends], [16])
        self.assertIn("9.00 MiB", ends[0]["why"])

    def test_the_batch_from_which_nothing_is_gained_is_named(self):
        self.assertIn("batch 4 is within 5 %", self.section().notes[0])
        self.assertIn("batch 16 does not fit", self.section().notes[0])


    def test_odd_batches_that_gain_are_named(self):
        from page.sections import batches
        def note(of_three):
            rows = [row for batch, ms in ((1, 10), (2, 16), (3, of_three), (4, 28)) for row in made.row(made.key(batch=batch), ms)]
            return batches.make(model_of(made.document(rows))).notes[0]
        self.assertIn("beside them: 3.", note(15))
        self.assertIn("no odd batch", note(24))


class Threads(unittest.TestCase):
    def test_the_ideal_line_is_that_of_one_thread(self):
        rows = [row for threads, ms in ((1, 160), (2, 100), (4, 80)) for row in made.row(made.key(differs={"threads": str(threads)}), ms, factors=[1] * 6)]
        from page.sections import threads as section
        its = section.make(model_of(made.document(rows)))
        found = values(its)
        self.assertEqual({one["threads"]: round(one["rate"]) for one in found if "of_ideal" not in one}, {1: 100, 2: 200, 4: 400})
        self.assertEqual({one["threads"]: round(one["of_ideal"], 3) for one in found if "of_ideal" in one}, {1: 1, 2: .8, 4: .5})
        self.assertIn("4 threads", its.notes[0])

    def test_runs_in_files_of_their_own_are_one_line(self):
        from page.sections import threads as section
        one, two = (made.document(made.row(made.key(), ms, factors=[1] * 6), {"threads": count}) for count, ms in (("1", 160), ("2", 100)))
        self.assertEqual({(one["series"], one["threads"]) for one in values(section.make(model_of(one, two)))}, {("Test CPU, Lamina eigen", 1), ("Test CPU, Lamina eigen", 2)})

    def test_rows_of_threads_are_not_in_the_table_of_networks(self):
        from page.sections import networks
        rows = made.row(made.key(differs={"threads": "1"}), 5)
        self.assertEqual([one for one in networks.make(model_of(made.document(rows))).data["machines"] if one["ours"]], [])


KEY = {"what": "ledger", "network": "net", "backend": "eigen", "type": "f32", "layout": "nchw", "batch": 4}


def ledger(**more):
    calls = [{"call": 0, "layers": "c", "node": "c", "op": "conv", "pass": "forward", "algorithm": "gemm", "seconds": .003, "flops": 6e9, "bytes": 3e6, "samples": []},
             {"call": 1, "layers": "r", "node": "r", "op": "relu", "pass": "forward", "algorithm": "", "seconds": .001, "flops": 1e6, "bytes": 4e6, "samples": []},
             {"call": 2, "layers": "c", "node": "c", "op": "conv", "pass": "backward_data", "algorithm": "gemm", "seconds": .004, "flops": 6e9, "bytes": 3e6, "samples": []}]
    return {"key": KEY, "passes": 3, "forward_seconds": .004, "backward_seconds": .004, "peak_flops_per_second": 4e12, "memory_bytes_per_second": 8e9, "calls": calls} | more


class Ledgers(unittest.TestCase):
    def test_time_is_summed_by_kind_and_pass(self):
        from page.sections import kinds
        its = kinds.make(model_of({"context": made.context(), "ledgers": [ledger()]}))
        self.assertEqual({(one["kind"], one["part"]): round(one["ms"], 6) for one in values(its)}, {("conv", "forward"): 3, ("relu", "forward"): 1, ("conv", "backward"): 4})
        self.assertIn("100.0 % of the whole", its.notes[0])

    def test_the_ledger_has_rates_and_shares(self):
        from page.sections import kinds
        rows = texts(kinds.make(model_of({"context": made.context(), "ledgers": [ledger()]})).tables[0])
        self.assertEqual(rows[0], ["c", "backward_data", "gemm", "4.00", "50.0", "1500", "38", "0.750", "9"])
        self.assertEqual(rows[2][0], "r")

    def test_the_roof_has_its_corner_where_both_rates_meet(self):
        from page.sections import roofline
        found = values(roofline.make(model_of({"context": made.context(), "ledgers": [ledger()]})))
        roof = sorted((one["intensity"], one["gflops"]) for one in found if "roof" in one)
        self.assertEqual(roof[1], (500, 4000))
        self.assertAlmostEqual(roof[0][1], 8 * roof[0][0])
        point = next(one for one in found if one.get("name") == "c" and one["part"] == "forward")
        self.assertAlmostEqual(point["intensity"], 2000)
        self.assertAlmostEqual(point["gflops"], 2000)


class Others(unittest.TestCase):
    def test_a_frontier_has_every_algorithm_and_the_reason_of_those_without_a_time(self):
        tried = [{"algorithm": "a", "seconds": .002, "low": .0019, "high": .0021, "workspace_bytes": 2**20, "error": 1e-7, "deterministic": False, "on_frontier": True,
                  "picked": True, "by_rule": False}, {"algorithm": "b", "failure": "takes 3x3 kernels"}]
        from page.sections import frontier
        its = frontier.make(model_of({"context": made.context(), "frontiers": [{"key": KEY, "complete": True, "lines": [{"node": "c", "pass": "forward", "layers": 2, "algorithms": tried}]}]}))
        self.assertEqual([(one["algorithm"], one["ms"], one["MiB"], one["deterministic"]) for one in values(its)], [("a", 2, 1, "not deterministic")])
        rows = texts(its.charts[0].table)
        self.assertIn("not deterministic", rows[0][-1])
        self.assertIn("takes 3x3 kernels", rows[1])

    def test_memory_is_stacked_by_kind(self):
        steps = [{"step": 0, "layers": "c", "pass": "forward", "live_bytes": 3 * 2**20, "by_kind": {"values": 2**21, "workspace": 2**20, "saved": 0}}]
        from page.sections import memory
        its = memory.make(model_of({"context": made.context(), "memories": [{"key": KEY, "total": 2**22, "steps": steps}]}))
        self.assertEqual({one["kind"]: one["MiB"] for one in values(its)}, {"values": 2, "workspace": 1})
        self.assertIn("4.00", texts(its.tables[0])[0])

    def test_a_training_stands_beside_the_published_runs(self):
        rows = made.training("mnist_mlp", [{"seconds": 2, "loss": .5, "accuracy": .8, "validation_accuracy": .9}, {"seconds": 3, "loss": .3, "accuracy": .9}], "0.5")
        said = {"name": rows[0]["name"], "optimiser": "adam", "best_possible": {"loss": .1, "accuracy": .97}}
        from page.sections import training
        its = training.make(model_of(made.document(rows, trainings=[said])))
        ours = [one for one in values(its) if "run" in one]
        self.assertEqual({(one["epoch"], one["seconds"], one["value"]) for one in ours if one["what"] == "loss"}, {(1, 2, .5), (2, 5, .3)})
        self.assertIn("Tesla K80 (2017-11 post)", {one["series"] for one in values(its)})
        for said in ("glyphs", "adam", "accuracy 0.9700"):
            self.assertIn(said, its.notes[0])
        self.assertIn("--share=0.5", ours[0]["run"])


class Versions(unittest.TestCase):
    def section(self, before, after):
        from page.sections import versions
        def rows(factor):
            return made.network(forward=100 * factor) + made.row(made.key(what="layer", layer="l", algorithm="default"), 10 * factor)
        return versions.make(model_of(made.document(rows(before)), made.document(rows(after)), names=["before.json", "after.json"]))

    def test_the_ratio_is_that_of_the_second_to_the_first_and_nothing_is_judged_here(self):
        its = self.section(1, 1.1)
        self.assertEqual({round(one["ratio"], 6) for one in values(its) if "row" in one}, {1.1})
        self.assertEqual({row[2] for row in texts(its.charts[0].table)}, {"not judged"})
        self.assertIn("after (0123456) against before (0123456): 4 rows, 4 not judged", its.notes[0])
        self.assertIn("lamina_bench compare", its.notes[1])

    def test_what_a_file_says_of_two_versions_is_shown(self):
        from page.sections import versions
        one = {"name": "net/x", "key": made.key(), "ratio": 1.2, "low": 1.1, "high": 1.3, "verdict": "slower", "first_seconds": 1, "seconds": 1.2, "reason": "kernel"}
        rows = texts(versions.make(model_of({"context": made.context(), "files": ["x/old.json", "x/new.json"], "comparisons": [one]})).charts[0].table)
        self.assertEqual(rows[0], ["new against old", "net/x", "slower", "1.200", "1000", "1200", "kernel"])


class Networks(unittest.TestCase):
    def ours(self, *rows):
        from page.sections import networks
        return [one for one in networks.make(model_of(made.document([row for its in rows for row in its]))).data["machines"] if one["ours"]]

    def test_of_several_batches_the_published_one_is_shown(self):
        found = self.ours(made.network(forward=100), made.network(forward=10, batch=1))
        self.assertEqual([one["batch"] for one in found], [16])

    def test_another_batch_is_shown_for_sixteen_images(self):
        found = self.ours(made.row(made.key(batch=4), 10, factors=[1] * 6))
        self.assertEqual(found[0]["times"]["resnet50"]["total"]["ms"], 40)
        self.assertIn("batch 4", found[0]["label"])

    def test_sources_that_print_the_same_are_one_machine(self):
        from page import published
        labels = [(one.label, json.dumps(one.milliseconds, sort_keys=True)) for one in published.machines()]
        self.assertEqual(len(labels), len(set(labels)))
        self.assertEqual(sum(len(one.milliseconds) for one in published.machines() if one.label == "Pascal Titan X, cuDNN 5.1.05"), 10)


if __name__ == "__main__":
    if not os.path.isdir(packages.tree()):
        print("SKIPPED: the page's packages are not here; `bench/report --bring` brings them")
        sys.exit(77)
    packages.bring()
    unittest.main()
