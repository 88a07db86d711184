"""The steps in the order of their value: what is run, what it needs, and how long it takes. No estimate was measured on
a device. Those of suites are their times on one core, on cuda-host with the kernels emulated, and of plans on eigen.
Those of races are of PyTorch's start and of cudnn.benchmark: the passes take seconds."""

import dataclasses
import itertools
import os
from typing import Tuple

NETS = ("resnet50", "alexnet", "vgg16", "inception_v1", "vgg19", "resnet18", "resnet34", "resnet101", "resnet152",
        "resnet200")
TRAININGS = ("mnist_mlp", "mnist_cnn", "cifar10_cnn", "imdb_fasttext", "imdb_bilstm", "lstm_text")
WORK = "@work@"  # in a command: the step's own empty folder
REPORT = f"{WORK}/rows.json"
PATIENCE = "240"  # seconds: PyTorch's first import reads gigabytes from a cold disk
RACES = {  # of passes beside PyTorch: (seconds, ours, peers); a rehearsal has f32 alone
    "f32": (45, ("cuda", "cuda+graph", "cudnn", "cudnn+graph"), ("torch+benchmark",)),
    "TF32": (45, ("cudnn:tf32", "cudnn:tf32+graph"), ("torch:tf32+benchmark", "torch:tf32+benchmark@nhwc")),
    "bf16": (45, ("cuda:bf16", "cudnn:bf16", "cudnn:bf16@nhwc", "cudnn:bf16+graph@nhwc"),
             ("torch:bf16+benchmark", "torch:bf16+benchmark@nhwc")),
    "compiled": (240, ("cudnn:tf32", "cudnn:tf32+graph"), ("torch:tf32+compiled+benchmark@nhwc",)),
}


def files(names):
    """The pattern of all test cases in files, without their _test.cpp."""
    return ",".join(f"[#{name}_test]" for name in names.split())


SMOKE = files("relu") + ",conv\\, by hand*,fully connected*"
SUITES = (  # (name, pattern of test cases, seconds)
    ("convolution", files("conv"), 10),
    ("other ops", files("batch_norm dropout embedding fully_connected goldens join kernels lrn lstm moves multiply "
                        "pointwise pool random relu scale_shift sigmoid_cross_entropy smooth softmax "
                        "softmax_cross_entropy"), 20),
    ("plans", files("call_cost choices enumerators half labels large live_memory measured ownership pack plan prepared "
                    "random_graph tiny_nets"), 20),
    ("training", files("checkpoint lazy loss_scale optimiser share trainer uploads workloads"), 30),
)
OPS, PLANS = SUITES[:2], SUITES[2:]
CONV_ON_TORCH = ("import torch; print(torch.__version__); x = torch.ones(8, 3, 32, 32, device='cuda'); "
                 "print(torch.nn.functional.conv2d(x, torch.ones(4, 3, 3, 3, device='cuda')).sum().item())")

# A table for each kernel, of a training pass's launches. The clocks are left alone.
NCU = ("--print-summary", "per-kernel", "--clock-control", "none", "--launch-count", "700", "--section", "SpeedOfLight",
       "--section", "LaunchStats", "--section", "Occupancy", "--section", "WarpStateStats")


@dataclasses.dataclass(frozen=True)
class Step:
    """`cases`: it runs test cases, each of which is tried alone where they fail together."""
    name: str
    seconds: int
    command: Tuple[str, ...]
    needs: Tuple[str, ...] = ()
    environment: Tuple[Tuple[str, str], ...] = ()
    cases: bool = False
    limit: int = 0  # seconds; 0: four times the estimate, and at least two minutes

    def time_limit(self):
        return self.limit or max(120, 4 * self.seconds)


