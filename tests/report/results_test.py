"""What is shown of ledgers, frontiers, memories and trainings; by numbers that can be reckoned by hand."""

import unittest

import made
from shown import main, model_of, texts, values


KEY = {"what": "ledger", "network": "net", "backend": "eigen", "type": "f32", "layout": "nchw", "batch": 4}


def ledger(**more):
    calls = [
        {
            "call": 0,
            "layers": "c",
            "node": "c",
            "op": "conv",
            "pass": "forward",
            "algorithm": "gemm",
            "seconds": 0.003,
            "flops": 6e9,
            "bytes": 3e6,
            "samples": [],
        },
        {
            "call": 1,
            "layers": "r",
            "node": "r",
            "op": "relu",
            "pass": "forward",
            "algorithm": "",
            "seconds": 0.001,
            "flops": 1e6,
            "bytes": 4e6,
            "samples": [],
        },
        {
            "call": 2,
            "layers": "c",
            "node": "c",
            "op": "conv",
            "pass": "backward_data",
            "algorithm": "gemm",
            "seconds": 0.004,
            "flops": 6e9,
            "bytes": 3e6,
            "samples": [],
        },
    ]
    return {
        "key": KEY,
        "passes": 3,
        "forward_seconds": 0.004,
        "backward_seconds": 0.004,
        "peak_flops_per_second": 4e12,
        "memory_bytes_per_second": 8e9,
        "calls": calls,
    } | more


class Ledgers(unittest.TestCase):
    def test_time_is_summed_by_kind_and_pass(self):
        from page.sections import kinds

        its = kinds.make(model_of({"context": made.context(), "ledgers": [ledger()]}))
        self.assertEqual(
            {(one["kind"], one["part"]): round(one["ms"], 6) for one in values(its)},
            {("conv", "forward"): 3, ("relu", "forward"): 1, ("conv", "backward"): 4},
        )
        self.assertIn("100.0 % of the whole", its.notes[0].text)

    def test_calls_of_one_kind_are_added_up(self):
        from page.sections import kinds

        twice = ledger(calls=2 * ledger()["calls"])
        found = values(kinds.make(model_of({"context": made.context(), "ledgers": [twice]})))
        self.assertEqual(sorted(round(one["ms"], 6) for one in found), [2, 6, 8])

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


    def test_the_rate_of_a_row_is_that_of_its_median_time(self):
        from page.sections import roofline

        key = made.key(what="layer", layer="a", algorithm="default")
        rows = []
        for place, ms in enumerate((10, 10, 40)):  # the last pass was disturbed, and its rates with it
            rates = {"flops_per_second": 1e12 / ms, "bytes_per_second": 1e11 / ms}
            rows.append(made.row(key, ms, factors=[1], **rates)[0] | {"repetition_index": place})
        found = values(roofline.make(model_of(made.document(rows))))
        self.assertEqual([round(one["gflops"], 6) for one in found if one.get("name") == "a"], [100])

    def test_an_interrupted_ledger_says_so(self):
        from page.sections import kinds

        its = ledger() | {"passes": 2, "passes_asked": 9}
        self.assertIn("interrupted after 2 of 9 passes", kinds.make(model_of(made.document(ledgers=[its]))).notes[-1])

    def test_a_ledger_that_does_not_say_its_passes_and_a_peak_that_is_no_number_leave_a_page(self):
        from page.sections import kinds, roofline

        without = ledger() | {"passes_asked": 9}
        without.pop("passes", None)
        self.assertNotIn("interrupted", " ".join(map(str, kinds.make(model_of(made.document(ledgers=[without]))).notes)))
        rows = made.row(
            made.key("forward", what="layer", layer="c", algorithm="a"), 1, flops_per_second=1e9, bytes_per_second=1e9
        )
        for peak in ("nan", "1e-320", "-1"):
            facts = {"peak_GFLOPs_eigen/f32": peak, "memory_GBps_eigen": peak}
            self.assertEqual(roofline.make(model_of(made.document(rows, facts))).answers, [])

    def test_a_ledger_is_said_in_words(self):
        from page.sections import kinds, roofline

        its = ledger(peak_flops_per_second=5e12, memory_bytes_per_second=6e9)
        model = model_of({"context": made.context(), "ledgers": [its]})
        self.assertRegex(
            kinds.make(model).answers[0].text,
            "conv 8[78] %, relu 1[23] %; the biggest call is c, backward_data, 4.00 ms",
        )
        said = roofline.make(model).answers[0].text
        self.assertIn("1500 GFLOP/s, 30 % of the measured peak of 5000", said)
        self.assertRegex(said, "8[78] % of the time is in calls that stay below half")

    def test_rows_stand_under_the_peaks_that_were_measured_beside_them(self):
        from page.sections import roofline

        rows = [
            row
            for layer, peak in (("a", 2e11), ("b", 4e11), ("c", 9e11))
            for row in made.row(
                made.key(what="layer", layer=layer, algorithm="default"),
                10,
                flops_per_second=1e11,
                bytes_per_second=1e10,
                peak_flops_per_second=peak,
            )
        ]
        facts = {"peak_GFLOPs_eigen/f32": "1", "memory_GBps_eigen": "20"}
        found = values(roofline.make(model_of(made.document(rows, facts))))
        self.assertEqual(max(one["gflops"] for one in found if "roof" in one), 400)


