"""What is said of rows that two versions ran in turns, on made-up times."""

import dataclasses
import os
import random
import statistics
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bench/race"))
import rows
import verdicts
from verdicts import Observation

KEYS = {}  # by name, of all rows that the tests have named


def named(**key):
    """The name of a row."""
    key = {"type": "f32", "layout": "nchw", "batch": 16} | key
    name = rows.name_of(key)
    KEYS[name] = key
    return name


def network(part="total", backend="cudnn", **more):
    return named(what="net", network="net", part=part, backend=backend, **more)


def layer(algorithm, backend="cudnn", node="conv1", part="forward", net="net", **more):
    return named(what="layer", network=net, layer=node, part=part, backend=backend, algorithm=algorithm, **more)


NET, SETUP = network(), named(what="setup", network="net", part="plan", backend="eigen")


def around(seconds, algorithm="", memory=10):
    """Six rounds around a time, with a spread of a few per mille."""
    return [Observation(factor * seconds, memory, algorithm) for factor in (1.0, 1.001, 0.999, 1.002, 0.998, 1.0)]


def failing(why, kind="failed"):
    return [Observation(failure=why, kind=kind)] * 6


def keyed(observed):
    """With the rows' keys."""
    return {name: [one and dataclasses.replace(one, key=KEYS[name]) for one in rounds]
            for name, rounds in observed.items()}


def compare(first, other):
    return {one.name: one for one in verdicts.compare(keyed(first), keyed(other))}


def one(first, other, name=NET):
    return compare({name: first}, {name: other})[name]


class Times(unittest.TestCase):
    def test_a_difference_is_beyond_two_percent_with_an_interval_that_leaves_out_1(self):
        for ratio, verdict in ((1, "equal"), (1.015, "equal"), (0.985, "equal"), (1.05, "slower"), (0.95, "faster")):
            self.assertEqual(one(around(1), around(ratio)).verdict, verdict, ratio)
        slower = one(around(1), around(1.05))
        self.assertAlmostEqual(slower.ratio, 1.05)
        self.assertLessEqual(slower.low, slower.ratio)
        self.assertLessEqual(slower.ratio, slower.high)
        noisy = around(1.1)
        noisy[2].seconds = 0.8
        undecided = one(around(1), noisy)  # from 0.8 to 1.1 nothing can be said, and least of all that they are equal
        self.assertEqual((undecided.verdict, "more of them" in undecided.evidence), ("undecided", True))
        wide = around(1)
        wide[2].seconds = 1.06
        self.assertEqual(one(around(1), wide).verdict, "undecided")
        self.assertEqual(one(around(1), around(0.95)).regression, "")

    def test_a_round_lost_or_failed_leaves_too_few_and_decides_nothing(self):
        for lost in (None, Observation(failure="DeviceError: once")):
            few = around(2)
            few[1] = lost
            found = one(around(1), few)
            self.assertEqual(found.verdict, "undecided")
            self.assertAlmostEqual(found.ratio, 2)
            self.assertIn("1 more needed", found.evidence)
            more = [*around(1), Observation(1, 10)], [*few, Observation(2, 10)]
            self.assertEqual(one(*more).verdict, "slower")

    def test_a_row_of_one_variant_only_is_undecided_and_says_so(self):
        gone, new = compare({NET: around(1)}, {})[NET], compare({}, {NET: around(1)})[NET]
        self.assertEqual((gone.verdict, new.verdict), ("undecided", "undecided"))
        self.assertNotEqual(gone.evidence, new.evidence)

    def test_failures_are_verdicts_with_their_text(self):
        fails = one(around(1), failing("Unsupported: no such thing"))
        self.assertEqual((fails.verdict, fails.regression, fails.evidence), ("fails", "", "Unsupported: no such thing"))
        self.assertEqual(one(around(1), failing("3 GiB wanted", "out_of_memory")).regression, "memory")
        self.assertEqual(one(failing("a"), around(1)).verdict, "no longer fails")
        self.assertFalse({"ratio", "low", "high"} & verdicts.fields_of(fails).keys())
        self.assertEqual(verdicts.fields_of(one(around(1), around(2)))["ratio"], 2)
        self.assertEqual(one(failing("a"), failing("b")).verdict, "fails in both")

    def disturbed(self, chance, seconds, of_passes):
        """Six rounds; each of nine passes is disturbed by a little, and one in ten by a lot, which only ever adds."""
        rounds = []
        for _ in range(6):
            base = seconds * (1 + chance.gauss(0, 0.005))  # what differs between processes: addresses, pages
            passes = [base * (1 + chance.expovariate(50) + (chance.random() < 0.1) * chance.expovariate(2))
                      for _ in range(9)]
            rounds.append(Observation(of_passes(passes), 10))
        return rounds

    def slower_in_1000(self, ratio, of_passes=min):
        chance = random.Random(7)
        return sum(one(self.disturbed(chance, 1, of_passes), self.disturbed(chance, ratio, of_passes)).verdict
                   == "slower" for _ in range(1000))

    def test_with_disturbed_passes_equal_is_equal_and_five_percent_are_found_by_the_least_of_a_round(self):
        found = self.slower_in_1000(1.05)
        self.assertLessEqual(self.slower_in_1000(1), 5)
        self.assertGreaterEqual(found, 950)
        self.assertLess(self.slower_in_1000(1.05, statistics.median), found)