class Plan:
    """All steps for a pack's folder and a machine; or those of a rehearsal, which runs the kernels of cuda on the host,
    eigen in the place of cudnn, and small networks."""

    def __init__(self, root, machine, rehearse):
        self.root, self.machine, self.rehearse = root, machine, rehearse
        self.cudnn = next(iter(machine.cudnn), "")
        self.torch = machine.torch or "python3"
        self.nets = ("mnist_cnn",) if rehearse else NETS
        self.bench = ("--batch=2", "--passes=2", "--threads=1") if rehearse else ("--batch=16",)
        # (name, LAMINA_TEST_BACKEND, flags of lamina_bench, needs)
        self.cuda = ("cuda", "cuda-host" if rehearse else "cuda", ("--backend=cuda-host" if rehearse else
                                                                    "--backend=cuda",), ())
        self.library = (("cudnn", "eigen", ("--backend=eigen",), ()) if rehearse else
                        ("cudnn", f"cudnn:{self.cudnn}", ("--backend=cudnn", f"--cudnn={self.cudnn}"), ("cudnn",)))

    def program(self, name):
        return os.path.join(self.root, "bin", name)

    def tests(self, name, pattern, backend, seconds, environment=()):
        _, test_backend, _, needs = backend
        return Step(f"{name}, {backend[0]}", seconds, (self.program("gpu_tests"), "-d", "yes", "-#", pattern), needs,
                    (("LAMINA_TEST_BACKEND", test_backend), *environment), True, 900 if self.rehearse else 300)

    def rows(self, name, pattern, backend, seconds):
        return Step(f"{name}, {backend[0]}", seconds,
                    (self.program("lamina_bench"), "run", *backend[2], *self.bench, f"--benchmark_filter={pattern}",
                     f"--benchmark_out={REPORT}"), backend[3])

    def task(self, name, net, backend, seconds):
        return Step(f"{name} of {net}, {backend[0]}", seconds,
                    (self.program("lamina_bench"), name, net, *backend[2], *self.bench, f"--benchmark_out={REPORT}"),
                    backend[3])

    def race(self, name, seconds, words, ours, peers):
        """A race against PyTorch. `ours`: variants, of which those of cudnn need the folder that was found."""
        if self.rehearse:
            device = ("rehearsal", "--rounds", "2", "--threads", "1", "--batch", "2")
            ours, peers = ["cuda-host"], ["torch"]
        else:
            device = ("cuda",)
            ours = [word + ("=" + self.cudnn if word.startswith("cudnn") else "")
                    for word in ours if self.cudnn or not word.startswith("cudnn")]
        return Step(name, seconds,
                    (self.torch, "-B", os.path.join(self.root, "race/race"), *words, "--device", *device, "--ours",
                     ",".join(ours), "--peers", ",".join(peers), "--retries", "1", "--memory", "no", "--python",
                     self.torch, "--program", self.program("lamina_bench.sh"), "--patience", PATIENCE,
                     "--benchmark_out", REPORT),
                    ("torch",) if ours else ("torch", "cudnn"), limit=540)

    def races(self, nets, *kinds):
        for net, kind in itertools.product(nets, kinds):
            if kind == "f32" or not self.rehearse:
                seconds, *who = RACES[kind]
                yield self.race(f"{net} beside PyTorch, {kind}", seconds, (net, "--modes", "training,inference"), *who)

    def suites(self, backend, *suites):
        for name, pattern, seconds in suites:
            yield self.tests(name, pattern, backend, seconds)

    def smoke(self):
        """A minute: is this a device that works, for us and for PyTorch?"""
        if not self.rehearse:
            yield Step("nvidia-smi", 5, (self.machine.tools["nvidia-smi"], "-q"), ("nvidia-smi",))
            yield self.tests("device and cuBLAS", files("cuda_device cublas_numbers"), self.cuda, 10)
            yield self.tests("NCCL itself", files("nccl_device"), (*self.cuda[:3], ("nccl",)), 10)
            yield self.tests("cuDNN itself", files("installed"), self.library, 5,
                             (("LAMINA_TEST_CUDNN", self.cudnn),))
            yield Step("PyTorch's first import", 60, (self.torch, "-c", CONV_ON_TORCH), ("torch",), limit=240)
        for backend in (self.cuda, self.library):
            yield self.tests("smoke test", SMOKE, backend, 10)

    def correctness(self):
        """Part A. Right? Every suite and whole networks on cuda, and what is computed by cudnn."""
        yield from self.suites(self.cuda, ("tiles of every size", "[cuda]", 10), *SUITES,
                               ("networks against eigen", "[networks]", 20))
        yield from self.suites(self.library, *OPS, ("networks against eigen", "every network agrees*", 20))

    def speed(self):
        """Part B. Fast? The other races and lamina_bench alone. In between plans and trainings once more, on cudnn."""
        yield from self.races(self.nets[1:5], "f32")
        yield from self.suites(self.library, *(() if self.rehearse else PLANS))
        yield from itertools.chain(self.races(self.nets[1:5], "TF32"), self.races(self.nets[:5], "bf16"))
        for training in TRAININGS[1:2] if self.rehearse else TRAININGS:
            share = "0.0043" if self.rehearse else "0.0512"  # whole batches
            yield self.race(f"train/{training} beside PyTorch", 60, (training, "--what", "trainings", "--share", share),
                            ("cuda", "cudnn"), ("torch",))
        for backend in (self.cuda, self.library):
            yield self.rows("passes", f"^net/({'|'.join(self.nets)})/", backend, 60)
        yield from self.races(self.nets[5:], "f32", "TF32")
        yield from self.races(self.nets[:1], "compiled")

    def causes(self):
        """Part C. Why? Where the time goes, which algorithms there are, what the sanitizers find, and what holds
        kernels up."""
        both = list(itertools.product(self.nets[:3], (self.cuda, self.library)))
        for net, backend in both:
            yield self.task("ledger", net, backend, 12)
        for net, backend in both:
            yield self.rows(f"layers of {net}", f"^layer/{net}/", backend, 75)
        for backend in (self.cuda, self.library):
            yield self.task("frontier", self.nets[0], backend, 90)
        if self.rehearse:
            return
        checkers = ("memcheck", "racecheck", "initcheck")
        for (name, pattern, seconds), checker in itertools.product((("smoke test", SMOKE, 8), *OPS), checkers):
            yield Step(f"{checker}, {name}", 8 * seconds,
                       (self.machine.tools["compute-sanitizer"], "--tool", checker, "--error-exitcode", "9",
                        self.program("gpu_tests"), "-#", pattern), ("compute-sanitizer",),
                       (("LAMINA_TEST_BACKEND", "cuda"),), limit=540)
        for net in ("resnet50", "vgg16"):
            yield Step(f"kernels of {net} by Nsight Compute", 120,
                       (self.machine.tools["ncu"], *NCU, self.program("lamina_bench"), "run", *self.cuda[2],
                        *self.bench, f"--benchmark_filter=^net/{net}/total", "--passes=1"), ("ncu",), limit=540)
        yield Step("two versions of cuDNN", 180,
                   (self.torch, "-B", os.path.join(self.root, "race/versions"),
                    f"--cudnn={','.join(self.machine.cudnn[:2])}", "--program", self.program("lamina_bench"),
                    *self.bench, "--benchmark_filter=^net/(resnet50|vgg16)/", f"--benchmark_out={REPORT}"),
                   ("two cudnn",), limit=540)

    def steps(self):
        right = () if self.rehearse else self.correctness()  # which takes an hour on the host
        return [*self.smoke(), *self.races(self.nets[:1], "f32", "TF32"), *right, *self.speed(), *self.causes()]
