"""The steps, as plain data: what is run, what it needs, how long it takes, and in which order.

`rank` is the order of value: everything of rank 1 runs before anything of rank 2. Ranks 1 of the three parts together
take about ten minutes of a large GPU. The estimates in seconds are made from counts and models; none was measured on a
device."""

import dataclasses
import json
import os
from typing import Tuple

PARTS = {"A": "right?", "B": "fast?", "C": "why?"}
NETS = ("resnet50", "alexnet", "vgg16", "inception_v1", "vgg19", "resnet18", "resnet34", "resnet101", "resnet152",
        "resnet200")
TRAININGS = ("mnist_mlp", "mnist_cnn", "cifar10_cnn", "imdb_fasttext", "imdb_bilstm", "lstm_text")
FIRST = 3  # of NETS: what a short run has
WORK = "@work@"  # in a command: the step's own empty folder

SUITES = (  # (name, pattern of files of tests, rank, seconds): what every backend goes through
    ("convolution", "[#conv_test]", 1, 20),
    ("other ops", "[#pool_test],[#relu_test],[#join_test],[#fully_connected_test],[#softmax_test],[#lrn_test],"
                  "[#batch_norm_test],[#dropout_test],[#random_test],[#goldens_test]", 1, 20),
    ("plans", "[#plan_test],[#choices_test],[#pack_test]", 1, 15),
    ("small networks", "[#tiny_nets_test],[#random_graph_test]", 1, 20),
    ("measured choices", "[#measured_test]", 1, 10),
    ("training", "[#checkpoint_test],[#lazy_test],[#optimiser_test],[#share_test],[#trainer_test]", 2, 20),
)
# Of the kernels as the host runs them, of the processor, or steps of their own.
NOT_THE_REST = ("bias", "conv_1x1", "conv_fold", "conv_winograd", "im2col", "lstm_rows", "networks", "orders",
                "products", "timing", "winograd_picks", "installed", "cuda_device", "cublas_numbers", "bounds",
                "uploads", "workloads")


@dataclasses.dataclass(frozen=True)
class Step:
    """`kind` says how its outcome is read: judge.py. `keeps`: the growing file that has its log besides logs.txt."""
    name: str
    part: str
    rank: int
    seconds: int
    kind: str
    command: Tuple[str, ...]
    needs: Tuple[str, ...] = ("device",)
    environment: Tuple[Tuple[str, str], ...] = ()
    keeps: str = ""
    limit: int = 0  # 0: four times the estimate, and at least two minutes

    def time_limit(self):
        return self.limit or max(120, 4 * self.seconds)


@dataclasses.dataclass(frozen=True)
class Target:
    """What the steps are run on: the device, or what stands in for it in a rehearsal."""
    root: str                      # the folder with bin/, data/ and race/
    python: str
    torch: str = "python3"         # an interpreter with torch
    cuda: str = "cuda"             # the backend of our kernels
    cudnn_folders: Tuple[str, ...] = ()
    second: str = ""               # in a rehearsal: the backend in cudnn's place
    sanitizer: str = "compute-sanitizer"
    ncu: str = "ncu"
    smi: str = "nvidia-smi"
    nets: Tuple[str, ...] = NETS
    bench: Tuple[str, ...] = ("--batch=16",)
    suites: Tuple[Tuple[str, str, int, int], ...] = SUITES
    rehearsal: str = ""            # "", "quick" or "whole"

    def program(self, name):
        return os.path.join(self.root, "bin", name)

    def cudnn(self, i=0):
        """A backend's name with the folder of its library."""
        if self.second:
            return self.second
        return "cudnn:" + self.cudnn_folders[i] if i < len(self.cudnn_folders) else "cudnn"

    def backends(self):
        """(name, for LAMINA_TEST_BACKEND, flags of lamina_bench, needs) of both backends of a device."""
        folder = f"--cudnn={self.cudnn_folders[0]}" if self.cudnn_folders and not self.second else ""
        first = f"{self.cuda} for cuda" if self.second else "cuda"
        second = f"{self.second} for cudnn" if self.second else "cudnn"
        return ((first, self.cuda, (f"--backend={self.cuda}",), ("device",)),
                (second, self.cudnn(), (f"--backend={self.second or 'cudnn'}", *([folder] if folder else [])),
                 ("device", "cudnn")))

def tests(target, name, pattern, backend, rank, seconds, needs, environment=(), more=()):
    """A step of test cases: first all of them in one process; where that fails, each in a separate process."""
    here = os.path.dirname(os.path.abspath(__file__))
    return Step(name, "A", rank, seconds, "tests",
                (target.python, "-B", os.path.join(here, "cases.py"), "--out", f"{WORK}/cases.json", *more,
                 *(("--together", "900") if target.rehearsal else ()), "--",
                 target.program("gpu_tests"), "-#", pattern), needs,
                (("LAMINA_TEST_BACKEND", backend), *environment), limit=1200 if target.rehearsal else 300)