class Observations(unittest.TestCase):
    def test_a_rounds_time_is_the_least_of_its_passes_in_seconds_whatever_the_unit(self):
        def row(name, time, unit, what="net", **more):
            return {"name": name, "run_type": "iteration", "real_time": time, "time_unit": unit,
                    "key": {"what": what}} | more

        seen = verdicts.observations({"benchmarks": [
            row("a", 7.5, "ms", plan_MiB=3.5), row("a", 2.5, "ms", plan_MiB=3.5), row("b", 40, "us", algorithm="gemm"),
            {"name": "a_mean", "run_type": "aggregate", "real_time": 1, "time_unit": "ms"}, row("c", 3, "s"),
            row("d", 50, "ns"), row("e", 90, "ms", "setup", repetition_index=0), row("e", 2, "ms", "setup", repetition_index=1)]})
        self.assertEqual({name: round(one.seconds, 12) for name, one in seen.items()},
                         {"a": 2.5e-3, "b": 40e-6, "c": 3, "d": 50e-9, "e": 90e-3})
        self.assertEqual((seen["a"].memory_MiB, seen["b"].algorithm), (3.5, "gemm"))

    def test_rows_without_a_time_have_the_reason_and_its_kind(self):
        row = {"key": {}, "name": "a", "run_type": "iteration", "failure": "unsupported", "error_occurred": True,
               "error_message": "Unsupported: y"}
        seen = verdicts.observations({"benchmarks": [row]})
        self.assertEqual((seen["a"].failure, seen["a"].kind), ("Unsupported: y", "unsupported"))


