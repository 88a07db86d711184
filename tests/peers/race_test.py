"""Whole races, with fake workers and a fake judge. Most races run in this process."""

import json
import os
import signal
import subprocess
import time
import unittest

from fakes import FIRST, Fakes, results, runner


def value_of(flag, words):
    """The value of a flag in `words`."""
    return next(word.partition("=")[2] for word in words if word.startswith(f"--{flag}="))


class Networks(Fakes):
    def test_variants_take_turns_and_their_order_turns_from_round_to_round(self):
        for words in (("--peers", "torch,onnxruntime", "--modes", "inference"),
                      ("alexnet", "--what", "layers", "--peers", "onednn@any,onednn@nchw"),
                      ("mnist_mlp", "--what", "trainings", "--peers", "torch,torch+compiled")):
            self.race(*words, "--rounds", "3")
            order = [(name, line[1]) for name, _, line in self.asked("pass")][:9]
            a, b, c = order[:3]
            self.assertEqual(len({a, b, c}), 3)
            self.assertEqual(order, [a, b, c, c, b, a, a, b, c], words)

    def test_rows_of_one_name_have_a_time_of_each_round_for_each_variant(self):
        _, result = self.race("--peers", "torch,torch+compiled+hugepages@nhwc", "--modes", "training,inference",
                              told={"torch": {"seconds": 0.25, "cpu": 0.5}})
        self.assertEqual(result["context"]["lamina_format"], 2)
        names = ["eigen", "torch", "torch+compiled+hugepages@nhwc"]
        self.assertEqual([(one["variant"], one["engine"], one["layout"]) for one in result["context"]["variants"]],
                         [(names[0], "lamina", "nchw"), (names[1], "torch", "nchw"), (names[2], "torch", "nhwc")])
        rows = {(row["name"], row["variant"]): row for row in result["benchmarks"]}
        self.assertEqual(set(rows), {(f"net/vgg16/{part}/eigen/f32/nchw/batch:16", name) for name in names
                                     for part in ("forward", "backward", "total", "inference")})
        row = rows["net/vgg16/total/eigen/f32/nchw/batch:16", "torch"]
        self.assertEqual((row["real_times"], row["cpu_times"], row["time_unit"]), ([500.0] * 2, [1000.0] * 2, "ms"))
        self.assertEqual(row["key"], {"what": "net", "network": "vgg16", "part": "total", "backend": "eigen",
                                      "type": "f32", "layout": "nchw", "batch": 16})
        self.assertTrue(row["rerun"].startswith("bench/race/race vgg16 --what networks --device cpu --ours eigen "
                                                "--peers torch,torch+compiled+hugepages@nhwc "), row["rerun"])

    def test_the_judge_gets_the_file_the_subjects_and_the_limit_and_its_status_counts(self):
        command = self.command("vgg16", "--ours", "eigen,eigen@nhwc", "--limit", "3%")
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self.tell({"judge": 3}))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.asked()[-1], ["judge", ["compare", "--paired", self.out, "--subject=eigen,eigen@nhwc",
                                                      f"--benchmark_out={self.out}", "--fail-if-slower=3%"]])
        self.assertIn("judged", done.stdout)
        self.assertEqual(self.written()["failures"], [])

    def test_peers_are_checked_before_they_are_timed_on_files_that_are_gone_afterwards(self):
        words = ("--peers", "torch,torch+compiled+frozen,onnxruntime", "--modes", "inference")
        _, result = self.race(*words)
        self.assertEqual({row["variant"]: row.get("check", {}).get("difference") for row in result["benchmarks"]},
                         {"eigen": None, "torch": 1e-6, "torch+compiled+frozen": 1e-6, "onnxruntime": 1e-6})
        for name in ("torch", "torch+compiled+frozen", "onnxruntime"):
            its = [command for who, command, *_ in self.asked() if who == name]
            self.assertLess(its.index("check"), its.index("pass"))
        words = self.started()["writer"][0]
        self.assertLessEqual({"vgg16", "--write_onnx"}, set(words))
        self.assertFalse(os.path.exists(value_of("files", words)))

    def test_other_numbers_than_ours_are_a_failure_and_are_not_timed(self):
        infinite, none = float("inf"), float("nan")
        for mode, cases in (  # by variant: difference, rounding, bound; bound None: the numbers differ too much
                ("inference", {"torch": (9e-5, 0, 1e-4), "torch+compiled": (2e-4, 1.0, None),
                               "torch+passive": (infinite, 0, None), "onnxruntime": (none, 0, None)}),
                ("training", {"torch": (9e-4, 1e-3, 1e-3), "torch+compiled": (1.8e-3, 1e-3, 2e-3),
                              "torch+passive": (1.8e-3, 8e-4, None), "torch+hugepages": (1.8e-3, 1e-6, None),
                              "torch+passive+hugepages": (6e-3, 1.0, None), "torch:bf16": (7e-2, 1.0, 8e-2),
                              "torch:bf16+passive": (0.15, 0.1, 0.2), "torch:bf16+hugepages": (0.5, 1.0, None),
                              "torch:f16": (2e-2, 8e-3, None)})):
            _, result = self.race("--peers", ",".join(cases), "--modes", mode, status=1,
                                  told={name: {"difference": difference, "rounding": rounding}
                                        for name, (difference, rounding, _) in cases.items()})
            for name, (difference, _, bound) in cases.items():
                commands = [command for who, command, *_ in self.asked() if who == name]
                least = 8e-2 if "bf16" in name else 1e-2 if "f16" in name else 1e-3
                self.assertEqual("rounding" in commands, mode == "training" and difference > least, name)
                self.assertEqual("pass" in commands, bound is not None, name)
                bounds = [row["check"]["bound"] for row in result["benchmarks"] if row["variant"] == name]
                self.assertEqual(set(bounds), {bound} if bound else set(), name)
            self.assertEqual([one["variant"] for one in result["failures"]],
                             [name for name, (*_, bound) in cases.items() if bound is None])

    def test_who_fails_is_named_with_the_reason_and_the_others_keep_their_rounds(self):
        failures = {"torch+compiled": ("die:greeting", "start", "status 3"),
                    "torch+passive": ("die:open", "open training", "status 3"),
                    "torch+hugepages": ("babble:open", "open training", "'compiling ...', which is not JSON"),
                    "torch+compiled+passive": ("error:pass:3", "race training", "out of memory"),
                    "eigen+measured": ("error:pass:2", "race training", "out of memory")}
        refusals = {"torch+compiled": ("refuse:greeting", "start", "no such thing here"),
                    "torch+passive": ("refuse:open", "open training", "no such thing here")}
        for faults in (failures, refusals):
            peers = [name for name in faults if name.startswith("torch")]
            done, result = self.race("--rounds", "4", "--peers", ",".join(("torch", *peers)), "--ours",
                                     "eigen,eigen+measured", status=int(faults is failures),
                                     told={name: {"fault": fault} for name, (fault, *_) in faults.items()})
            found = {one["variant"]: one for one in result["failures"]}
            self.assertEqual(set(found), set(faults))
            for name, (_, stage, text) in faults.items():
                self.assertEqual((found[name]["stage"], found[name]["refused"]), (stage, faults is refusals))
                self.assertIn(text, found[name]["reason"])
                self.assertIn(text, done.stdout)
            self.assertEqual({(row["variant"], len(row["real_times"])) for row in result["benchmarks"]},
                             {(name, 4) for name in {"torch", "eigen", "eigen+measured"} - set(faults)})
        done, _ = self.race("--patience", "0.001", status=1)
        self.assertIn("gave no answer for 0.001 s", done.stdout)

    def test_where_nothing_can_be_compared_the_status_says_so(self):
        done, result = self.race("--peers", "torch", status=1, told={"torch": {"fault": "die:greeting"}})
        self.assertIn("nothing could be compared", done.stderr)
        self.assertTrue(result["benchmarks"])  # our rows are kept
        self.assertNotIn("judge", [name for name, *_ in self.asked()])

    def test_a_network_that_lamina_cannot_read_is_a_failure_and_the_others_are_raced_and_judged(self):
        done, result = self.race("vgg19", "vgg16", status=1,
                                 told={"writer": {"fault": "refuse:greeting", "only": "vgg19"}})
        self.assertIn("vgg19: lamina FAILED (start): no such thing here", done.stdout)
        self.assertRegex(done.stderr, "(?s)\nvgg16: eigen: open training\n.*\nvgg16: round 2 of 2, training\n")
        self.assertEqual({row["key"]["network"] for row in result["benchmarks"]}, {"vgg16"})
        self.assertEqual(self.asked()[-1][0], "judge")

    def test_settings_of_the_environment_reach_the_workers_that_they_are_for(self):
        passive, huge = "onnxruntime+passive", "onnxruntime+hugepages"
        self.race("--peers", f"torch,{passive},{huge}", "--modes", "inference")
        started = self.started()
        self.assertEqual({name: (its["OMP_WAIT_POLICY"], its["MALLOC_TOP_PAD_"]) for name, (_, its) in started.items()},
                         {"writer": (None, None), "eigen": (None, None), "torch": (None, None),
                          passive: ("passive", None), huge: (None, "67108864")})
        self.assertEqual(started["torch"][1]["LAMINA_BENCH"], os.path.join(self.folder, "lamina_bench"))

    def test_several_pythons_of_torch_are_variants_by_their_versions(self):
        python = os.path.join(self.folder, "python")
        _, result = self.race("--python", python, "--python", os.path.join(self.folder, "python3"))
        self.assertEqual({row["variant"] for row in result["benchmarks"]},
                         {"eigen", "torch-9.9", "torch-9.9@nhwc", "torch-9.9#2", "torch-9.9#2@nhwc"})

    def test_a_peer_that_is_not_here_is_named_with_what_installs_it(self):
        for words, status in (((), 77), (("--python", "/bin/false"), 1)):
            done, result = self.race("--peers", "openvino", "--modes", "inference", *words, status=status)
            text = "'/bin/false' can import nothing" if words else "--python names an interpreter that has them"
            self.assertIn(text, done.stderr)
            self.assertEqual((result, self.asked()), (None, []))

    def test_memory_is_that_of_a_separate_worker_beside_what_our_plan_holds(self):
        for memory in ("yes", "only"):
            done, result = self.race("--peers", "torch", memory=memory)
            self.assertEqual([name for name, *_ in self.asked("start")].count("torch"), 2)
            if "peaks of memory are not known" in done.stdout:
                self.skipTest(done.stdout)
            for entry in result["memory"]:
                self.assertEqual((entry["net"], entry["mode"], entry.get("plan_MiB")),
                                 ("vgg16", "training", 5.0 if entry["variant"] == "eigen" else None))
            self.assertEqual(bool(result["benchmarks"]), memory == "yes")

    def test_the_file_has_our_commit_and_the_command_without_the_folders_of_this_machine(self):
        _, result = self.race("--benchmark_out=" + self.out)
        self.assertEqual(result["context"]["commit"], "c0.125")
        self.assertNotIn(self.folder, result["context"]["command"])
        words = ["bench/race/race", "--ours", "cudnn=/opt/a/9.19,cuda", "--program=build/x", "--python=/usr/bin/p3",
                 "/", "a/b,/c/d", "resnet18"]
        self.assertEqual(results.command_line(words), "bench/race/race --ours cudnn=9.19,cuda --program=build/x "
                                                      "--python=p3 / a/b,d resnet18")