def part_a(target):
    """Right? Facts, the device's own tests, the suites of both backends, and the sanitizers."""
    yield Step("nvidia-smi", "A", 0, 5, "text", (target.smi, "-q"), ("device", "nvidia-smi"))
    if not target.rehearsal:
        yield tests(target, "device and cuBLAS numbers", "[#cuda_device_test],[#cublas_numbers_test]", "cuda", 1, 10,
                    ("device",))
        yield tests(target, "cuDNN itself", "[#installed_test]", target.cudnn(), 1, 5, ("cudnn",),
                    (("LAMINA_TEST_CUDNN", target.cudnn_folders[0] if target.cudnn_folders else ""),))
    for short, backend, _, needs in target.backends():
        slower = 3 if short == "cudnn" else 2  # halves: cuDNN compiles some engines when they are first used
        for name, pattern, rank, seconds in target.suites:
            yield tests(target, f"{name}, {short}", pattern, backend, rank, seconds * slower // 2, needs)
        networks = "[networks]" if short == "cuda" else "every network agrees*"
        if target.rehearsal != "quick":
            yield tests(target, f"networks against eigen, {short}", networks, backend, 1, 30, needs)
        if not target.rehearsal:
            rest = "".join(f"~[#{file}_test]" for file in NOT_THE_REST)
            named = "".join("~" + word for _, pattern, _, _ in SUITES for word in pattern.split(","))
            yield tests(target, f"all other tests, {short}", rest + named, backend, 2, 15, needs,
                        more=("--may-be-none",))
    relu = "[#relu_test],[#join_test]"
    for tool, name, pattern, rank, seconds in (
            ("memcheck", "two ops", relu, 1, 30), ("memcheck", "convolution", "[#conv_test]", 2, 90),
            ("memcheck", "other ops", SUITES[1][1], 2, 90), ("racecheck", "two ops", relu, 2, 40),
            ("racecheck", "convolution", "[#conv_test]", 3, 150), ("initcheck", "two ops", relu, 2, 40),
            ("initcheck", "convolution", "[#conv_test]", 3, 120), ("memcheck", "plans", "[#plan_test]", 3, 90)):
        yield Step(f"{tool}, {name}", "A", rank, seconds, "sanitizer",
                   (target.sanitizer, "--tool", tool, "--error-exitcode", "9", target.program("gpu_tests"), "-#",
                    pattern), ("device", "compute-sanitizer"), (("LAMINA_TEST_BACKEND", target.cuda),),
                   limit=max(120, 2 * seconds))


def rows(target, name, part, rank, seconds, pattern, backend, *flags):
    """A step of lamina_bench's rows."""
    _, _, own, needs = backend
    return Step(name, part, rank, seconds, "bench",
                (target.program("lamina_bench"), *own, *target.bench, f"--benchmark_filter={pattern}",
                 f"--benchmark_out={WORK}/bench.json", *flags), needs)


def compare(target, name, rank, seconds, words, patience, limit):
    """A step of bench/race/compare, whose children are a process for each variant of either side."""
    if target.rehearsal:
        how = ("rehearsal", "--backends", "cuda-host", "--samples", "2", "--threads", "1")
    else:
        how = ("cuda", "--backends", f"cuda,{target.cudnn()}" if target.cudnn_folders else "cuda", "--samples", "9")
    return Step(name, "B", rank, seconds, "peers",
                (target.torch, "-B", os.path.join(target.root, "race/compare"), "--device", *how, *words, "--python",
                 target.torch, "--program", target.program("lamina_bench.sh"), "--patience", str(patience), "--out",
                 f"{WORK}/peers.json"), ("device", "torch"), limit=900 if target.rehearsal else limit)


def race(target, name, net, rank, seconds, theirs, compiling=0):
    """Passes of a network. `compiling`: seconds for what PyTorch compiles, of which one answer may take all."""
    how = (("--precision", "f32", "--ours", "plain", "--batch", "2") if target.rehearsal else
           ("--precision", "f32,tf32", "--retries", "1"))  # in a container the others' cores are the whole machine's
    return compare(target, name, rank, seconds, ("--nets", net, *how, "--modes", "training,inference", "--memory", "no",
                                                 "--torch", theirs, "--compile_seconds", str(compiling)),
                   compiling or 75, max(330, compiling + 2 * seconds))


def race_of_epochs(target, workload, rank, seconds):
    """Epochs of a training, with a part of its synthetic set."""
    share = "0.0043" if target.rehearsal else "0.0512"  # whole batches
    return compare(target, f"train/{workload} beside PyTorch", rank, seconds,
                   ("--trainings", workload, "--share", share, "--training_variants", "eager"), 75, 330)


def part_b(target):
    """Fast? Whole networks beside PyTorch's in turns, and by lamina_bench."""
    head, rest = target.nets[:FIRST], target.nets[FIRST:]
    compiled = "eager+benchmark,compiled+benchmark@nhwc"
    for i, net in enumerate(() if target.rehearsal == "quick" else target.nets):
        rank = 1 if i < FIRST else 2 if net in ("inception_v1", "resnet18", "resnet200") else 3
        large = net.startswith("vgg")  # whose many parameters the host draws for each of twelve plans
        yield race(target, f"beside PyTorch: {net}", net, rank, 90 if large else 50, "eager+benchmark")
    for i, net in enumerate(() if target.rehearsal else head):
        yield race(target, f"beside compiled PyTorch: {net}", net, 2 if i < 1 else 3, 180, compiled, compiling=180)
    for workload in TRAININGS[:1] if target.rehearsal == "whole" else () if target.rehearsal else TRAININGS:
        yield race_of_epochs(target, workload, 2, 45)
    variants = (("strict", (), 1), ("CUDA graphs", ("--cuda_graph",), 1), ("TF32", ("--math=tf32",), 2),
                ("TF32, CUDA graphs", ("--math=tf32", "--cuda_graph"), 2))
    for variant, flags, rank in variants[:1] if target.rehearsal else variants:
        # Backend cuda has no TF32, and says so in the races.
        for backend in target.backends()[1:] if "--math=tf32" in flags else target.backends():
            for some, nets, later in (("first networks", head, 0), ("other networks", rest, 1)):
                if nets:
                    yield rows(target, f"{variant}, {some}, {backend[0]}", "B", rank + later, 15 if later == 0 else 30,
                               f"^net/({'|'.join(nets)})/", backend, *flags)


def part_c(target):
    """Why? Where the time goes, which algorithms there are, and what the slowest kernels do."""
    head = target.nets[:FIRST]
    for i, net in enumerate(head):
        for short, _, flags, needs in target.backends():
            yield Step(f"ledger of {net}, {short}", "C", 1 if i < 1 else 2, 12, "text",
                       (target.program("lamina_bench"), "ledger", net, *flags, *target.bench), needs,
                       keeps="tables.txt")
    for i, net in enumerate(head):
        for backend in target.backends():
            yield rows(target, f"layers of {net}, {backend[0]}", "C", 2 if i < 1 else 3, 75, f"^layer/{net}/", backend)
    for short, _, flags, needs in target.backends():
        yield Step(f"frontier of {head[0]}, {short}", "C", 3, 90, "text",
                   (target.program("lamina_bench"), "frontier", head[0], *flags, *target.bench), needs,
                   keeps="tables.txt")
    if not target.rehearsal:
        two = ",".join(target.cudnn_folders[:2])
        yield Step("two versions of cuDNN", "C", 3, 180, "bench",
                   (target.python, "-B", os.path.join(target.root, "race/versions"), "--cudnn", two, "--program",
                    target.program("lamina_bench"), *target.bench, "--benchmark_filter=^net/(resnet50|vgg16)/", "--out",
                    f"{WORK}/bench.json"), ("device", "cudnn", "two cudnn"), keeps="tables.txt")
        here = os.path.dirname(os.path.abspath(__file__))
        for i, net in enumerate(("resnet50", "vgg16")):
            yield Step(f"ncu on the slowest kernels of {net}", "C", 2 + i, 90, "text",
                       (target.python, "-B", os.path.join(here, "slowest.py"), target.ncu, "8", "pass training nchw",
                        target.program("lamina_bench"), "serve",
                        json.dumps({"net": net, "batch": 16, "threads": 4, "backend": "cuda"})), ("device", "ncu"),
                       keeps="ncu.txt", limit=240)


def all_steps(target, parts="ABC"):
    """The steps of the parts, in the order in which they run."""
    made = {"A": part_a, "B": part_b, "C": part_c}
    found = [step for part in "ABC" if part in parts for step in made[part](target)]
    return sorted(found, key=lambda step: step.rank)  # stable: within a rank A, B, C


def rehearsal(target, how):
    """The target with a processor in the device's place: backend eigen for both, or our kernels as the host runs
    them."""
    suites = tuple((name, pattern, 1, 5) for name, pattern in (("ops", "[#relu_test],[#join_test]"),)) \
        if how == "quick" else tuple(suite for suite in SUITES if suite[0] != "small networks")  # which take minutes
    return dataclasses.replace(target, cuda="eigen" if how == "quick" else "cuda-host", second="eigen",
                               cudnn_folders=(), nets=("mnist_cnn",), suites=suites,
                               bench=("--batch=2", "--passes=1", "--threads=1"), rehearsal=how)
