"""What is said in words has the command that measures it again."""

import unittest

import made
from results_test import KEY, ledger
from shown import main, model_of, texts, values

FLAT, LARGEST, ODD = range(3)  # the tables of batches, and its sentences


def swept(context=None, answers=(), **key):
    """Batches 1 to 4, of which the largest has no place in memory."""
    rows = [row for batch, ms in ((1, 10), (2, 16), (3, 24)) for row in made.row(made.key(batch=batch, **key), ms)]
    rows += made.failed(made.key(batch=4, **key), "OutOfMemory: 9 bytes wanted", failure="out_of_memory")
    return made.document(rows, context, answers=list(answers))


class Sweeps(unittest.TestCase):
    def of(self, *documents):
        from page.sections import batches

        return batches.make(model_of(*documents))

    def test_what_is_said_of_batches_is_a_sweep_of_those_that_ran(self):
        its = self.of(swept({"threads": "2"}))
        words = (
            "lamina_bench sweep resnet50 --batch=1,2,3 --backend=eigen --threads=2 --thread_counts=2 --passes=6 "
            "--benchmark_out=sweep.json"
        )
        for place in FLAT, ODD:
            self.assertEqual(its.tables[place].rows[0].command, words)
            self.assertEqual(its.answers[place].command, words)
        self.assertEqual(its.answers[LARGEST].command, words.replace("1,2,3", "1,2,3,4"))

    def test_the_largest_batch_of_a_sweep_is_found_again_within_its_limit(self):
        def command(context, backend="eigen"):
            said = {name: value for name, value in made.key(backend=backend).items() if name != "batch"}
            answer = {"what": "largest_batch", "text": "Batch 3 ran.", "value": 3, "key": said}
            document = swept({"sweep_memory_limit": 2**31} | context, [answer], backend=backend)
            return self.of(document).tables[LARGEST].rows[0].command.split()

        found = command({})
        self.assertIn("--memory_limit=2147483648", found)
        self.assertNotIn("--batch", " ".join(found))
        own = command({"sweep": "6 passes, training"}, "cuda")
        self.assertNotIn("--memory_limit", " ".join(own))
        self.assertIn("--memory_limit=2147483648", command({"sweep": "6 passes, memory limit 2147483648"}, "cuda"))

    def test_networks_of_one_sweep_have_one_command(self):
        its = self.of(swept(network="vgg16"), swept(network="alexnet"))
        self.assertEqual(its.answers[FLAT].command.split("\n")[0].split()[2], "vgg16,alexnet")
        self.assertEqual([row.command.split()[2] for row in its.tables[FLAT].rows], ["vgg16", "alexnet"])

    def test_where_no_sweep_has_such_rows_each_is_measured_again(self):
        for key, program in (({"backend": "torch-2.15.0"}, "bench/race/compare"), ({"differs": {"graph": ""}}, "lamina_bench run")):
            with self.subTest(key=key):
                its = self.of(swept(**key))
                lines = its.tables[FLAT].rows[0].command.split("\n")
                self.assertEqual(len(lines), 3)
                self.assertEqual(its.answers[FLAT].command.split("\n"), lines)
                for batch, line in zip("123", lines):
                    self.assertTrue(line.startswith(program))
                    self.assertIn(f"--batch={batch}", line.split())

    def test_the_best_number_of_threads_is_found_by_a_sweep_of_all_that_were_tried(self):
        from page.sections import threads

        rows = [
            row for count in "124" for row in made.row(made.key(batch=8, differs={"threads": count}), 100 / int(count))
        ]
        its = threads.make(model_of(made.document(rows)))
        words = (
            "lamina_bench sweep resnet50 --batch=8 --backend=eigen --thread_counts=1,2,4 --passes=6 "
            "--benchmark_out=sweep.json"
        )
        self.assertEqual((its.answers[0].command, its.tables[0].rows[0].command), (words, words))