class OnAGpu(Fakes):
    CUDA = ("--device", "cuda", "--peers", "torch+benchmark,torch:tf32+benchmark@nhwc", "--ours",
            "cuda,cudnn+graph,cudnn:tf32")

    def test_precisions_race_one_after_the_other_and_have_rows_of_their_own(self):
        _, result = self.race(*self.CUDA, memory="yes")
        self.assertEqual(result["context"]["gpu"]["name"], "Fake H200")
        self.assertEqual({(row["key"]["type"], row["variant"]) for row in result["benchmarks"]},
                         {("f32", "cuda"), ("f32", "cudnn+graph"), ("f32", "torch+benchmark"), ("tf32", "cudnn:tf32"),
                          ("tf32", "torch:tf32+benchmark@nhwc")})
        self.assertEqual({row["name"] for row in result["benchmarks"] if row["key"]["part"] == "total"},
                         {"net/vgg16/total/cuda/f32/nchw/batch:16", "net/vgg16/total/cudnn/tf32/nchw/batch:16"})
        self.assertEqual(result["benchmarks"][0]["readings"], [{"sm_mhz": 1980}] * 2)
        self.assertEqual({(one["variant"], one["peak_MiB"]) for one in result["memory"]},
                         {("cuda", 5.0), ("cudnn+graph", 5.0), ("torch+benchmark", 10.0), ("cudnn:tf32", 5.0),
                          ("torch:tf32+benchmark@nhwc", 10.0)})
        self.assertEqual([command for _, command, *_ in self.asked()].count("check"), 2)  # one check of each peer

    def test_a_rehearsal_has_the_workers_of_a_gpu_on_the_processor(self):
        self.race("--device", "rehearsal", "--ours", "cuda-host", "--peers", "torch:tf32,torch+compiled")
        self.assertEqual(json.loads(self.started()["torch:tf32"][0][1])["device"], "cpu")
        self.assertIn("cuda-host", self.started())

    def test_without_a_gpu_one_line_says_so_and_the_status_is_that_of_skipped(self):
        done, result = self.race("--device", "cuda:3", "--ours", "cuda", status=77,
                                 told={"cuda": {"fault": "refuse:greeting"}})
        self.assertRegex(done.stderr, r"\A.*cuda:3.*no such thing here\n\Z")
        self.assertEqual((done.stdout, result), ("", None))

    def test_an_override_of_tf32_is_refused(self):
        done, _ = self.race(*self.CUDA, status=1, environment={"NVIDIA_TF32_OVERRIDE": "0"})
        self.assertRegex(done.stderr, r"\A.*NVIDIA_TF32_OVERRIDE=0.*\n\Z")


