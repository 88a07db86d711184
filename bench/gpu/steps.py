"""The steps of run-all, a row for each, the most valuable first. The times are estimates, not measured on a GPU."""

import dataclasses
import os
import re
import shlex
from typing import Tuple

ROWS = "rows.json"  # what a step measured, in the folder where it runs
SUITE_GRACE = 15    # seconds that a suite may take beyond its estimate


def files(names):
    """The pattern of all test cases in some files. `names`: names of the files without _test.cpp."""
    return "'" + ",".join(f"[#{name}_test]" for name in names.split()) + "'"


SMOKE = "'[#relu_test],conv\\, by hand*,fully connected*'"
CONV = files("conv conv_transpose")
OPS = files("activation batch_norm binary dropout embedding fully_connected goldens join losses lrn moves norms "
            "pointwise pool prelu random recurrent reduce relu resize scale_shift softmax")
PLANS = files("call_cost choices enumerators fixed half labels large live_memory measured ownership pack plan prepared "
              "random_graph shared tiny_nets")
TRAINING = files("checkpoint lazy loss_scale optimiser share trainer uploads workloads")
NETWORKS = "'every network agrees*'"
NETS = "alexnet|inception_v1|resnet101|resnet152|resnet18|resnet200|resnet34|resnet50|vgg16|vgg19"

# The beginnings of commands.
ON_CUDA = "env LAMINA_TEST_BACKEND=cuda {libraries} {suite} {tests} "
ON_CUDNN = "env LAMINA_TEST_BACKEND=cudnn:{cudnn} {libraries} {suite} {tests} "
ON_GRAPH = "env LAMINA_TEST_BACKEND=cudnn-graph:{cudnn} {libraries} {suite} {tests} "
RACE = ("{torch} -B {root}/race/race --device cuda --program {root}/bin/lamina_bench.sh --python {torch} --retries 1 "
        f"--memory no --patience 60 --benchmark_out {ROWS} ")
BENCH = "{libraries} {root}/bin/lamina_bench "
PASSES = BENCH + f"run --batch=16 --benchmark_filter='^net/({NETS})/' --benchmark_out={ROWS} "
LAYERS = BENCH + f"run --batch=16 --benchmark_filter=^layer/resnet50/ --benchmark_out={ROWS} "
LEDGER = BENCH + f"ledger resnet50 --batch=16 --benchmark_out={ROWS} "
CUDA, CUDNN = "--backend=cuda", "--backend=cudnn --cudnn={cudnn}"
GRAPH = "--backend=cudnn-graph --cudnn={cudnn} --plans={root}/plans"
SANITIZER = "env LAMINA_TEST_BACKEND=cuda {libraries} {compute-sanitizer} --error-exitcode 9 --tool "

