"""A race on a GPU, rehearsed with children that compute nothing: who is compared with whom, who is left out, and what
the file has."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bench/race"))
import contenders
import pythons
from contenders import Contender

COMPARE = os.path.join(HERE, "../../bench/race/compare")
FAKE = f"exec {sys.executable} {HERE}/fake_worker.py"

# Ours takes 0.1 s a pass, and 0.05 s in tf32; the backend `cuda` refuses tf32, and no backend replays but in `cudnn`.
OURS = f"""#!/bin/sh
case "$*" in
  *'"cuda"'*tf32*) {FAKE} 0.1 unable-open;;
  *'"cuda"'*'"graph": true'*) {FAKE} 0.1 die-open;;
  *tf32*) {FAKE} 0.05 ours;;
  *) {FAKE} 0.1 ours;;
esac
"""
# PyTorch's fastest in f32 is compiled (0.2 s), in tf32 eager+benchmark (0.04 s); of the rest each fails in its own way.
THEIRS = f"""#!/bin/sh
case "$*" in
  -c*) exit 0;;
  *max-autotune*) exit 3;;
  *"eager+graph "*) {FAKE} 0.01 fail-late;;
  *"compiled+graph "*) {FAKE} 0.01 hang-open;;
  *"eager+benchmark+graph "*) {FAKE} 0.01 babble;;
  *"compiled "*tf32*) {FAKE} 0.4;;
  *"compiled "*) {FAKE} 0.2;;
  *"benchmark "*tf32*) {FAKE} 0.04;;
  *) {FAKE} 0.3;;