class Layers(Fakes):
    def test_equal_convolutions_race_once_and_know_how_often_each_network_has_their_passes(self):
        _, result = self.race("alexnet", "vgg16", "--what", "layers")
        counts = {row["name"].removesuffix("/eigen/f32/nchw/batch:16"): row["counts"] for row in result["benchmarks"]}
        one, two = {"alexnet": 1, "vgg16": 1}, {"alexnet": 2}
        self.assertEqual(counts, {
            "layer/alexnet/conv1/forward": one, "layer/alexnet/conv1/backward_params": one,
            "layer/alexnet/conv1/backward_data": {"vgg16": 1}, "layer/alexnet/conv2/forward": two,
            "layer/alexnet/conv2/backward_params": two, "layer/alexnet/conv2/backward_data": two})
        self.assertEqual({(row["variant"], row["algorithm"]) for row in result["benchmarks"]},
                         {("eigen", "eigen's"), ("onednn@any", "onednn's"), ("onednn@nchw", "onednn's")})
        self.assertEqual(result["failures"], [])  # that oneDNN lacks Winograd here is no failure
        self.assertIn(["onednn", "pass", ["forward", "any", *FIRST.split()]], self.asked("pass"))

    def test_layers_race_within_their_type(self):
        _, result = self.race("alexnet", "--what", "layers", "--ours", "eigen,eigen:bf16", "--peers",
                              "onednn@any,onednn:bf16@any,onednn:bf16@winograd")
        self.assertEqual({(row["key"]["type"], row["variant"]) for row in result["benchmarks"]},
                         {("f32", "eigen"), ("f32", "onednn@any"), ("bf16", "eigen:bf16"), ("bf16", "onednn:bf16@any")})

    def test_a_type_that_a_processor_lacks_is_left_out_with_the_reason(self):
        _, result = self.race("alexnet", "--what", "layers", "--ours", "eigen:bf16", "--peers", "onednn:bf16@any",
                              status=1, told={"onednn:bf16": {"fault": "refuse:open"}})
        self.assertEqual({(one["variant"], one["stage"], one["reason"], one["refused"]) for one in result["failures"]},
                         {("onednn:bf16@any", f"open {what}", "no such thing here", True)
                          for what in runner.LAYER_PASSES})

    def test_a_network_without_convolutions_ends_the_race(self):
        done, result = self.race("mnist_mlp", "--what", "layers", status=1)
        self.assertIn("mnist_mlp has no convolutions", done.stdout)
        self.assertEqual(result["benchmarks"], [])


