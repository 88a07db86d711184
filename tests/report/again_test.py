"""The commands that measure a number again."""

import shlex
import unittest

import made
from page import again, measured, training_command


class Again(unittest.TestCase):
    def command(self, **key):
        timing = measured.Timing(measured.Origin(None, {"threads": "2"}), "", made.key(**key), [1] * 9)
        return timing.command

    def test_a_command_picks_its_row_alone(self):
        self.assertEqual(
            self.command(batch=32),
            "lamina_bench run '--benchmark_filter=^net/resnet50/total/eigen/f32/nchw/batch:32$' "
            "--backend=eigen --batch=32 --threads=2 --passes=9",
        )

    def test_a_row_of_another_program_is_measured_by_the_race_that_it_was_in(self):
        self.assertEqual(
            self.command(backend="torch-2.15.0", batch=32),
            "bench/race/compare --nets resnet50 --modes training --batch=32",
        )
        self.assertEqual(
            self.command(backend="openvino", part="inference"),
            "bench/race/compare --peers openvino --nets resnet50 --modes inference",
        )
        self.assertEqual(
            self.command(backend="onednn", what="layer", layer="c", part="forward"),
            "bench/race/compare --layers --nets resnet50",
        )

    def test_a_variant_of_another_program_is_raced_again(self):
        self.assertEqual(
            self.command(backend="torch-2.15.0", differs={"compiled+hugepages": ""}),
            "bench/race/compare --peers torch+compiled+hugepages --nets resnet50 --modes training",
        )
        key = made.key(backend="torch", differs={"eager+benchmark": ""}) | {"type": "tf32", "layout": "nhwc"}
        self.assertEqual(
            again.row_command(key, 9, {"no_readings": ""}),
            "bench/race/compare --device=cuda --precision=tf32 --torch=eager+benchmark@nhwc --nets resnet50 "
            "--modes training",
        )

    def test_a_network_of_a_file_is_measured_again_from_that_file(self):
        its = made.key(network="my net", differs={})
        for words, file in (
            ("lamina_bench run '--onnx=other.onnx,nets/my net.onnx' --threads=1", "nets/my net.onnx"),
            ("lamina_bench ledger --onnx 'my net.onnx'", "my net.onnx"),
        ):
            context = {"command": words}
            flag = f"--onnx={file}"
            for made_again in (
                again.row_command(its, 9, context),
                again.versions_command("", its, context),
                again.layer_command(its, "conv1", "forward", context),
            ):
                self.assertEqual(shlex.split(made_again).count(flag), 1, made_again)
            for made_again in (
                again.found_command("ledger", its, context),
                again.row_command(its | {"differs": {"algorithm": "winograd"}}, 9, context),
                again.versions_command("", its | {"what": "train", "differs": {"seed": "3"}}, context),
            ):
                self.assertEqual(shlex.split(made_again).count(flag), 1, made_again)
                self.assertNotIn("my net", shlex.split(made_again))
        for words in ("lamina_bench run --onnx=other.onnx", "lamina_bench ledger 'my net'", "lamina_bench --onnx", "'"):
            self.assertNotIn("--onnx", again.row_command(its, 9, {"command": words}))
            self.assertEqual(
                shlex.split(again.found_command("ledger", its, {"command": words}))[:3], ["lamina_bench", "ledger", "my net"]
            )

    def test_how_a_file_is_read_is_in_every_command_of_its_network(self):
        differs = {"onnx_extents": "height=224,width=8", "onnx_output": "logits"}
        its, context = made.key(network="net", differs=differs), {"command": "lamina_bench run --onnx=net.onnx"}
        training = its | {"what": "train", "part": "epoch", "differs": differs | {"synthetic": "1"}}
        said = {"epochs": [{}], "onnx": "net.onnx", "is_network": True}
        for command in (
            again.row_command(its, 9, context),
            again.layer_command(its, "conv1", "forward", context),
            again.found_command("ledger", its, context),
            again.versions_command("", training, context),
            training_command.of(measured.Found(measured.Origin(None, context), said, training)),
        ):
            for flag in ("--onnx=net.onnx", "--onnx_extents=height=224,width=8", "--onnx_output=logits"):
                self.assertEqual(shlex.split(command).count(flag), 1, command)

    def test_a_row_of_two_versions_has_a_command_that_there_is(self):
        def command(**key):
            return again.versions_command("", made.key(**key), {})

        self.assertEqual(command(backend="torch-2.15.0"), "bench/race/compare --nets resnet50 --modes training")
        train = {"part": "epoch", "network": "mnist_mlp", "what": "train", "batch": 128}
        race = "bench/race/compare --trainings=mnist_mlp --share=0.1"
        raced = {"synthetic": "0.1", "no_validation": ""}
        for backend in ("eigen", "torch-compiled"):
            self.assertEqual(command(**train, backend=backend, differs=raced), race)
        words = command(**train, differs={"synthetic": "0.1"}).split()
        self.assertEqual(words[:2], ["bench/race/versions", "--programs=BEFORE,AFTER"])
        self.assertLessEqual({"--share=0.1", "--backend=eigen"}, set(words))
        self.assertNotIn("--synthetic=0.1", words)
        self.assertIn("--data=DIR", command(**train).split())
        self.assertEqual(
            command(**train, differs={"synthetic": "0.1", "seed": "3"}),
            "lamina_bench train mnist_mlp --backend=eigen --share=0.1 --seed=3",
        )

    def test_a_training_of_a_network_has_its_batch_in_the_command_of_two_versions(self):
        for batch in (16, 32, 64):  # that of `run`, that of `train`, and another
            its = made.key("epoch", "resnet18", "train", batch=batch)
            of = lambda network, **differs: again.versions_command(
                "", its | {"network": network, "differs": differs}, {"command": "lamina_bench train --onnx=nets/mnist_mlp.onnx"}
            )
            self.assertEqual(
                of("resnet18", optimiser="sgd"),
                f"lamina_bench train resnet18 --batch={batch} --backend=eigen --optimiser=sgd --data=DIR",
            )
            self.assertEqual(of("resnet18"), f"lamina_bench train resnet18 --batch={batch} --backend=eigen --data=DIR")
            self.assertEqual(
                of("mnist_mlp", synthetic="1"),  # a file that is called as a workload
                f"lamina_bench train --batch={batch} --onnx=nets/mnist_mlp.onnx --backend=eigen --share=1",
            )
            self.assertNotIn("--batch", of("mnist_cnn", seed="3"))

    def test_what_differs_becomes_flags(self):
        command = self.command(differs={"image": "64", "graph": "", "softmax": "0", "threads": "4"})
        for flag in ("--image=64", "--cuda_graph", "--no_softmax", "--threads=4"):
            self.assertIn(flag, command)
        self.assertNotIn("threads:4", command)

    def test_a_sweep_of_an_algorithm_is_of_the_same_point(self):
        differs = {"image": "64", "algorithm": "winograd"}
        words = self.command(backend="cuda", type="f64", layout="nhwc", differs=differs).split()
        self.assertEqual(words[:3], ["lamina_bench", "sweep", "resnet50"])
        for flag in (
            "--algorithms=winograd",
            "--backend=cuda",
            "--dtype=f64",
            "--layout=nhwc",
            "--image=64",
            "--batch=16",
            "--passes=9",
            "--threads=2",
            "--thread_counts=2",
        ):
            self.assertEqual(words.count(flag), 1, flag)
        self.assertNotIn("--algorithm=winograd", words)
        words = self.command(part="inference", batch=4, differs={"algorithm": "winograd", "threads": "1"}).split()
        for flag in ("--inference", "--batch=4", "--thread_counts=1"):
            self.assertEqual(words.count(flag), 1, flag)

    def test_limits_of_a_frontier_are_no_flags_of_a_layer(self):
        key = made.key(differs={"max_measured_error": "1e-07", "image": "64"})
        words = again.layer_command(key, "conv1", "forward", {}).split()
        self.assertIn("--image=64", words)
        self.assertNotIn("max_measured_error", " ".join(words))
        self.assertIn("--max_measured_error=1e-07", again.found_command("frontier", key, {}).split())

    def test_a_training_is_of_the_same_type_tables_and_batch(self):
        its = made.training("net", [{"seconds": 1}])[0]["key"]
        its |= {"type": "f64", "differs": {"table_updates": "lazy", "seed": "3"}}
        origin = measured.Origin(None, {})
        of = lambda **more: training_command.of(measured.Found(origin, {"epochs": [{}], **more}, its)).split()
        self.assertLessEqual({"--dtype=f64", "--table_updates=lazy", "--seed=3"}, set(of()))
        self.assertNotIn("--batch=128", of())  # a workload has its published one
        self.assertIn("--batch=128", of(is_network=True))

    def test_a_training_with_settings_of_run_alone_is_a_row_of_run(self):
        origin, plain = measured.Origin(None, {"threads": "2"}), made.training("mnist_cnn", [{"seconds": 1}], "0.1")[0]["key"]
        of = lambda **more: training_command.of(measured.Found(origin, {"epochs": [{}] * 4}, plain | more))
        self.assertTrue(of().startswith("lamina_bench train mnist_cnn "))
        for flag, more in (
            ("--layout=nhwc", {"layout": "nhwc"}),
            ("--math=tf32", {"type": "tf32"}),
            ("--unfused", {"differs": {"unfused": "", "synthetic": "0.1"}}),
            ("--width_divisor=8", {"differs": {"width_divisor": "8", "synthetic": "0.1"}}),
        ):
            words = shlex.split(of(**more))
            self.assertEqual(words[:2], ["lamina_bench", "run"])
            self.assertEqual(words[2], again.filter_of(plain | more))
            self.assertLessEqual({flag, "--batch=128", "--share=0.1", "--threads=2", "--passes=4"}, set(words))
        self.assertIn("--data=DIR", of(differs={"recompute": ""}).split())

    def test_a_training_of_another_program_is_a_race(self):
        its = made.training("mnist_mlp", [{"seconds": 1}], "0.5")[0]["key"] | {"backend": "keras"}
        command = training_command.of(measured.Found(measured.Origin(None, {}), {"epochs": [{}]}, its))
        self.assertEqual(command, "bench/race/compare --trainings=mnist_mlp --share=0.5")
        its |= {"backend": "eigen", "differs": {"synthetic": "0.5", "no_validation": ""}}  # ours beside it
        ours = training_command.of(measured.Found(measured.Origin(None, {}), {"epochs": [{}]}, its))
        self.assertEqual(ours, command)

    def test_a_name_with_signs_of_expressions_and_shells_is_quoted(self):
        command = self.command(network="a.b+c'; rm -rf $HOME")
        self.assertIn(r"a\.b\+c", command)
        self.assertEqual(
            shlex.split(command)[2], r"--benchmark_filter=^net/a\.b\+c'; rm -rf \$HOME/total/eigen/f32/nchw/batch:16$"
        )