class Explanations(unittest.TestCase):
    first = {layer("default"): around(1, "winograd"), layer("winograd"): around(1), layer("gemm"): around(2)}

    def test_a_pick_is_another_algorithm_while_the_fastest_got_no_slower(self):
        found = compare(self.first, self.first | {layer("default"): around(2, "gemm")})
        self.assertEqual((found[layer("default")].regression, found[layer("gemm")].regression), ("pick", ""))
        for word in ("gemm", "winograd", "1000.000"):
            self.assertIn(word, found[layer("default")].evidence)

    def test_a_kernel_is_the_fastest_got_slower_whichever_is_picked(self):
        for pick in ("winograd", "gemm"):
            found = compare(self.first, self.first | {layer("default"): around(2, pick), layer("winograd"): around(1.5)})
            self.assertEqual([found[layer(one)].regression for one in ("default", "winograd")], ["kernel"] * 2)
            self.assertIn("1500.000 ms by winograd", found[layer("default")].evidence)
        self.assertEqual(one(around(1, "gemm"), around(1.5, "gemm"), layer("default")).regression, "kernel")

    def test_algorithms_of_another_pass_are_no_evidence(self):
        elsewhere = {layer("winograd", part="backward_data"): around(0.1)}
        found = compare({layer("default"): around(1, "winograd")} | elsewhere,
                        {layer("default"): around(2, "gemm")} | elsewhere)
        self.assertEqual(found[layer("default")].regression, "kernel")

    def test_more_memory_is_a_regression_whatever_the_time(self):
        found = one(around(1, "", 100), around(1, "", 102))
        self.assertEqual((found.verdict, found.regression), ("equal", "memory"))
        self.assertIn("100.0 -> 102.0 MiB", found.evidence)
        self.assertEqual(one(around(1, "", 100), around(1, "", 100.5)).regression, "")
        self.assertEqual(one(around(1, "gemm", 1), around(2, "gemm", 9), layer("gemm")).regression, "kernel, memory")

    def test_what_got_slower_in_set_up_is_a_first_call(self):
        self.assertEqual(one(around(1), around(2), SETUP).regression, "first call")
        self.assertEqual(one(around(2), around(1), SETUP).regression, "")

    def test_a_network_names_its_layers_that_got_slower_the_costliest_first(self):
        net, dear, other = NET, layer("gemm", node="conv2"), layer("gemm", net="other")
        found = compare({net: around(10), layer("gemm"): around(1), dear: around(3), other: around(1)},
                        {net: around(12), layer("gemm"): around(1.5), dear: around(4.5), other: around(2)})[net]
        self.assertEqual(found.regression, "layers")
        self.assertNotIn("layer/other", found.evidence)
        self.assertLess(found.evidence.index(dear), found.evidence.index(f"{layer('gemm')} (+500.000 ms, kernel)"))
        alone = one(around(10), around(12), net)
        self.assertEqual((alone.regression, "layer/" in alone.evidence), ("kernel", True))

    def test_rows_of_another_backend_type_layout_batch_or_pass_are_no_evidence_against_a_network(self):
        def label(net, slower):
            return compare({net: around(10), slower: around(1)}, {net: around(12), slower: around(2)})[net].regression

        passes = {"total": (1, 1, 1), "forward": (1, 0, 0), "inference": (1, 0, 0), "backward": (0, 1, 1)}
        for part, within in passes.items():
            for one_pass, is_part in zip(("forward", "backward_data", "backward_params"), within):
                self.assertEqual(label(network(part), layer("gemm", part=one_pass)), "layers" if is_part else "kernel",
                                 (part, one_pass))
        forward = network("forward")
        for elsewhere in ({"backend": "eigen"}, {"type": "tf32"}, {"layout": "nhwc"}, {"batch": 1},
                          {"differs": {"image": "64"}}):
            self.assertEqual(label(forward, layer("gemm", **elsewhere)), "kernel", elsewhere)
        for more in ({"graph": ""}, {"recompute": "", "unfused": ""}, {"measured": ""}, {"choices": ""},
                     {"softmax": "1", "input_gradient": "0", "accumulate": "1"}):  # which no layer's row has
            self.assertEqual(label(network("forward", differs=more), layer("gemm")), "layers", more)
        limited = {"deterministic": ""}
        self.assertEqual(label(network("forward", differs={"unfused": ""} | limited), layer("gemm", differs=limited)),
                         "layers")
        self.assertEqual(label(network("forward", differs=limited), layer("gemm")), "kernel")

    def test_of_two_backends_each_network_names_its_own_by_what_it_takes(self):
        nets = {backend: network("forward", backend) for backend in ("eigen", "cudnn")}
        of_eigen = layer("gemm", backend="eigen")
        found = compare(self.first | {nets["eigen"]: around(10), nets["cudnn"]: around(10), of_eigen: around(1)},
                        {nets["eigen"]: around(12), nets["cudnn"]: around(12), of_eigen: around(3),
                         layer("default"): around(2, "gemm"), layer("winograd"): around(1), layer("gemm"): around(5)})
        self.assertIn(f"{of_eigen} (+2000.000 ms, kernel)", found[nets["eigen"]].evidence)
        self.assertNotIn("/cudnn/", found[nets["eigen"]].evidence)
        self.assertIn(f"{layer('default')} (+1000.000 ms, pick)", found[nets["cudnn"]].evidence)
        self.assertNotIn("/gemm/", found[nets["cudnn"]].evidence)  # dearer, and not what the network takes

    def test_a_network_whose_layers_did_not_get_slower_is_not_explained_by_them(self):
        net = network("forward")
        found = compare({net: around(10), layer("default"): around(1), layer("fft"): around(1)},
                        {net: around(12), layer("default"): around(1), layer("fft"): around(9)})[net]
        self.assertEqual(found.regression, "kernel")
        self.assertIn("none of 1 rows", found.evidence)


if __name__ == "__main__":
    unittest.main()
