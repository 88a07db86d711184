"""Times and prices of machines. browser_test.py tests the page's arithmetic."""

import os
import unittest

import made
from page import prices, published
from page.sections import cost

HEAD = "source,date,configuration,usd_per_hour,note\n"


class Prices(made.Case):
    def listed(self, *lines, head=HEAD, name="prices.csv"):
        return prices.read([made.write(self.folder, name, head + "\n".join(lines) + "\n")])

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
                self.assertEqual(prices.fits({"configuration": configuration}, machine), fitting)

    def test_a_note_that_denies_it_makes_no_price_preemptible(self):
        notes = ("preemptible", "Preemptible GPU", "spot; preemptible", "non-preemptible", "not preemptible", "")
        found = self.listed(*(f"s,2026-01,X,1,{note}" for note in notes))
        self.assertEqual([one["preemptible"] for one in found], [True, True, True, False, False, False])

    def test_the_prices_of_several_files_count_together_and_none_are_the_published_ones(self):
        marked = "\ufeff"  # the byte order mark that spreadsheets write
        paths = [made.write(self.folder, name, f"{marked}{HEAD}s,2026-01,{name},1,\n") for name in "ab"]
        self.assertEqual([(one["configuration"], one["usd"]) for one in prices.read(paths)], [("a", 1), ("b", 1)])
        self.assertEqual(len(prices.read([])), len(published.lines("prices.csv")))

    def test_a_file_of_prices_with_a_fault_is_named_with_the_line(self):
        for lines, said in (
            *(([f"s,2026-01,x,{price},"], "line 2") for price in ("much", "-1", "0")),
            (["s,2026-01,x,1,", "s,soon,y,1,"], "line 3"),
            ([], "no prices"),
        ):
            with self.subTest(lines=lines), self.assertRaisesRegex(prices.PriceError, said):
                self.listed(*lines)
        with self.assertRaisesRegex(prices.PriceError, "first line"):
            self.listed("a,b", head="x,y\n")
        with self.assertRaisesRegex(prices.PriceError, "none.csv"):
            prices.read([os.path.join(self.folder, "none.csv")])


class Items(unittest.TestCase):
    def section(self, rows, facts=None, listed=()):
        model = made.model_of(made.document(rows, facts))
        model.prices = list(listed) or model.prices
        return cost.make(model)

    def items(self, rows, what="net, training pass", **more):
        return [one for one in self.section(rows, **more)["data"]["items"] if one["what"] == what]

    def test_the_batch_with_the_least_time_for_an_image_counts_and_the_newest_price_comes_first(self):
        rows = made.row(made.key(network="net", batch=1), 10, [1]) + made.row(made.key(network="net", batch=4), 20, [1])
        listed = [{"configuration": "Test CPU", "date": date} for date in ("2025-01", "2026-02", "2026-01")]
        (item,) = self.items(rows, facts={"num_cpus": 2}, listed=listed)
        self.assertEqual((item["who"], item["seconds"]), ("Test CPU, 2 CPUs, Lamina eigen, batch 4", 5000))
        self.assertEqual((item["run"], item["prices"]), (rows[1]["rerun"], [1, 2, 0]))

    def test_published_machines_are_in_the_ranking(self):
        items = self.items(made.network(), "resnet50, training pass")
        k80 = next(one for one in items if one["machine"] == "Tesla K80")
        line = next(one for one in map(prices.read([]).__getitem__, k80["prices"]) if not one["preemptible"])
        self.assertEqual((line["configuration"], line["date"]), ("K80 + n1-standard-1", "2017-11"))

    def test_epochs_cost_too(self):
        items = self.items(made.training("mnist_mlp", [{"seconds": 5}, {"seconds": 3}]), "mnist_mlp, training")
        self.assertEqual([one["seconds"] for one in items if one.get("ours")], [4])
        posts = {prices.read([])[one["prices"][0]]["configuration"] for one in items if not one.get("ours")}
        self.assertEqual(posts, {"K80 + n1-standard-1", "P100 + n1-standard-1", "32 vCPU Skylake", "16 vCPU Skylake"})

    def test_what_is_smaller_is_not_ranked_with_what_was_published(self):
        epoch = made.training("mnist_mlp", [{"seconds": 5}], "0.1")
        image = made.row(made.key(differs={"image": "64"}), 1)
        for what in ("mnist_mlp, training on 0.1 of the samples", "resnet50 image 64, training pass"):
            self.assertEqual([one["ours"] for one in self.items(epoch + image, what)], [True])


if __name__ == "__main__":
    made.main()
