"""bench/race/versions runs several programs in turns: calls, rows, results. usage: versions_test.py LAMINA_BENCH"""

import glob
import json
import os
import signal
import sys
import time
import unittest

import fakes  # makes the modules of a race and of bench/ importable
import results
import wheels

BENCH = sys.argv.pop(1) if len(sys.argv) > 1 else None


def key(what, part, **more):
    return {"what": what, "network": "n", "part": part, "backend": "cudnn", "type": "f32", "layout": "nchw",
            "batch": 16} | more


def layer(algorithm):
    return key("layer", "forward", layer="conv1", algorithm=algorithm)


NET = key("net", "total")


def row(of, milliseconds, **more):
    return {"name": results.name_of(of), "key": of, "run_type": "iteration", "real_time": milliseconds,
            "time_unit": "ms"} | more


class Versions(fakes.Folder):
    def shell(self, name, body):
        """A shell script in which $out is the file of results to write."""
        return self.program(name, '#!/bin/bash\nhere=$(dirname "$0")\nfor flag; do case $flag in --benchmark_out=*) '
                                  f'out=${{flag#*=}} ;; esac; done\n{body}\n')

    def leaves(self, *rows):
        return "cat > \"$out\" << 'END'\n" + json.dumps(
            {"context": {"backend": "cuDNN 1"}, "benchmarks": rows}) + "\nEND"

    def start(self, *words):
        return self.begin([sys.executable, "-B", os.path.join(fakes.RACE, "versions"), *words, "--benchmark_out", self.out])

    def end(self, child, status):
        """Waits for the end. Returns the output and the file of results."""
        found = child.wait(timeout=120)
        with open(self.said) as file:
            said = file.read()
        self.assertEqual(found, status, said)
        try:
            with open(self.out) as file:
                return said, json.load(file)
        except OSError:
            return said, None

    def compare(self, a, b, *words, status=0):
        said, result = self.end(self.start("--programs", f"{a},{b}", "--program", BENCH, *words), status)
        return said, result, {one["name"]: one for one in (result or {}).get("comparisons", ())}

    def times(self, result, variant):
        """The rounds and times of a variant's row of the network NET."""
        return next((one["rounds"], one["real_times"]) for one in result["benchmarks"]
                    if one["variant"] == variant and one["name"] == results.name_of(NET))

    def test_slowdowns_and_picks_are_named_in_turns_of_abba(self):
        passes = [row(NET, ms, repetition_index=i) for i, ms in enumerate((14, 9, 10))]  # the median counts
        a = self.shell("a", self.leaves(*passes, row(layer("gemm"), 2), row(layer("fft"), 1),
                                          row(layer("default"), 1, algorithm="fft")))
        b = self.shell("b", self.leaves(row(NET, 11), row(layer("gemm"), 2), row(layer("fft"), 1),
                                          row(layer("default"), 2, algorithm="gemm")))
        said, result, found = self.compare(a, b, "--batch", "2")
        for of, verdict, reason, ratio in ((layer("default"), "slower", "picked gemm instead of fft", 2.0),
                                           (layer("fft"), "equal", None, 1.0), (NET, "slower", None, 1.1)):
            one = found[results.name_of(of)]
            self.assertEqual((one["verdict"], one.get("reason")), (verdict, reason))
            self.assertAlmostEqual(one["ratio"], ratio)
        self.assertIn("2 slower, 2 equal", said)
        self.assertEqual(said.split("Round 3")[0].splitlines(), [f"Round {i} of 6: {name}" for i, name in
                                                                 ((1, a), (1, b), (2, b), (2, a))])
        self.assertEqual((self.times(result, a), self.times(result, b)),
                         ((list(range(6)), [10.0] * 6), (list(range(6)), [11.0] * 6)))
        self.assertEqual(result["context"]["variants"][1], {"variant": b, "engine": "lamina", "crashes": [],
                                                            "context": {"backend": "cuDNN 1"}})

    def test_a_program_has_our_flags_and_those_of_its_version(self):
        ours = self.shell("ours", 'echo "$LD_LIBRARY_PATH $@" >> "$here/called"\n' + self.leaves(row(NET, 1)))
        for name in ("eight", "nine"):
            os.mkdir(os.path.join(self.folder, name))
        eight, nine = (os.path.join(self.folder, name) for name in ("eight", "nine"))
        with open(os.path.join(eight, "libcudnn.so.8"), "w"):
            pass
        self.end(self.start("--cudnn", f"{eight},{nine}", "--program", ours, "--batch", "2", "--quick",
                            "--benchmark_filter=^net/"), 0)
        with open(os.path.join(self.folder, "called")) as file:
            of_eight, of_nine = file.read().splitlines()[:2]
        flags = "--batch 2 --quick --benchmark_filter=^net/"
        self.assertIn(f" {flags} --cudnn={eight} --backend=cudnn --benchmark_out=", of_eight)
        self.assertIn(f" {flags} --cudnn={nine} --backend=cudnn --benchmark_out=", of_nine)
        self.assertTrue(of_eight.startswith(eight), of_eight)  # cuDNN 8 opens its parts without a path
        self.assertFalse(of_nine.startswith(nine), of_nine)

    def test_a_program_that_crashes_is_named_and_the_rows_of_all_are_kept(self):
        good = self.shell("good", self.leaves(row(NET, 1)))
        for body, kept, how in (("kill -SEGV $$", False, "no rows; signal 11"),
                                (self.leaves(row(NET, 1)) + "\nkill -SEGV $$", True, "not all rows; signal 11"),
                                ("echo 'late: no room' >&2; exit 2", False, "no rows; exit status 2")):
            said, result, found = self.compare(good, self.shell("bad", body), status=1)
            self.assertIn(f"/bad: round 1: {how}", said)
            self.assertEqual(self.times(result, good), (list(range(6)), [1.0] * 6))
            self.assertEqual(len(result["context"]["variants"][1]["crashes"]), 6)
            self.assertEqual([one["verdict"] for one in found.values()], ["equal"] if kept else [])

    def test_where_nothing_has_a_time_the_status_is_1(self):
        refuses = self.shell("refuses", self.leaves(row(NET, 0, skipped=True, skip_message="why")) + "\nexit 1")
        said, _, found = self.compare(refuses, refuses, status=1)
        self.assertEqual([one["reason"] for one in found.values()], ["fails in both: why"])
        self.assertIn("why", said)

    def test_a_program_that_is_too_old_is_named_with_what_it_lacks(self):
        for body, lacks in ((self.leaves({"name": "net/n", "run_type": "iteration", "real_time": 1}), "key"),
                            ("exit 2", "--batch=2")):
            old = self.shell("old", body)
            said, _ = self.end(self.start("--programs", f"{old},{old}", "--batch=2"), 2)
            self.assertIn("/old", said)
            self.assertIn(lacks, said)

    def stopped(self, body, interrupts):
        """The rows that remain after interrupts in the second program. A terminal interrupts the whole group."""
        programs = self.shell("quick", self.leaves(row(NET, 1))) + "," + self.shell("other", body)
        child = self.start("--programs", programs, "--backend=eigen", "--batch=2", "--passes=100000",
                           "--benchmark_filter=net/mnist_cnn/inference")
        for ready, interrupt in zip(("started", "heard"), interrupts):
            latest = time.monotonic() + 60
            while not os.path.exists(os.path.join(self.folder, ready)) and time.monotonic() < latest:
                time.sleep(0.02)
            interrupt(child.pid, signal.SIGINT)
        said, result = self.end(child, 130)
        self.assertTrue(result["context"]["interrupted"], said)
        self.assertEqual([one["crashes"] for one in result["context"]["variants"]], [[], []])
        return result["benchmarks"]

    def test_an_interrupted_comparison_keeps_the_rounds_there_are(self):
        stuck = 'touch "$here/started"; exec sleep 100'
        stubborn = "exec 3<> <(:)\ntrap 'trap - INT; touch \"$here/heard\"' INT\ntouch \"$here/started\"\n" \
                   "for ((i = 0; i < 1000; ++i)); do read -r -t 0.02 -u 3; done"
        for body, interrupts in ((stuck, [os.kill]), (stuck, [os.killpg]), (stubborn, [os.killpg, os.killpg])):
            self.assertEqual(len(self.stopped(body, interrupts)), 1)
            os.remove(os.path.join(self.folder, "started"))

    @unittest.skipIf(BENCH is None, "no lamina_bench was named")
    def test_an_interrupted_lamina_bench_finishes_its_pass_and_its_rows_are_kept(self):
        watch = 'for ((i = 0; i < 1200; ++i)); do grep -q "warming up" "$here/log" && break; sleep 0.05; done'
        body = f'exec 2> "$here/log"\n({watch}; sleep 1; touch "$here/started") &\nexec {BENCH} "$@"'
        kept = self.stopped(body, [os.killpg])
        self.assertGreater(len(kept), 1)
        self.assertEqual(kept[1]["name"], "net/mnist_cnn/inference/eigen/f32/nchw/batch:2")

    @unittest.skipIf(BENCH is None, "no lamina_bench was named")
    def test_lamina_bench_against_itself_has_a_comparison_of_every_row(self):
        _, result, found = self.compare(BENCH, BENCH, "--backend=eigen", "--batch=2", "--passes=2",
                                        "--benchmark_filter=/mnist_mlp/(total|dense_1/forward|plan)/")
        total = found["net/mnist_mlp/total/eigen/f32/nchw/batch:2"]
        self.assertLessEqual(total["low"], total["ratio"])
        self.assertIn("layer/mnist_mlp/dense_1/forward/eigen/gemm/f32/nchw/batch:2", found)
        self.assertEqual({len(row["real_times"]) for row in result["benchmarks"]}, {6})
        self.assertEqual([one["variant"] for one in result["context"]["variants"]], [BENCH, BENCH + " (2)"])

    @unittest.skipIf(BENCH is None, "no lamina_bench was named")
    def test_the_algorithms_of_one_layer_are_rows_and_so_is_what_is_taken_by_rule(self):
        _, result, found = self.compare(BENCH, BENCH, "--backend=eigen", "conv", "--input=2x8x9x9", "--channels=6",
                                        "--kernel=3", "--passes=2")
        name = "layer/conv(6, 3x3) of 2x8x9x9/conv/forward/eigen/{}/f32/nchw/batch:2"
        rows = {row["name"]: row for row in result["benchmarks"]}
        rule, direct = (rows[name.format(algorithm)] for algorithm in ("default", "direct"))
        self.assertEqual(rows[name.format(rule["algorithm"])]["real_times"], rule["real_times"])
        self.assertEqual(len(direct["real_times"]), 6)
        self.assertLessEqual({name.format("default"), name.format("direct")}, set(found))

    @unittest.skipIf(BENCH is None, "no lamina_bench was named")
    def test_each_version_of_cudnn_that_is_here_is_loaded_by_processes_of_its_own(self):
        named = os.environ.get("LAMINA_TEST_CUDNN_VERSIONS")
        brought = os.path.join(wheels.default_folder(), "cudnn/*/nvidia/cudnn/lib")
        folders = named.split(",") if named else sorted(glob.glob(brought))
        if len(folders) < 2:
            self.skipTest("needs two versions of cuDNN; bench/get-cudnn fetches them")
        child = self.start("--cudnn", f"{folders[0]},{folders[-1]}", "--program", BENCH, "--batch=2",
                           "--benchmark_filter=^net/mnist_mlp/forward/")
        _, result = self.end(child, 0 if os.path.exists("/dev/nvidiactl") else 1)
        reports = [one["context"].get("backend_cudnn", "") for one in result["context"]["variants"]]
        if all("which this build does not have" in report for report in reports):
            self.skipTest("the program is built without CUDA")
        self.assertEqual(len(set(reports)), 2)
        for report, folder in zip(reports, (folders[0], folders[-1])):
            self.assertIn(folder, report)
        for run in result["benchmarks"]:  # measured, or without a device refused with the reason
            self.assertTrue(run.get("real_times") or run.get("error_message") or run.get("skip_message"))

    def test_wrong_use_ends_with_status_2_before_anything_runs(self):
        good = self.shell("good", 'touch "$here/ran"; exit 3')
        for words, near in ((["--programs", good], "two"), (["--programs", f"{good},/nothing/here"], "/nothing/here"),
                            (["--programs", f"{good},{good}", "--rounds", "5"], "--rounds"), ([], "--cudnn"),
                            (["--programs", f"{good},{good}", "--cudnn", "/a,/b"], "--cudnn"),
                            (["--program", good, "--cudnn", "/nothing/a,/nothing/b"], "/nothing/a")):
            said, _ = self.end(self.start(*words), 2)
            self.assertIn(near, said)
        self.out = os.path.join(good, "rows.json")  # a path below a file
        self.assertIn(self.out, self.end(self.start("--programs", f"{good},{good}"), 1)[0])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "ran")))


if __name__ == "__main__":
    unittest.main()