class Trainings(Fakes):
    def test_all_train_the_batches_that_lamina_wrote_and_no_epoch_is_run_again(self):
        _, result = self.race("mnist_mlp", "lstm_text", "--what", "trainings", "--share", "0.5", "--retries", "3",
                              "--peers", "torch,torch+compiled+passive")
        started = {name: its[0] for name, its in self.started().items()}  # the start for the last workload
        words = started["writer"]
        self.assertLessEqual({"--training=lstm_text", "--share=0.5", "--epochs=3"}, set(words))
        files, threads = value_of("files", words), int(value_of("threads", words))
        common = {"net": "lstm_text", "files": files, "batch": 32, "threads": threads, "precision": "f32",
                  "device": "cpu"}
        for name, flags in (("torch", []), ("torch+compiled+passive", ["compiled", "passive"])):
            self.assertEqual(json.loads(started[name][1]), common | {"engine": "torch", "flags": flags})
        self.assertFalse(os.path.exists(files))
        for name in ("torch", "eigen"):
            trained = [command for who, command, *_ in self.asked() if who == name and command in ("open", "pass")]
            self.assertEqual(trained, ["open", "pass", "pass"] * 2)  # the first epoch warms up
        row = result["benchmarks"][0]
        self.assertEqual((row["name"], row["loss"], row["samples"], row["label"]),
                         ("train/mnist_mlp/epoch/eigen/f32/nchw/batch:32/synthetic:0.5/no_validation", 0.5, 320,
                          "synthetic nothing"))

    def test_on_a_gpu_each_backend_races(self):
        self.race("mnist_mlp", "--what", "trainings", "--device", "cuda:1")
        started = {name: its[0] for name, its in self.started().items()}
        self.assertEqual([value_of("device", started[name]) for name in ("cuda", "cudnn")], ["1", "1"])
        config = json.loads(started["torch"][1])
        self.assertEqual((config["device"], config["flags"]), ("cuda:1", []))


