"""Dollars from seconds and prices: rankings, break-even prices, files of prices."""

import os
import tempfile
import unittest

import made
from page import cost, prices, result_files

HEAD = "source,date,configuration,usd_per_hour,note\n"


class Cost(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def listed(self, *lines, head=HEAD):
        return prices.read([made.write(self.folder, "prices.csv", head + "\n".join(lines) + "\n")])

    def ranking(self, listed, *documents):
        paths = [made.write(self.folder, f"{i}.json", one) for i, one in enumerate(documents)]
        model, problems = result_files.read(paths)
        self.assertEqual(problems, [])
        model.prices = listed
        found = cost.ranking(model)
        self.text = cost.text(found)
        return found

    def two_machines(self):
        """An hour and half an hour for a million images."""

        def total(milliseconds, name):
            return made.document(
                made.row(made.key(network="net", batch=1), milliseconds, factors=[1] * 6), {"processor": name}
            )

        return total(3.6, "Slow One"), total(1.8, "Quick Two")

    def test_dollars_are_hours_times_the_price(self):
        found = self.ranking(self.listed("s,2026-01,Slow One,0.5,", "s,2026-01,Quick Two,2,"), *self.two_machines())[
            "net, training pass"
        ]
        self.assertEqual(
            [(item.machine, round(dollars, 9)) for item, _, dollars, _ in found], [("Slow One", 0.5), ("Quick Two", 1)]
        )

    def test_the_terminal_has_a_ranking_for_each_file_of_prices(self):
        lists = ("s,2026-01,Slow One,0.5,", "s,2026-01,Quick Two,2,"), ("s,2026-01,Slow One,3,", "s,2026-01,Quick Two,2,")
        paths = []
        for number, lines in enumerate(lists):
            folder = os.path.join(self.folder, str(number))  # both are called prices.csv
            os.mkdir(folder)
            paths.append(made.write(folder, "prices.csv", HEAD + "\n".join(lines) + "\n"))
        model, _ = result_files.read(
            [made.write(self.folder, f"{i}.json", one) for i, one in enumerate(self.two_machines())]
        )
        model.prices = prices.read(paths)
        first, second = cost.texts(model).split(f"Prices of {paths[1]}")
        self.assertIn(f"Prices of {paths[0]}", first)
        self.assertLess(first.index("Slow One"), first.index("Quick Two"))
        self.assertLess(second.index("Quick Two"), second.index("Slow One"))
        self.assertEqual(model.prices, prices.read(paths))

    def test_where_no_price_fits_the_terminal_says_so(self):
        found = cost.text(self.ranking(self.listed("s,2026-01,Another,1,"), *self.two_machines()))
        self.assertIn("None of the prices is for a machine of these files", found)
        found = cost.text(self.ranking(self.listed("s,2026-01,Slow One,1,"), *self.two_machines()))
        self.assertNotIn("None of the prices", found)

    def test_a_machine_breaks_even_where_it_costs_what_the_cheapest_other_does(self):
        found = self.ranking(self.listed("s,2026-01,Slow One,0.5,", "s,2026-01,Quick Two,2,"), *self.two_machines())[
            "net, training pass"
        ]
        self.assertEqual({item.machine: round(even, 9) for item, _, _, even in found}, {"Slow One": 1, "Quick Two": 1})

    def test_a_machine_without_a_price_has_its_break_even_price(self):
        found = self.ranking(self.listed("s,2026-01,Quick Two,2,"), *self.two_machines())["net, training pass"]
        self.assertEqual(
            [(item.machine, price is None) for item, price, _, _ in found], [("Quick Two", False), ("Slow One", True)]
        )
        self.assertEqual(found[1][3], 1)
        self.assertIn("no price", self.text)

    def test_a_price_is_for_the_model_that_it_names_and_no_other(self):
        for configuration, machine, fitting in (
            ("K80 + n1-standard-1", "Tesla K80", True),
            ("Tesla K80", "Tesla M60", False),
            ("GTX 1080", "GTX 1080 Ti", False),
            ("GTX 1080 Ti", "GTX 1080", False),
            ("H200", "NVIDIA H200", True),
            ("H100", "NVIDIA H100 80GB HBM3", True),
            ("AMD EPYC", "AMD EPYC", True),
            ("Xeon Platinum 8481C", "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", True),
            ("NVIDIA", "NVIDIA H200", False),
        ):
            with self.subTest(configuration=configuration, machine=machine):
                self.assertEqual(prices.fits(prices.Price("", "", configuration, 1, "", ""), machine), fitting)

    def test_the_newest_price_counts_and_the_preemptible_one_only_alone(self):
        listed = self.listed(
            "s,2025-01,Slow One,9,",
            "s,2026-01,Slow One,0.5,",
            "s,2026-02,Slow One,0.1,preemptible",
            "s,2026-02,Quick Two,0.2,preemptible",
        )
        found = self.ranking(listed, *self.two_machines())["net, training pass"]
        self.assertEqual(
            {item.machine: price.usd_per_hour for item, price, _, _ in found}, {"Slow One": 0.5, "Quick Two": 0.2}
        )

    def test_a_note_that_denies_it_makes_no_price_preemptible(self):
        notes = ("preemptible", "Preemptible GPU", "spot, preemptible", "non-preemptible", "not preemptible", "")
        found = [prices.Price("s", "2026-01", "X", 1, note, "f").preemptible for note in notes]
        self.assertEqual(found, [True, True, True, False, False, False])

    def test_the_batch_with_the_least_time_for_an_image_counts(self):
        rows = made.row(made.key(network="net", batch=1), 10) + made.row(made.key(network="net", batch=4), 20)
        found = self.ranking(self.listed("s,2026-01,x,1,"), made.document(rows))["net, training pass"]
        self.assertIn("batch 4", found[0][0].who)

    def test_published_machines_are_in_the_ranking(self):
        found = self.ranking(prices.read([]), made.document(made.network()))["resnet50, training pass"]
        k80 = next((item, price) for item, price, _, _ in found if item.machine == "Tesla K80")
        self.assertEqual((k80[1].configuration, k80[1].date), ("K80 + n1-standard-1", "2017-11"))

    def test_epochs_cost_too(self):
        epochs = [{"seconds": 5}, {"seconds": 3}]
        found = self.ranking(prices.read([]), made.document(made.training("mnist_mlp", epochs)))["mnist_mlp, training"]
        self.assertEqual([item.seconds for item, *_ in found if item.ours], [4])
        self.assertEqual(
            {price.configuration for item, price, *_ in found if not item.ours},
            {"K80 + n1-standard-1", "P100 + n1-standard-1", "32 vCPU Skylake", "16 vCPU Skylake"},
        )

    def test_joules_of_epochs_cost_where_every_epoch_has_them(self):
        def of(*epochs):
            rows = made.training("mnist_mlp", epochs)
            (item,) = [
                item for item, *_ in self.ranking(prices.read([]), made.document(rows))["mnist_mlp, training"] if item.ours
            ]
            return item

        item = of({"seconds": 5, "joules": 7.2e6}, {"seconds": 3, "joules": 3.6e6})
        self.assertEqual(item.joules, 5.4e6)
        self.assertEqual(cost.usd(item, 0, 2), 3)  # 1.5 kWh
        missing = {"seconds": 3, "joules_missing": "energy: the counter stood still (RAPL package-0)"}
        self.assertIsNone(of({"seconds": 5, "joules": 7.2e6}, missing).joules)

    def test_an_epoch_on_a_part_of_the_samples_is_not_one_of_the_posts(self):
        found = self.ranking(prices.read([]), made.document(made.training("mnist_mlp", [{"seconds": 5}], "0.1")))
        self.assertEqual([item.ours for item, *_ in found["mnist_mlp, training on 0.1 of the samples"]], [True])

    def test_smaller_images_are_not_ranked_with_the_published_machines(self):
        found = self.ranking(prices.read([]), made.document(made.row(made.key(differs={"image": "64"}), 1)))
        self.assertEqual([item.ours for item, *_ in found["resnet50 image 64, training pass"]], [True])

    def test_joules_are_kept_for_the_page(self):
        rows = made.row(made.key(network="net", batch=2), 10, joules=3.0)
        found = self.ranking(self.listed("s,2026-01,x,1,"), made.document(rows))["net, training pass"]
        self.assertEqual(found[0][0].joules, 1.5e6)
        self.assertAlmostEqual(cost.usd(found[0][0], 0, 0.36), 0.15)

    def test_a_file_of_prices_may_begin_with_a_byte_order_mark(self):
        self.assertEqual([price.usd_per_hour for price in self.listed("s,2026-01,x,1,", head="\ufeff" + HEAD)], [1])

    def test_a_file_of_prices_with_a_fault_is_named_with_the_line(self):
        for lines, said in (
            (["s,2026-01,x,much,"], "line 2"),
            (["s,2026-01,x,1,", "s,soon,y,1,"], "line 3"),
            (["s,2026-01,x,-1,"], "line 2"),
            ([], "no prices"),
        ):
            with self.subTest(lines=lines), self.assertRaisesRegex(prices.PriceError, said):
                self.listed(*lines)
        with self.assertRaisesRegex(prices.PriceError, "first line"):
            self.listed("a,b", head="x,y\n")
        with self.assertRaisesRegex(prices.PriceError, "none.csv"):
            prices.read([os.path.join(self.folder, "none.csv")])


if __name__ == "__main__":
    unittest.main()