# A row: name, lane, seconds, needs, command. Steps of one lane run one after another, and lanes run beside each other;
# the lane "" is for a step that is timed and so runs alone. Needs: tools, libraries, and the step that must pass first.
# The reasons for the seconds:
# - suites: their time on one core of a CPU (10 to 30 s, kernels emulated); their reference runs on the processor.
# - a race: 8 s until PyTorch has started, once for all variants; cudnn.benchmark 10 s a layout; 0.1 s a pass.
# - PyTorch's import: 1.5 GB, which run-all reads ahead. From a cold disk the import took up to 60 s.
# - passes: ten networks; 1 s for 340 million random parameters of VGG and AlexNet; loading kernels; 12 passes.
# - ledgers: one network's kernels, 40 calls of 10 repetitions. A sanitizer: 8 times the suite. ncu: 0.2 s a launch.
STEPS = (
    ("the card by its driver", "", 2, ("nvidia-smi",), "{nvidia-smi} -q"),
    ("device and cuBLAS", "", 8, ("gpu",), ON_CUDA + files("cuda_device cublas_numbers")),  # alone: it times work

    ("smoke test, cuda", "cuda", 8, (), ON_CUDA + SMOKE),
    ("tiles of every size, cuda", "cuda", 10, ("smoke test, cuda",), ON_CUDA + "'[cuda]'"),
    ("convolution, cuda", "cuda", 10, ("smoke test, cuda",), ON_CUDA + CONV),
    ("other ops, cuda", "cuda", 20, ("smoke test, cuda",), ON_CUDA + OPS),

    ("cuDNN itself", "cudnn", 5, ("gpu", "cudnn"), "env LAMINA_TEST_CUDNN={cudnn} " + ON_CUDNN + files("installed")),
    ("smoke test, cudnn", "cudnn", 8, ("cudnn", "cuDNN itself"), ON_CUDNN + SMOKE),
    ("convolution, cudnn", "cudnn", 12, ("cudnn", "smoke test, cudnn"), ON_CUDNN + CONV),
    ("other ops, cudnn", "cudnn", 20, ("cudnn", "smoke test, cudnn"), ON_CUDNN + OPS),
    ("plans, cudnn", "cudnn", 12, ("cudnn", "smoke test, cudnn"), ON_CUDNN + PLANS),
    ("training, cudnn", "cudnn", 18, ("cudnn", "smoke test, cudnn"), ON_CUDNN + TRAINING),

    ("plans, cuda", "plans", 18, (), ON_CUDA + PLANS),
    ("training, cuda", "plans", 25, ("smoke test, cuda",), ON_CUDA + TRAINING),
    ("networks against eigen, cuda", "plans", 15, ("smoke test, cuda",), ON_CUDA + NETWORKS),
    ("networks against eigen, cudnn", "plans", 15, ("cudnn", "smoke test, cudnn"), ON_CUDNN + NETWORKS),

    ("each carried plan, yes or no", "cuda", 7, ("cudnn", "cuDNN itself"),
     "env LAMINA_TEST_PLANS={root}/plans LAMINA_TEST_CUDNN={cudnn} " + ON_CUDNN + files("carried_plans")),
    ("carried plans load and run, cudnn-graph", "cuda", 20, ("cudnn", "smoke test, cudnn"),
     BENCH + f"run --benchmark_filter=^net/resnet50/ --passes=1 --batch=16 --benchmark_out={ROWS} --dtype=bf16 "
             f"--layout=nhwc {GRAPH}"),

    ("PyTorch's import and numbers, resnet50", "torch", 55, ("torch",),
     RACE + "resnet50 --modes inference --rounds 2 --ours cuda --peers torch --patience 100"),
    ("memcheck of the smoke test", "torch", 20, ("gpu", "compute-sanitizer", "smoke test, cuda"),
     SANITIZER + "memcheck {tests} -# " + SMOKE),

    ("resnet50 beside PyTorch, f32 and TF32", "", 65, ("torch", "cudnn"),
     RACE + "resnet50 --modes training,inference --rounds 6 --ours cuda,cuda+graph,cudnn={cudnn},"
            "cudnn:tf32+graph={cudnn} --peers torch+benchmark,torch:tf32+benchmark@nhwc"),
    ("resnet50 beside PyTorch, bf16", "", 55, ("torch", "cudnn"),
     RACE + "resnet50 --modes training,inference --rounds 6 --plans {root}/plans --ours "
            "cuda:bf16,cudnn:bf16@nhwc={cudnn},cudnn:bf16+graph@nhwc={cudnn},cudnn-graph:bf16@nhwc={cudnn},"
            "cudnn-graph:bf16+graph@nhwc={cudnn} --peers torch:bf16+benchmark@nhwc"),
    ("passes, cudnn bf16 nhwc", "", 30, ("cudnn", "smoke test, cudnn"), PASSES + CUDNN + " --dtype=bf16 --layout=nhwc"),
    ("passes, cuda f32", "", 30, ("smoke test, cuda",), PASSES + CUDA),
    ("passes, cudnn f32", "", 30, ("cudnn", "smoke test, cudnn"), PASSES + CUDNN),
    ("passes, cudnn TF32", "", 30, ("cudnn", "smoke test, cudnn"), PASSES + CUDNN + " --math=tf32"),
    ("alexnet and vgg16 beside PyTorch", "", 40, ("torch", "cudnn"),
     RACE + "alexnet vgg16 --rounds 6 --ours cudnn:tf32+graph={cudnn},cudnn:bf16+graph@nhwc={cudnn} "
            "--peers torch:tf32+benchmark@nhwc,torch:bf16+benchmark@nhwc"),
    ("ledger of resnet50, cuda", "", 6, ("smoke test, cuda",), LEDGER + CUDA),
    ("ledger of resnet50, cudnn", "", 6, ("cudnn", "smoke test, cudnn"), LEDGER + CUDNN),
    ("kernels of resnet50 by Nsight Compute", "", 25, ("gpu", "ncu"),
     "{libraries} {ncu} --print-summary per-kernel --kill yes --clock-control none --launch-count 100 "
     "--section SpeedOfLight --section LaunchStats --section Occupancy --section WarpStateStats {root}/bin/lamina_bench "
     f"run --batch=16 --benchmark_filter=^net/resnet50/total --passes=1 {CUDA}"),
)
# Steps for a second call and later calls.
LATER = (
    ("convolution and pools, cudnn-graph", "", 90, ("cudnn", "smoke test, cudnn"),
     ON_GRAPH + files("conv pool batch_norm")),
    ("racecheck of convolutions", "", 80, ("gpu", "compute-sanitizer", "smoke test, cuda"),
     SANITIZER + "racecheck {tests} -# " + CONV),
    ("inception_v1 and resnet18 beside PyTorch", "", 60, ("torch", "cudnn"),
     RACE + "inception_v1 resnet18 --rounds 6 --ours cuda,cudnn={cudnn},cudnn:tf32+graph={cudnn} "
            "--peers torch+benchmark,torch:tf32+benchmark@nhwc"),
    ("layers of resnet50, cuda", "", 40, ("smoke test, cuda",), LAYERS + CUDA),
    ("layers of resnet50, cudnn", "", 40, ("cudnn", "smoke test, cudnn"), LAYERS + CUDNN),
    ("resnet50 beside PyTorch, compiled", "", 100, ("torch", "cudnn"),
     RACE + "resnet50 --rounds 6 --ours cudnn:tf32+graph={cudnn},cudnn:bf16+graph@nhwc={cudnn} "
            "--peers torch:tf32+compiled+benchmark@nhwc,torch:bf16+compiled+benchmark@nhwc"),
    ("trainings beside PyTorch", "", 120, ("torch", "cudnn"),
     RACE + "--what trainings --share 0.0512 --ours cuda,cudnn={cudnn} --peers torch"),
)
# The substitutions in a rehearsal: cuda-host for cuda, eigen for cudnn, small networks and few cases.
REHEARSED = (
    (r"(tests\}) '.*'$", rf"\1 {SMOKE}".replace("\\,", "\\\\,")),
    (r"(alexnet|inception_v1|resnet\d+|vgg\d+)(.(alexnet|inception|resnet|vgg)\w*)*", "mnist_cnn"),
    ("--what trainings", "mnist_cnn --what trainings"),
    (r"--ours \S+", "--ours cuda-host"), (r"--peers \S+", "--peers torch"), ("--rounds 6", "--rounds 2"),
    ("--share 0.0512", "--share 0.0043"), ("--device cuda", "--device rehearsal --batch 2 --threads 1"),
    (re.escape(GRAPH), "--backend=eigen"), (re.escape(CUDNN), "--backend=eigen"),
    ("=cudnn(-graph)?:.cudnn.", "=eigen"), (r"=cuda\b", "=cuda-host"),
    (" (--math=tf32|--layout=nhwc)", ""), ("(--passes=1 )?--batch=16", "--batch=2 --passes=2 --threads=1"))


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    lane: str
    seconds: int
    needs: Tuple[str, ...]
    command: Tuple[str, ...]

    def file(self):
        """The name of the step's files, without the ending."""
        return self.name.replace(" ", "_").replace(",", "")

    def limit(self):
        """Seconds after which the step is ended. A suite stops earlier, so it has time to name the failing cases."""
        return self.seconds + SUITE_GRACE + 35


def every(root, machine, rehearse):
    """All steps for a pack's folder and a machine."""
    quoted = {"root": root, "torch": machine.torch or "python3", "cudnn": machine.cudnn, **machine.tools,
              "tests": os.path.join(root, "bin/gpu_tests")}
    known = {name: shlex.quote(text) for name, text in quoted.items()}
    known["libraries"] = "env LD_LIBRARY_PATH=" + shlex.quote(":".join(machine.libraries))

    def command(text, seconds):
        for pattern, instead in REHEARSED if rehearse else ():
            text = re.sub(pattern, instead, text)
        return tuple(shlex.split(text.format_map(
            {**known, "suite": f"python3 -B {known['root']}/suite.py {seconds + SUITE_GRACE}"})))
    return [Step(*facts, command(text, facts[2])) for *facts, text in STEPS + LATER]