esac
"""


class Rehearsal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.out = folder.name, os.path.join(folder.name, "out.json")
        for name, text in (("lamina_bench", OURS), ("python", THEIRS)):
            path = os.path.join(self.folder, name)
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o755)

    def compare(self, *words, status=0, device="rehearsal", environment=()):
        done = subprocess.run([sys.executable, "-B", COMPARE, "--device", device, "--program",
                               os.path.join(self.folder, "lamina_bench"), "--python",
                               os.path.join(self.folder, "python"), "--nets", "vgg16", "--samples", "2", "--retries",
                               "0", "--backends", "cuda,cudnn", "--out", self.out, *words], capture_output=True,
                              text=True, check=False, timeout=120, env=os.environ | dict(environment))
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def written(self):
        with open(self.out) as file:
            return json.load(file)

    def test_each_of_ours_is_compared_with_the_fastest_of_its_precision(self):
        done = self.compare("--torch", "eager,eager+benchmark,compiled@nhwc", "--ours", "plain")
        lines = {(line["lamina"], line["pass"]): line for line in self.written()["comparison"]}
        self.assertEqual(sorted({name for name, _ in lines}),
                         ["lamina/cuda/strict/plain", "lamina/cudnn/strict/plain", "lamina/cudnn/tf32/plain"])
        for backend in ("cuda", "cudnn"):
            line = lines[f"lamina/{backend}/strict/plain", "total"]
            self.assertEqual((line["precision"], line["peer_variant"], line["peer_layout"], line["ratio"]),
                             ("f32", "compiled", "nhwc", 0.5))
        line = lines["lamina/cudnn/tf32/plain", "total"]
        self.assertEqual((line["precision"], line["peer_variant"]), ("tf32", "eager+benchmark"))
        self.assertAlmostEqual(line["ratio"], 1.25)
        self.assertIn("torch/tf32/eager+benchmark nchw", done.stdout)
        self.assertEqual({(line["lamina"], line["ratio"]) for line in self.written()["memory"]},
                         {("lamina/cuda/strict/plain", 0.5), ("lamina/cudnn/strict/plain", 0.5),
                          ("lamina/cudnn/tf32/plain", 0.5)})

    def test_rows_are_named_as_lamina_bench_has_them_and_say_their_variant(self):
        self.compare("--torch", "eager+benchmark@nhwc", "--backends", "cudnn:/some/where", "--ours",
                     "graph,measured+graph", "--modes", "training,inference")
        rows = self.written()["benchmarks"]
        names = {row["name"]: row for row in rows}
        self.assertLessEqual({"net/vgg16/total/cudnn/f32/nchw/batch:16/graph",
                              "net/vgg16/total/cudnn/tf32/nchw/batch:16/graph/measured",
                              "net/vgg16/inference/torch/tf32/nhwc/batch:16/eager+benchmark"}, set(names))
        row = names["net/vgg16/inference/torch/tf32/nhwc/batch:16/eager+benchmark"]
        self.assertEqual((row["device"], row["variant"], row["precision"], row["launches"]),
                         ("rehearsal", "eager+benchmark", "tf32", "included"))
        self.assertEqual(names["net/vgg16/total/cudnn/f32/nchw/batch:16/graph"]["launches"], "replayed")

    def test_a_variant_that_fails_is_a_line_with_its_reason_and_ends_nothing(self):
        torch = "eager,eager+graph,eager+benchmark+graph,compiled+graph,max-autotune"
        done = self.compare("--torch", torch, "--layouts", "nchw", "--precision", "f32", "--samples", "4", "--patience",
                            "3")
        for (name, stage, named), one in zip((
                ("torch/f32/max-autotune", "start", "status 3"),
                ("lamina/cuda/strict/graph", "open training", "status 3"),
                ("torch/f32/eager+benchmark+graph", "open training", "'compiling ...'"),
                ("torch/f32/compiled+graph", "open training", "3 s"),
                ("torch/f32/eager+graph", "race training", "'nhwc'")), self.written()["failures"], strict=True):
            self.assertEqual((name, stage), (one["name"], one["stage"]))
            self.assertIn(named, one["reason"])
        self.assertEqual(done.stdout.count("FAILED: "), 5)
        lines = self.written()["comparison"]
        self.assertEqual({line["peer_variant"] for line in lines}, {"eager"})  # not the faster one that failed late
        self.assertEqual({line["samples"] for line in lines}, {4})

    def test_what_a_backend_cannot_do_is_no_fault(self):
        done = self.compare("--torch", "eager", "--precision", "tf32")
        self.assertEqual({(line["name"], line["refused"]) for line in self.written()["failures"]},
                         {("lamina/cuda/tf32/plain", True), ("lamina/cuda/tf32/graph", True)})
        self.assertEqual((done.stdout.count("left out: "), done.stdout.count("FAILED: ")), (2, 0))

    def test_a_precision_that_lamina_lacks_has_rows_of_pytorch_and_a_line(self):
        self.compare("--torch", "eager", "--precision", "bf16")
        written = self.written()
        self.assertEqual(written["comparison"], [])
        self.assertEqual({row["precision"] for row in written["benchmarks"]}, {"bf16"})
        self.assertIn("bf16", written["failures"][0]["reason"])
        self.assertEqual(len(written["failures"]), 1)

    def test_what_would_be_compiled_after_the_budget_is_left_out(self):
        self.compare("--torch", "eager,compiled", "--precision", "f32", "--compile_seconds", "0")
        theirs = [line for line in self.written()["failures"] if not line["ours"]]
        self.assertEqual([line["name"] for line in theirs], ["torch/f32/compiled"] * 2)
        self.assertIn("--compile_seconds", theirs[0]["reason"])

    def test_where_no_ratio_can_be_made_the_status_says_so(self):
        done = self.compare("--torch", "max-autotune", "--precision", "f32", status=1)
        self.assertIn("no ratio", done.stderr)
        self.assertTrue(self.written()["benchmarks"])  # ours are kept all the same

    def test_an_override_of_tf32_is_refused(self):
        done = self.compare(status=1, environment={"NVIDIA_TF32_OVERRIDE": "0"})
        self.assertRegex(done.stderr, r"\A.*NVIDIA_TF32_OVERRIDE=0.*\n\Z")

    def test_without_a_gpu_one_line_says_so_and_the_status_is_that_of_skipped(self):
        with open(os.path.join(self.folder, "lamina_bench"), "w") as file:
            file.write("#!/bin/sh\necho '{\"error\": \"no driver\", \"refused\": true}'\n")
        done = self.compare(device="cuda:3", status=pythons.SKIPPED)
        self.assertRegex(done.stderr, r"\A.*cuda:3.*no driver\n\Z")
        self.assertEqual(done.stdout, "")

    def test_readings_of_the_gpu_are_in_the_rows_of_both_sides(self):
        self.compare("--torch", "eager", "--precision", "f32", "--backends", "cudnn", device="cuda")
        written = self.written()
        self.assertEqual(written["context"]["gpu"]["name"], "Fake H200")
        self.assertEqual({(row["device"], row["sm_mhz"], row["throttled"]) for row in written["benchmarks"]},
                         {("Fake H200", 1980, "power cap")})


class Contenders(unittest.TestCase):
    def test_sides_backends_precisions_and_variants_have_different_names(self):
        self.assertEqual(Contender("lamina", "cuda", "graph", "f32", "nchw").name, "lamina/cuda/strict/graph")
        self.assertEqual(Contender("torch", "torch", "eager+benchmark", "tf32", "nhwc").name,
                         "torch/tf32/eager+benchmark")

    def test_our_child_gets_backend_math_and_variant(self):
        self.assertEqual(Contender("lamina", "cudnn", "measured+graph", "tf32", "nchw", "cudnn:/x").config(),
                         {"backend": "cudnn:/x", "math": "tf32", "measure": True, "graph": True})
        self.assertEqual(Contender("lamina", "cuda", "plain", "f32", "nchw", "cuda").config(),
                         {"backend": "cuda", "math": "strict", "measure": False, "graph": False})

    def test_two_directories_of_cudnn_keep_their_names(self):
        arguments = type("Arguments", (), {"backends": "cuda,cudnn:/a,cudnn:/b", "ours": "plain", "our_layouts": "nchw"})
        self.assertEqual([one.name for one in contenders.ours(arguments, "f32")[0]],
                         ["lamina/cuda/strict/plain", "lamina/cudnn:/a/strict/plain", "lamina/cudnn:/b/strict/plain"])

    def test_a_layout_after_a_variant_leaves_out_the_other(self):
        arguments = type("Arguments", (), {"torch": "eager,compiled@nhwc,eager@nchw", "layouts": "nchw,nhwc"})
        self.assertEqual([(one.variant, one.layout) for one in contenders.theirs(arguments, "f32", "torch")],
                         [("eager", "nchw"), ("eager", "nhwc"), ("compiled", "nhwc")])


if __name__ == "__main__":
    unittest.main()