class Others(unittest.TestCase):
    def test_a_frontier_has_every_algorithm_and_the_reason_of_those_without_a_time(self):
        tried = [
            made.tried(deterministic=False, by_rule=False),
            {"algorithm": "b", "failure": "takes 3x3 kernels"},
        ]
        from page.sections import frontier

        its = frontier.make(
            model_of(
                {
                    "context": made.context(),
                    "frontiers": [
                        {
                            "key": KEY,
                            "complete": True,
                            "lines": [{"node": "c", "pass": "forward", "layers": 2, "algorithms": tried}],
                        }
                    ],
                }
            )
        )
        self.assertEqual(
            [(one["algorithm"], one["ms"], one["MiB"], one["deterministic"]) for one in values(its)],
            [("a", 2, 1, "not deterministic")],
        )
        rows = texts(its.charts[0].table)
        self.assertIn("not deterministic", rows[0][-1])
        self.assertIn("takes 3x3 kernels", rows[1])

    def test_a_frontier_says_what_there_is_to_choose(self):
        from page.sections import frontier

        fast, slow = made.tried(picked=False, seconds=0.002), made.tried(algorithm="b", seconds=0.003)
        beaten = made.tried(algorithm="c", seconds=0.004, on_frontier=False, picked=False)
        refused = made.tried(seconds=None, failure="takes 3x3 kernels", picked=False)
        lines = [
            {"node": "a", "pass": "forward", "layers": 2, "algorithms": [fast, slow, beaten]},
            {"node": "b", "pass": "forward", "layers": 1, "algorithms": [made.tried(seconds=0.004), beaten]},
            {"node": "c", "pass": "forward", "layers": 1, "algorithms": [refused]},
        ]
        for one in refused, beaten:
            one["low"] = one["high"] = None
        del refused["seconds"], refused["low"], refused["high"], beaten["low"], beaten["high"]
        its = frontier.make(
            model_of({"context": made.context(), "frontiers": [{"key": KEY, "complete": True, "lines": lines}]})
        )
        self.assertRegex(its.answers[0].text, r": 1 of 2 layers and passes have several algorithms on the frontier; ")
        self.assertIn("picked take 1.250 times as long as the fastest.", its.answers[0].text)
        untimed = [{"node": "c", "pass": "forward", "layers": 1, "algorithms": [refused]}]
        its = frontier.make(
            model_of(
                {"context": made.context(), "frontiers": [{"key": KEY, "complete": True, "lines": lines}]},
                {"context": made.context(), "frontiers": [{"key": KEY, "complete": True, "lines": untimed}]},
            )
        )
        self.assertRegex(its.answers[1].text, r": no algorithm of any layer has a time\.$")

    def test_memory_is_stacked_by_kind(self):
        from page.sections import memory

        its = memory.make(
            model_of({"context": made.context(), "memories": [{"key": KEY, "total": 2**22, "steps": made.memory_steps()}]})
        )
        self.assertEqual({one["kind"]: one["MiB"] for one in values(its)}, {"values": 2, "workspace": 1})
        self.assertIn("4.00", texts(its.tables[0])[0])
        self.assertIn("the plan takes 4.00 MiB.", its.answers[0].text)

    def test_the_largest_batches_of_many_plans_are_one_sentence(self):
        from page.sections import memory

        def answers(count):
            found = [
                {"key": KEY | {"network": f"net{i}"}, "total": 2**22 * (i + 1), "limit_bytes": 2**30, "largest_batch": i}
                for i in range(count)
            ]
            return list(map(str, memory.make(model_of({"context": made.context(), "memories": found})).answers))

        few = answers(2)
        self.assertIn("takes 4.00 MiB; not even one image fits within 1.00 GiB.", few[0])
        self.assertIn("takes 8.00 MiB; the largest batch within 1.00 GiB is 1.", few[1])
        again = memory.make(model_of({"context": made.context(), "memories": [
            {"key": KEY, "total": 2**22, "limit_bytes": 2**30, "largest_batch": 3}]})).tables[0].rows[0].command
        self.assertIn("--memory_limit=1073741824", again.split())
        plans, largest = answers(5)
        self.assertRegex(plans, r"^5 plans take 4.00 MiB \(net0, .*\) to 20.0 MiB \(net4, .*\)\.$")
        self.assertRegex(largest, r"within 1.00 GiB, .*: 0 \(net0\), 1 \(net1\), 2 \(net2\), 3 \(net3\), 4 \(net4\)\.$")

    def test_memory_of_a_training_by_an_optimiser_has_its_state_and_its_flag(self):
        from page.sections import memory

        key = KEY | {"differs": {"optimiser": "adam"}}
        of_adam = {"key": key, "total": 2**22, "optimiser": 3 * 2**20, "steps": made.memory_steps()}
        its = memory.make(model_of({"context": made.context(), "memories": [of_adam]}))
        self.assertIn("3.00", texts(its.tables[0])[0])
        self.assertIn("--optimiser=adam", its.tables[0].rows[0].command)

    def test_a_memory_of_no_bytes_has_no_chart(self):
        from page.sections import memory

        step = {"layers": "c", "pass": "forward", "live_bytes": 0, "by_kind": {"values": 0}}
        its = memory.make(model_of({"context": made.context(), "memories": [{"key": KEY, "total": 1, "steps": [step]}]}))
        self.assertEqual((its.charts, len(its.tables)), ([], 1))

    def test_epochs_without_a_loss_have_no_curve(self):
        from page.sections import training

        section = training.make(model_of(made.document(made.training("mnist_mlp", [{"seconds": 2}]))))
        self.assertTrue(section.empty)
        self.assertIn("lamina_bench train", section.fill)

    def test_a_training_stands_beside_the_published_runs(self):
        rows = made.training(
            "mnist_mlp",
            [
                {"seconds": 2, "loss": 0.5, "accuracy": 0.8, "validation_accuracy": 0.9},
                {"seconds": 3, "loss": 0.3, "accuracy": 0.9},
            ],
            "0.5",
        )
        said = {"name": rows[0]["name"], "optimiser": "adam", "best_possible": {"loss": 0.1, "accuracy": 0.97}}
        from page.sections import training

        its = training.make(model_of(made.document(rows, trainings=[said])))
        ours = [one for one in values(its) if "run" in one]
        self.assertEqual(
            {(one["epoch"], one["seconds"], one["value"]) for one in ours if one["what"] == "loss"},
            {(1, 2, 0.5), (2, 5, 0.3)},
        )
        bands = {
            (one["what"], one["epoch"]): (one["low"], one["high"], one["runs"]) for one in values(its) if "low" in one
        }
        self.assertEqual(bands["loss", 1], (0.245993, 0.247496, 4))  # of bench/published/trainings.csv
        for said in ("glyphs", "adam", "accuracy 0.9700"):
            self.assertIn(said, its.notes[0])
        self.assertIn("--share=0.5", ours[0]["run"])
        self.assertIn("accuracy 0.9000, loss 0.3000 after 2 epochs, 5.00 s.", its.answers[0].text)


if __name__ == "__main__":
    main()
