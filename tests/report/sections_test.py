"""The contents of the sections for made-up files, with numbers that can be calculated by hand."""

import importlib
import json
import unittest

import made
from made import document, model_of, points, texts
from page import published


EXACT = (1,)


def make(name, *documents):
    return importlib.import_module(f"page.sections.{name}").make(model_of(*documents))


class Networks(unittest.TestCase):
    def ours(self, *rows):
        machines = make("networks", document([row for its in rows for row in its]))["data"]["machines"]
        return [one for one in machines if one["ours"]]

    def test_of_several_batches_the_published_one_is_shown(self):
        found = self.ours(made.network(forward=100), made.network(forward=10, batch=1))
        self.assertEqual([one["label"] for one in found], ["Test CPU, Lamina eigen"])
        found = self.ours(made.network(), made.network("vgg16", batch=8))  # each file has one network
        self.assertEqual([list(one["times"]) for one in found], [["resnet50"], ["vgg16"]])

    def test_another_batch_is_shown_for_sixteen_images_and_rows_of_threads_and_smaller_images_are_not(self):
        found = self.ours(made.row(made.key(batch=4), 10, EXACT))
        self.assertEqual(found[0]["times"]["resnet50"]["total"]["ms"], 40)
        self.assertIn("batch 4", found[0]["label"])
        for differs in ({"image": "64"}, {"threads": "1"}):
            self.assertEqual(self.ours(made.row(made.key(differs=differs), 1)), [])

    def test_a_time_has_its_quartiles_its_command_and_the_memory_of_the_plan(self):
        ours = self.ours(made.row(made.key(), 100, factors=(1, 2, 3, 4, 5), plan_MiB=12.5))
        time = ours[0]["times"]["resnet50"]["total"]
        self.assertEqual([time[name] for name in ("ms", "low", "high", "MiB", "samples")], [300, 200, 400, 12.5, 5])
        self.assertEqual(time["run"], "run net/resnet50/total/eigen/f32/nchw/batch:16")

    def test_programs_that_took_turns_are_compared_as_lamina_bench_compared_them(self):
        raced = made.raced()
        its = make("networks", raced)
        ours, torch = its["data"]["machines"][:2]
        self.assertEqual(its["data"]["reference"], 1)  # rows are relative to the other program in the file
        self.assertEqual(torch["label"], "Test CPU, PyTorch 2.15.0 compiled nhwc")
        turns = [one["times"]["resnet50"]["total"]["turns"] for one in (ours, torch)]
        self.assertEqual(turns[0], {1: {"ratio": 2, "low": 1.25, "high": 2.5}})
        self.assertEqual(turns[1], {0: {"ratio": 0.5, "low": 0.4, "high": 0.8}})
        for end in ("low", "high"):  # as with too few rounds
            del raced["means"][0][end]
        found = [[one[name] for name in ("other", "network", "part", "ratio")] + [one.get("low")]
                 for one in make("networks", raced)["data"]["raced"]]
        other, fastest = "PyTorch 2.15.0 compiled nhwc", "the fastest other program"
        self.assertEqual(found, [[other, "resnet50", "total", 2, 1.25], [fastest, "resnet50", "total", 2, 1.25],
                                 [other, "mean of 2 networks", "total", 2, None]])
        self.assertEqual(its["data"]["raced"][0]["run"], raced["comparisons"][0]["rerun"])
        alone = make("networks", raced | {"comparisons": []}, document(made.network()))
        self.assertNotIn("turns", json.dumps(alone["data"]["machines"]))

    def test_sources_that_print_the_same_are_one_machine(self):
        labels = [(one["label"], json.dumps(one["times"], sort_keys=True)) for one in published.machines()]
        self.assertEqual(len(labels), len(set(labels)))
        titan = [len(one["times"]) for one in published.machines() if one["label"] == "Pascal Titan X, cuDNN 5.1.05"]
        self.assertEqual(sum(titan), 10)