class Together(unittest.TestCase):
    def test_networks_of_one_command_are_joined_and_others_are_lines(self):
        found = [(net, f"lamina_bench sweep {net} --batch=1,2") for net in ("vgg16", "alexnet", "vgg16")]
        found += [("a b", "lamina_bench sweep 'a b' --batch=4"), ("vgg16", "lamina_bench run '--benchmark_filter=^a b$'")]
        self.assertEqual(
            again.together(found).split("\n"),
            [
                "lamina_bench sweep vgg16,alexnet --batch=1,2",
                "lamina_bench sweep 'a b' --batch=4",
                "lamina_bench run '--benchmark_filter=^a b$'",
            ],
        )

    def test_commands_of_one_sentence_write_files_of_their_own(self):
        found = [("", f"sweep --passes={count} --benchmark_out=sweep.json") for count in (6, 9, 6, 12)]
        outs = [line.split("=")[-1] for line in again.together(found).split("\n")]
        self.assertEqual(outs, ["sweep.json", "sweep_2.json", "sweep_3.json"])

    def test_a_network_with_the_name_of_a_subcommand_stays_alone(self):
        found = [("sweep", "lamina_bench sweep sweep --batch=1"), ("vgg16", "lamina_bench sweep vgg16 --batch=1")]
        self.assertEqual(len(again.together(found).split("\n")), 2)

    def test_a_text_of_several_lines_is_that_many_commands(self):
        text = "compare --nets vgg16 --batch=1\n\ncompare --nets vgg16 --batch=2"
        self.assertEqual(
            again.together([("vgg16", text), ("alexnet", text.replace("vgg16", "alexnet"))]).split("\n"),
            ["compare --nets vgg16,alexnet --batch=1", "compare --nets vgg16,alexnet --batch=2"],
        )
        quoted = "lamina_bench run '--benchmark_filter=^a\nb # c$' '' \\#"
        self.assertEqual(again.together([("", quoted)]), again.line(*shlex.split(quoted)))


if __name__ == "__main__":
    unittest.main()