class Others(unittest.TestCase):
    def test_the_memory_of_a_plan_is_predicted_again_from_every_mark_and_line(self):
        from page.sections import memory

        plans = [
            {"key": KEY | {"network": net}, "total": 2**22, "limit_bytes": 2**30, "largest_batch": 3, "steps": made.memory_steps()}
            for net in "abcde"
        ]
        its = memory.make(model_of({"context": made.context(), "memories": plans}))
        words = "lamina_bench memory {} --backend=eigen --batch=4 --memory_limit=1073741824"
        self.assertEqual({(one["of"][0], one["run"]) for one in values(its)}, {(net, words.format(net)) for net in "abcde"})
        self.assertEqual([row.command for row in its.charts[0].table.rows], [words.format(net) for net in "abcde"])
        self.assertEqual([one.command for one in its.answers], [words.format("a"), words.format("a,b,c,d,e")])
        few = memory.make(model_of({"context": made.context(), "memories": plans[:2]}))
        self.assertEqual([one.command for one in few.answers], [words.format("a"), words.format("b")])

    def test_what_is_said_of_a_ledger_is_measured_by_a_ledger(self):
        from page.sections import kinds, roofline

        model = model_of({"context": made.context(), "ledgers": [ledger()]})
        words = "lamina_bench ledger net --backend=eigen --batch=4"
        said = [*kinds.make(model).answers, kinds.make(model).notes[0], *roofline.make(model).answers]
        self.assertEqual([one.command for one in said], [words] * 3)
        self.assertEqual({one["run"] for one in values(roofline.make(model)) if "roof" in one}, {words})

    def test_what_is_said_of_rows_of_layers_is_measured_by_all_of_them(self):
        from page.sections import roofline

        rates = {"flops_per_second": 1e11, "bytes_per_second": 1e10, "peak_flops_per_second": 2e11}
        rows = made.row(made.key(what="layer", network="a.b", layer="c", algorithm="default"), 10, **rates)
        self.assertEqual(
            roofline.make(model_of(made.document(rows))).answers[0].command,
            r"lamina_bench run '--benchmark_filter=^layer/a\.b/' --backend=eigen --passes=6",
        )

    def test_times_and_speed_ups_of_networks_have_their_rows_and_their_race(self):
        from page.sections import networks

        rows = made.network("vgg16", 200) + made.network("alexnet")
        rows += made.network("vgg16", 300, backend="torch-2.15.0") + made.network("alexnet", backend="torch-2.15.0")
        spans, speed_ups = networks.make(model_of(made.document(rows))).answers[:2]
        self.assertEqual([line.split("/")[1] for line in spans.command.split("\n")], ["alexnet", "vgg16"])
        self.assertEqual(speed_ups.command, "bench/race/compare --nets vgg16,alexnet --modes training")

    def test_trainings_have_theirs(self):
        from page.sections import training

        epochs = [{"seconds": 2, "loss": 0.5, "accuracy": 0.9}]
        its = training.make(model_of(made.document(made.training("mnist_mlp", epochs, "0.5"))))
        self.assertTrue(its.answers[0].command.startswith("lamina_bench train mnist_mlp --backend=eigen --epochs=1"))

    def test_verdicts_have_the_comparison_that_gave_them(self):
        from page.sections import versions

        one = {"name": "a", "key": made.key(), "ratio": 1.4, "low": 1.3, "high": 1.5, "verdict": "slower"}
        words = "lamina_bench compare old new --benchmark_out=compared.json"
        its = versions.make(model_of({"context": made.context(command=words), "comparisons": [one]}))
        self.assertEqual([one.command for one in its.answers], [words])


class Costs(unittest.TestCase):
    def of(self, *documents):
        from page.sections import cost

        return cost.make(model_of(*documents))

    def test_the_cheapest_machine_has_the_command_of_its_row(self):
        rows = made.network("net", factors=[1] * 6)
        its = self.of(made.document(rows, {"processor": "Tesla K80"}))  # which has a published price
        (row,) = its.tables[0].rows
        self.assertIn("Tesla K80, Lamina eigen", texts(its.tables[0])[0][1])
        self.assertIn("net/net/total/", row.command)
        self.assertEqual(its.answers[0].command, row.command)

    def test_idle_power_is_shown_apart_from_the_joules_that_include_it(self):
        rows = made.row(made.key(), 32, factors=[1] * 6, joules=8.0)
        facts = {"energy_eigen": "RAPL package-0", "idle_power_w_eigen": "12.5", "command": "lamina_bench run --energy"}
        its = self.of(made.document(rows, facts))
        self.assertEqual([one["idle_watts"] for one in its.data["items"] if one["ours"]], [12.5])
        (note,) = its.notes
        self.assertEqual(note.text, "Test CPU: 12.5 W when idle (RAPL package-0).")
        self.assertEqual(note.command, "lamina_bench run --energy")

    def test_idle_power_that_is_not_known_has_its_reason_where_there_are_joules(self):
        why = "not available: energy: the counter stood still (RAPL package-0)"
        rows = made.row(made.key(), 32, joules=8.0)
        its = self.of(made.document(rows, {"energy_eigen": "RAPL package-0", "idle_power_w_eigen": why}))
        self.assertEqual([one["idle_watts"] for one in its.data["items"] if one["ours"]], [None])
        self.assertEqual(list(map(str, its.notes)), [f"Test CPU: power when idle: {why}."])
        none = "not available: no counter here"
        its = self.of(made.document(made.network(), {"energy_eigen": none, "idle_power_w_eigen": none}))
        self.assertEqual(len(its.notes), 1)
        self.assertIn(none, str(its.notes[0]))

    def test_joules_of_a_gpu_stand_beside_its_own_idle_power(self):
        facts = {"device_cuda": "H100, 80 GB", "energy_cuda": "NVML", "idle_power_w_cuda": "70.0", "idle_power_w_eigen": "9.0"}
        its = self.of(made.document(made.row(made.key(backend="cuda"), 4, joules=2.0), facts))
        self.assertEqual([one["idle_watts"] for one in its.data["items"] if one["ours"]], [70])
        self.assertIn("H100: 70.0 W when idle (NVML).", str(its.notes[0]))


if __name__ == "__main__":
    main()