class Types(unittest.TestCase):
    def table(self, *files):
        its = make("types", *files)
        return (its["tables"][0]["head"][4:], its["tables"][0]["rows"]) if its["tables"] else (its["fill"], [])

    def test_a_pass_in_several_types_is_a_line_with_a_column_for_each(self):
        types = (({}, 100), ({"type": "bf16"}, 50), ({"layout": "nhwc"}, 80))
        rows = [row for of, ms in types for row in made.row(made.key(**of), ms, EXACT, grade="A")]
        columns, lines = self.table(document(rows + made.row(made.key(batch=8), 1, EXACT)))  # only f32 has batch 8
        self.assertEqual(columns, ["f32", "f32 nhwc", "bf16"])
        self.assertEqual(texts({"rows": lines}),
                         [["resnet50", "total", "batch 16", "Test CPU, Lamina eigen", "100", "80.0", "50.0"]])
        self.assertEqual([one.get("note") for one in lines[0]["cells"][4:]], [None, "0.80", "0.50"])

    def test_variants_that_took_turns_have_their_types_in_their_names(self):
        names = {"eigen": 100, "eigen:bf16": 60, "torch@nhwc": 150, "torch:bf16+compiled@nhwc": 90, "torch": 200}
        variants = [{"variant": name, "engine": "torch" if "torch" in name else "lamina", "context": {"torch": "2.15"}}
                    for name in names]
        rows = made.race({name: [ms] for name, ms in names.items()})
        columns, lines = self.table(document(rows, {"variants": variants}))
        self.assertEqual(columns, ["f32", "f32 nhwc", "bf16"])
        self.assertEqual([line[3:] for line in texts({"rows": lines})],
                         [["Test CPU, Lamina eigen", "100", "", "60.0"], ["Test CPU, PyTorch 2.15", "200", "150", ""]])

    def test_files_of_one_type_have_a_command_in_place_of_the_table(self):
        self.assertRegex(self.table(document(made.network()))[0], "^lamina_bench .*--dtype=f32,bf16")


class Sweeps(unittest.TestCase):
    def section(self, **lists):
        times = ((1, 10), (2, 16), (4, 24), (8, 47))
        rows = [row for batch, ms in times for row in made.row(made.key(batch=batch), ms, EXACT)]
        rows += made.failed(made.key(batch=16), "OutOfMemory: 9 bytes wanted", bytes_wanted=9 * 2**20)
        return make("batches", document(rows, **lists))

    def test_milliseconds_are_those_of_an_image_and_what_does_not_fit_is_marked_with_the_bytes(self):
        drawn = points(self.section())
        self.assertEqual({one["batch"]: one["ms"] for one in drawn if "samples" in one}, {1: 10, 2: 8, 4: 6, 8: 5.875})
        run = "run net/resnet50/total/eigen/f32/nchw/batch:8"
        self.assertEqual([one["run"] for one in drawn if one["batch"] == 8], [run])
        ends = [(one["batch"], one["ms"], one["why"]) for one in drawn if "why" in one]
        self.assertEqual(ends, [(16, 5.875, "out of memory, 9.00 MiB wanted")])

    def test_questions_are_answered_as_the_file_answers_them(self):
        answers = [
            made.answer("batch_flat", "From batch 4 on. Not sure: noise.", 4),
            made.answer("batch_flat", "A larger batch may gain more.", network="vgg16"),
            made.answer("largest_batch", "Batch 8 ran.", 8),
            made.answer("odd_batches", "Odd batches do not pay."),
        ]
        its = self.section(answers=answers)
        self.assertEqual([table["caption"].split()[0] for table in its["folded"]], ["From", "Which", "Is"])
        cells = [row["cells"][1] for row in its["folded"][0]["rows"]]
        self.assertEqual(cells[0], {"text": "4", "number": 4, "note": "From batch 4 on. Not sure: noise."})
        self.assertEqual(cells[1], "A larger batch may gain more.")
        self.assertEqual(its["folded"][0]["rows"][0]["rerun"], "sweep")
        left_out = {"network": "net", "backend": "eigen", "key": made.key(network="net"), "reason": "no such pool"}
        self.assertEqual(texts(self.section(not_planned=[left_out])["tables"][0]), [["net, total", "no such pool"]])

    def test_the_ideal_line_is_that_of_one_thread(self):
        times = {"1": 160, "2": 100, "4": 80}
        rows = [row for count, ms in times.items() for row in made.row(made.key(differs={"threads": count}), ms, EXACT)]
        its = make("threads", document(rows, answers=[made.answer("best_threads", "4 threads are the fastest.", 4)]))
        drawn = {one["threads"]: (one["rate"], one["ideal"], one["of_ideal"]) for one in points(its)}
        self.assertEqual(drawn, {1: (100, 100, 1), 2: (160, 200, 0.8), 4: (200, 400, 0.5)})
        self.assertEqual(its["folded"][0]["rows"][0]["cells"][1]["note"], "4 threads are the fastest.")

    def test_the_ideal_line_of_ranks_is_that_of_one_with_as_many_threads(self):
        times = {"1": 160, "2": 100, "4": 80}
        ranks = {count: {"ranks": count} if count != "1" else {} for count in times}
        rows = [row for count, ms in times.items() for row in made.row(made.key(differs=ranks[count]), ms, EXACT)]
        drawn = points(make("threads", document(rows, {"threads": "1"})))
        self.assertEqual({one["ranks"]: (one["rate"], one["of_ideal"]) for one in drawn},
                         {1: (100, 1), 2: (160, 0.8), 4: (200, 0.5)})
        self.assertEqual({one["series"] for one in drawn}, {"Test CPU, Lamina eigen, 1 threads each"})

    def test_a_line_of_threads_is_of_one_machine_and_one_commit_in_files_of_their_own(self):
        commits = {"1": "0123456789", "2": "0123456789", "4": "fedcba9876", "8": "fedcba9876"}
        files = [document(made.network(), {"threads": count, "commit": its}) for count, its in commits.items()]
        lines = {(one["series"], one["threads"]) for one in points(make("threads", *files))}
        old, new = "Test CPU, Lamina eigen (0123456)", "Test CPU, Lamina eigen (fedcba9)"
        self.assertEqual(lines, {(old, 1), (old, 2), (new, 4), (new, 8)})