class Ends(Fakes):
    HANGS = {"torch": {"fault": "hang:open", "only": "vgg19"}}

    def stopped(self, number, *words, group=False, again=(), ready="hanging", environment=()):
        """Sends a signal to a race whose worker hangs, then the signals `again`. Returns its output and status."""
        child = self.begin(self.command("--peers", "torch", "--memory", "no", *words), stdout=subprocess.DEVNULL,
                           env=self.tell(self.HANGS) | dict(environment))
        latest = time.monotonic() + 60
        while ready not in self.text():
            self.assertIsNone(child.poll(), self.text())
            self.assertLess(time.monotonic(), latest)
            time.sleep(0.01)
        (os.killpg if group else os.kill)(child.pid, number)
        for one in again:
            time.sleep(0.001)
            child.send_signal(one)
        child.wait(timeout=40)  # shorter than a worker hangs
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("lamina-race-")], [])
        return self.text().replace(f"{ready}\n", "", 1), child.returncode

    def text(self):
        with open(self.said) as file:
            return file.read()

    def test_what_was_finished_is_kept_and_reported(self):
        for number, group in ((signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, False)):
            with self.subTest(number=number, group=group):
                said, status = self.stopped(number, "vgg16", "vgg19", group=group)
                self.assertEqual((said, status), (
                    f"race: interrupted; what was finished is in {self.out}, which `lamina_bench compare --paired` "
                    "judges\n", 128 + number))
                with open(self.out) as file:
                    self.assertEqual({row["key"]["network"] for row in json.load(file)["benchmarks"]}, {"vgg16"})
                os.remove(self.out)

    def test_further_signals_change_nothing_and_where_nothing_was_finished_nothing_is_written(self):
        for again in ((), (signal.SIGTERM, signal.SIGINT, signal.SIGINT)):
            said, status = self.stopped(signal.SIGINT, "vgg19", again=again)
            self.assertEqual((said, status),
                             (f"race: interrupted; nothing was finished or written to {self.out}\n", 130))
            self.assertFalse(os.path.exists(self.out))

    def test_an_interrupt_while_the_program_is_loaded_ends_it_without_a_word(self):
        os.mkdir(os.path.join(self.folder, "slow"))
        with open(os.path.join(self.folder, "slow/argparse.py"), "w") as file:  # the race imports it
            file.write("import sys, time\nprint('loading', file=sys.stderr, flush=True)\ntime.sleep(60)\n")
        said, status = self.stopped(signal.SIGINT, "vgg16", ready="loading",
                                    environment={"PYTHONPATH": os.path.join(self.folder, "slow")})
        self.assertEqual((said, status), ("", -signal.SIGINT))

    def test_a_file_that_cannot_be_written_is_an_error_before_the_race(self):
        with open(self.out, "w"):
            pass
        self.out += "/below.json"
        done, _ = self.race(status=1)
        self.assertEqual((done.stdout, done.stderr),
                         ("", f"race: cannot write {self.out}: File exists\n"))
        self.assertEqual(self.asked(), [])


if __name__ == "__main__":
    unittest.main()