class Ledgers(unittest.TestCase):
    def test_time_is_summed_by_kind_and_pass(self):
        its = make("time_by_op", document(ledgers=[made.ledger()]))
        sums = {(one["kind"], one["part"]): round(one["ms"], 6) for one in points(its)}
        self.assertEqual(sums, {("conv", "forward"): 3, ("relu", "forward"): 1, ("conv", "backward"): 4})
        self.assertIn("100.0 % of the whole", its["notes"][0])
        twice = made.ledger(calls=2 * made.ledger()["calls"])
        found = points(make("time_by_op", document(ledgers=[twice])))
        self.assertEqual(sorted(round(one["ms"], 6) for one in found), [2, 6, 8])

    def test_the_ledger_has_rates_and_shares_and_the_command_of_each_call_and_folds_the_smaller_of_many(self):
        table = make("time_by_op", document(ledgers=[made.ledger()]))["tables"][0]
        self.assertEqual(texts(table)[0], ["c", "backward_data", "gemm", "4.00", "50.0", "1500", "38", "0.750", "9"])
        self.assertEqual([row["rerun"] for row in table["rows"]][::2], ["call c backward_data", "call r forward"])
        its = make("time_by_op", document(ledgers=[made.ledger(calls=6 * made.ledger()["calls"])]))
        self.assertEqual([len(its[part][0]["rows"]) for part in ("tables", "folded")], [15, 18])

    def test_an_interrupted_ledger_says_so_and_one_without_passes_does_not(self):
        interrupted, without = made.ledger(passes=2, passes_asked=9), made.ledger(passes_asked=9)
        del without["passes"]
        first, last = (make("time_by_op", document(ledgers=[one]))["notes"] for one in (interrupted, without))
        self.assertIn("interrupted after 2 of 9 passes", first[-1])
        self.assertNotIn("interrupted", " ".join(last))

    def test_a_kind_of_layer_has_one_colour_in_every_chart(self):
        calls = [made.call(op, op, "forward", 9, 1, 1) for op in ("relu", "slice")] + made.ledger()["calls"]
        found = []
        for name in ("time_by_op", "roofline"):
            drawn = make(name, document(ledgers=[made.ledger(calls=calls)]))["charts"][0]
            scales = [its["encoding"]["color"]["scale"] for its in drawn["spec"]["layer"] if "color" in its["encoding"]]
            found.append([dict(zip(one["domain"], one["range"])) for one in scales][0])
        self.assertEqual(found[0], found[1])
        self.assertEqual([len(set(one.values())) for one in found], [3, 3])

    def test_a_call_that_took_no_time_has_no_rate(self):
        calls = [*made.ledger()["calls"], made.call("z", "relu", "forward", 0, 1, 1)]
        its = document(ledgers=[made.ledger(calls=calls)])
        self.assertEqual(texts(make("time_by_op", its)["tables"][0])[3][5], "")
        self.assertNotIn("z", [one.get("name") for one in points(make("roofline", its))])

    def test_the_roof_has_its_corner_where_both_rates_meet(self):
        found = points(make("roofline", document(ledgers=[made.ledger()])))
        roof = sorted((one["intensity"], one["gflops"]) for one in found if "roof" in one)
        self.assertEqual(roof[1], (500, 4000))
        self.assertAlmostEqual(roof[0][1], 8 * roof[0][0])
        point = next(one for one in found if one.get("name") == "c" and one["part"] == "forward")
        self.assertEqual((round(point["intensity"], 6), round(point["gflops"], 6)), (2000, 2000))

    def layers(self, *times, facts=None):
        """Rows of layers from (layer, algorithm, milliseconds, peak)."""
        rows = []
        for layer, algorithm, ms, peak in times:
            its = made.key("forward", what="layer", layer=layer, algorithm=algorithm)
            rates = {"flops_per_second": 1e12 / ms, "bytes_per_second": 1e11 / ms, "peak_flops_per_second": peak}
            rows += made.row(its, ms, factors=[1], **rates)
        return make("roofline", document(rows, facts))

    def test_the_fastest_algorithm_of_a_layer_stands_under_the_peaks_beside_it(self):
        facts = {"peak_GFLOPs_eigen/f32": "1", "memory_GBps_eigen": "20"}
        rows = ("a", "x", 10, 2e11), ("a", "y", 5, 2e11), ("b", "x", 10, 4e11), ("c", "x", 10, 9e11)
        its = self.layers(*rows, facts=facts)
        found = points(its)
        self.assertEqual(max(one["gflops"] for one in found if "roof" in one), 400)
        self.assertEqual([round(one["gflops"]) for one in found if one.get("name") == "a"], [200])
        self.assertEqual(sum("gbs" in one for one in found), 3)

    def test_a_peak_that_is_no_number_leaves_a_page(self):
        for peak in ("nan", "1e-320", "-1"):
            facts = {"peak_GFLOPs_eigen/f32": peak, "memory_GBps_eigen": peak}
            its = self.layers(("a", "x", 10, 0), facts=facts)
            self.assertEqual((len(its["charts"]), len(its["notes"])), (1, 1))


class Plans(unittest.TestCase):
    def test_a_frontier_has_every_algorithm_and_the_reason_of_those_without_a_time(self):
        refused = {"algorithm": "b", "failure": "takes 3x3 kernels"}
        algorithms = [made.tried(deterministic=False, by_rule=False), refused]
        its = make("frontier", document(frontiers=[made.frontier(("c", 2, algorithms)) | {"complete": False}]))
        self.assertIn("interrupted", its["notes"][0])
        drawn = [(one["algorithm"], one["ms"], one["MiB"], one["deterministic"], one["run"]) for one in points(its)]
        self.assertEqual(drawn, [("a", 2, 1, "not deterministic", "layer c")])
        self.assertEqual(texts(its["folded"][0])[0][1:], ["c", "forward", "b", "takes 3x3 kernels"])

    def test_memory_is_stacked_by_kind(self):
        its = make("memory", document(memories=[made.memory(optimiser=3 * 2**20, limit_bytes=2**30, largest_batch=9)]))
        self.assertEqual({one["kind"]: one["MiB"] for one in points(its)}, {"values": 2, "workspace": 1})
        (table,) = its["tables"]
        self.assertEqual(table["rows"][0]["rerun"], "lamina_bench memory net")
        self.assertEqual(texts(table)[0][1:], ["", "", "3.00", "", "", "", "4.00", "9"])

    def test_memory_of_programs_in_a_race_is_side_by_side(self):
        common = {"net": "resnet18", "mode": "training"}
        found = [{"variant": "eigen", "peak_MiB": 20, "plan_MiB": 12.5}, {"variant": "torch", "peak_MiB": 50}]
        rows = texts(make("memory", document(memory=[common | one for one in found]))["tables"][0])
        self.assertEqual([row[2:] for row in rows], [["eigen", "20.0", "12.5"], ["torch", "50.0", ""]])

    def test_a_memory_of_no_bytes_has_no_chart_and_a_training_without_a_loss_no_curve(self):
        step = {"layers": "c", "pass": "forward", "live_bytes": 0, "by_kind": {"values": 0}}
        its = make("memory", document(memories=[made.memory(steps=[step])]))
        self.assertEqual((its["charts"], len(its["tables"])), ([], 1))
        training = make("training", document(made.training("mnist_mlp", [{"seconds": 2}])))
        self.assertIn("lamina_bench train", training["fill"])

    def test_a_training_stands_beside_the_published_runs(self):
        first = {"seconds": 2, "loss": 0.5, "accuracy": 0.8, "validation_accuracy": 0.9}
        rows = made.training("mnist_mlp", [first, {"seconds": 3, "loss": 0.3, "accuracy": 0.9}], "0.5")
        about = {"name": rows[0]["name"], "key": rows[0]["key"], "samples": 9, "epochs": 2, "optimiser": "adam"}
        about |= {"rerun": "lamina_bench train", "best_possible": {"loss": 0.1, "accuracy": 0.97}}
        its = make("training", document(rows, trainings=[about]))
        ours = [one for one in points(its) if "run" in one]
        loss = {(one["epoch"], one["seconds"], one["value"]) for one in ours if one["what"] == "loss"}
        self.assertEqual(loss, {(1, 2, 0.5), (2, 5, 0.3)})
        self.assertEqual({one["run"] for one in ours}, {"lamina_bench train"})
        bands = [one for one in points(its) if (one["what"], one["epoch"]) == ("loss", 1) and "low" in one]
        self.assertEqual([(one["low"], one["high"], one["runs"]) for one in bands], [(0.245993, 0.247496, 4)])
        for text in ("glyphs", "adam", "accuracy 0.9700"):
            self.assertIn(text, its["notes"][0])


class Comparisons(unittest.TestCase):
    def test_what_a_file_says_of_two_versions_is_shown(self):
        its = make("comparisons", document(comparisons=[made.comparison(reason="kernel", rerun="compare again")]))
        one = next(one for one in points(its) if "row" in one)
        names = ("pair", "row", "series", "why", "run", "ratio", "low", "high", "first_ms", "second_ms")
        texts_of_it = ["new against old, file0", "net/x", "slower", "kernel", "compare again"]
        self.assertEqual([one[name] for name in names], [*texts_of_it, 1.2, 1.1, 1.3, 1000, 1200])

    def test_what_fails_or_is_missing_or_was_left_out_has_a_table(self):
        missing = {"name": "b", "key": made.key(), "first": "x", "second": "y"}
        missing |= {"verdict": "missing", "reason": "not in y"}
        whole = make("comparisons", document(comparisons=[made.comparison(first="x", second="y"), missing]))
        self.assertEqual(texts(whole["tables"][0]), [["y against x, file0", "b", "missing", "not in y"]])
        failure = {"network": "resnet18", "variant": "torch", "reason": "its numbers are of another function"}
        its = make("comparisons", document(comparisons=[missing], failures=[failure]))
        self.assertEqual((its["charts"], texts(its["tables"][1])), ([], [list(failure.values())]))
        its = make("comparisons", document(comparisons=[made.comparison(first="x/runs/", second="y/runs")]))
        self.assertEqual(points(its)[-1]["pair"], "y/runs against x/runs, file0")


class Machines(unittest.TestCase):
    def test_many_runs_are_summed_up_by_machine(self):
        one, other = (document(made.network(), {"processor": name}) for name in ("Test CPU", "Other CPU"))
        two, three = (one | {"context": one["context"] | {"commit": commit}} for commit in "23")
        notes = make("machines", one, two, three, other)["notes"]
        self.assertEqual(notes[0], "Test CPU: 3 files; load average 0.1 to 0.1; grades of rows: none: 9.")
        self.assertIn("Other CPU: 1 file;", notes[1])

    def test_a_run_has_its_grades_with_their_reasons_and_all_its_facts(self):
        rows = made.network(more={"grade": "B", "grade_reasons": ["B: 6 samples"]})
        rows += made.failed(made.key(batch=4), "x")
        runs, facts = make("machines", document(rows, {"interrupted": True, "gpu": "none"}))["folded"]
        self.assertEqual(texts(runs)[0][6:], ["4, 1 without a time", "B: 3"])
        self.assertEqual(runs["rows"][0]["cells"][7]["note"], "B: 6 samples")
        self.assertIn(["gpu", "none"], texts(facts))

    def test_the_published_tables_are_whole(self):
        tables = make("publications", document(made.network()))["folded"]
        self.assertEqual([len(table["rows"]) for table in tables][:2], [182, 10])


if __name__ == "__main__":
    made.main()
