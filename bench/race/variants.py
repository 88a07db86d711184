"""The variants of a race: the words of --ours and --peers, their meaning, and the command of each worker."""
# A word is ENGINE[:PRECISION][+FLAG...][@LAYOUT][=DIRECTORY]: torch:tf32+compiled@nhwc. Does not import the peers.

import argparse
import dataclasses
import difflib
import json
import os
import re

import pythons

HERE = os.path.dirname(os.path.abspath(__file__))
WHATS = ("networks", "layers", "trainings")
MODES = ("training", "inference")
PRECISIONS = ("f32", "tf32", "f16", "bf16")
WORD = re.compile(r"([a-z0-9-]+)(?::(\w+))?((?:\+[\w-]*)*)(?:@(\w+))?")
HUGE_PAGES = {  # these variables make glibc's malloc keep its memory, in huge pages
    "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "1000000000000", "MALLOC_TOP_PAD_": "67108864",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
PASSIVE = {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}  # OpenMP's threads sleep while they wait


class BadVariant(argparse.ArgumentTypeError):
    """A word is not a variant of this race. The message says why."""


@dataclasses.dataclass(frozen=True)
class Engine:
    """A peer program, or a backend of Lamina, and the variants that it allows."""
    devices: tuple
    whats: tuple
    flags: tuple = ()
    modes: tuple = MODES
    layouts: tuple = ("nchw",)
    precisions: tuple = ("f32",)
    modules: str = ""  # Python modules that it needs; empty: it is no Python program
    ours: bool = False


RUNTIME = {"devices": ("cpu",), "whats": ("networks",), "flags": ("hugepages", "passive"), "modes": ("inference",)}
KERNELS = {"whats": ("networks", "trainings"), "flags": ("measured", "graph"), "layouts": ("nchw", "nhwc"),
           "precisions": PRECISIONS, "ours": True}
ENGINES = {
    "eigen": Engine(("cpu",), WHATS, ("measured",), layouts=("nchw", "nhwc"), precisions=("f32", "f16", "bf16"),
                    ours=True),
    "cuda": Engine(("cuda",), **KERNELS),
    "cudnn": Engine(("cuda",), **KERNELS),
    "cudnn-graph": Engine(("cuda",), **KERNELS),
    "cuda-host": Engine(("cpu", "rehearsal"), **KERNELS),
    "torch": Engine(("cpu", "cuda", "rehearsal"), ("networks", "trainings"),
                    ("compiled", "max-autotune", "frozen", "benchmark", "graph", "hugepages", "passive"),
                    layouts=("nchw", "nhwc"), precisions=PRECISIONS, modules="torch, numpy"),
    "onnxruntime": Engine(**RUNTIME, modules="onnxruntime, numpy"),
    "openvino": Engine(**RUNTIME, modules="openvino, numpy"),
    "onednn": Engine(("cpu",), ("layers",), layouts=("any", "winograd", "nchw"), precisions=("f32", "bf16")),
}
OURS = tuple(name for name, engine in ENGINES.items() if engine.ours)
PEERS = tuple(name for name, engine in ENGINES.items() if not engine.ours)
TF32 = ("torch:tf32+benchmark", "torch:tf32+benchmark@nhwc", "torch:tf32+compiled+benchmark@nhwc")
DEFAULTS = {  # defaults of --ours and --peers
    ("networks", "cpu"): ("eigen", "torch,torch@nhwc"),
    ("networks", "rehearsal"): ("cuda-host", "torch,torch@nhwc"),
    ("networks", "cuda"): ("cuda,cuda+graph,cudnn,cudnn+graph,cudnn:tf32,cudnn:tf32+graph",
                           ",".join((*(word.replace(":tf32", "") for word in TF32), *TF32))),
    ("layers", "cpu"): ("eigen", "onednn@any,onednn@winograd,onednn@nchw"),
    ("trainings", "cpu"): ("eigen", "torch,torch+compiled"),
    ("trainings", "rehearsal"): ("cuda-host", "torch"),
    ("trainings", "cuda"): ("cuda,cudnn", "torch,torch+compiled"),
}


@dataclasses.dataclass(frozen=True)
class Variant:
    """A competitor: an engine with its settings."""
    word: str  # word of --ours or --peers
    engine: str
    precision: str = "f32"
    flags: tuple = ()
    layout: str = "nchw"
    path: str = ""     # the directory of cuDNN
    python: str = ""   # the interpreter of a peer
    version: str = ""  # version of the engine, if several race

    @property
    def name(self):
        """The name in files and messages: the word, with the version if several versions of an engine race."""
        return self.word.replace(self.engine, f"{self.engine}-{self.version}", 1) if self.version else self.word

    @property
    def ours(self):
        return ENGINES[self.engine].ours

    @property
    def modes(self):
        return ("inference",) if "frozen" in self.flags else ENGINES[self.engine].modes

    @property
    def environment(self):
        return (HUGE_PAGES if "hugepages" in self.flags else {}) | (PASSIVE if "passive" in self.flags else {})

    def command(self, what, net, batch, options, folder):
        """The command of the variant's worker. `folder`: folder with Lamina's files for `net`; None: there are none."""
        if self.ours:
            return self.our_command(what, net, batch, options)
        if self.engine == "onednn":
            return [onednn_worker(options.program), str(options.threads), self.precision]
        kind = "training" if what == "trainings" else "worker" if self.engine == "torch" else ""
        script = f"{self.engine}_{kind}.py" if kind else "runtimes.py"
        config = {"engine": self.engine, "net": net, "batch": batch, "threads": options.threads, "files": folder,
                  "device": f"cuda:{options.device_number}" if options.device == "cuda" else "cpu",
                  "precision": self.precision, "flags": self.flags}
        return [self.python, os.path.join(HERE, "peers", script), json.dumps(config)]

    def our_command(self, what, net, batch, options):
        flags = {"backend": self.engine, "cudnn": self.path, "threads": options.threads,
                 "measure": "measured" in self.flags, "device": options.device_number,
                 "plans": options.plans if self.engine == "cudnn-graph" else ""}
        if what == "trainings":
            return serve_command(options.program, training=net, share=options.share, **flags)
        flags |= {"math": "tf32"} if self.precision == "tf32" else {"dtype": self.precision}
        if what == "layers":
            return serve_command(options.program, **flags)
        return serve_command(options.program, net, batch=batch, cuda_graph="graph" in self.flags, **flags)


def serve_command(program, net="", **flags):
    """The command of a worker of Lamina. Without a network or a training it serves convolutions."""
    of_net = [f"--onnx={net}" if net.endswith(".onnx") else net] if net else []
    return [program, "serve", *of_net, *(f"--{flag}" if value is True else f"--{flag}={value}"
                                         for flag, value in flags.items() if value)]


def onednn_worker(program):
    """The path of oneDNN's worker, which is beside lamina_bench."""
    return os.path.join(os.path.dirname(program), "onednn_worker")


def check_known(what, word, known, whose=""):
    """Raises BadVariant for an unknown word. `whose`: the engine that the known words belong to; empty: no engine."""
    if word not in known:
        near = difflib.get_close_matches(str(word).lower(), known)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        has_none = f"{whose} has" if whose else "there is"
        raise BadVariant(f"{has_none} no {what} '{word}'; valid names: {', '.join(known) or 'none'}.{hint}")


def parse(word, what, device):
    """The Variant that a word means in a race of `what` on a device. Raises BadVariant."""
    head, _, path = word.partition("=")
    found = WORD.fullmatch(head)
    if found is None:
        raise BadVariant(f"'{word}' is not ENGINE[:PRECISION][+FLAG...][@LAYOUT][=DIRECTORY]")
    name, precision, flags, layout = found.groups()
    check_known("engine", name, list(ENGINES))
    engine, flags = ENGINES[name], tuple(flags.split("+")[1:])
    precision, layout = precision or "f32", layout or engine.layouts[0]
    if device not in engine.devices or what not in engine.whats:
        raise BadVariant(f"{word}: {name} races {' and '.join(engine.whats)} on {' and '.join(engine.devices)}, not "
                         f"{what} on {device}")
    check_known("precision", precision, engine.precisions, name)
    check_known("layout", layout, engine.layouts, name)
    if what == "trainings" and precision != "f32":
        raise BadVariant(f"{word}: trainings race in f32 alone")
    for flag in flags:
        check_known("flag", flag, engine.flags, name)
    check_flags(word, name, flags, what, device)
    if "=" in word and not name.startswith("cudnn"):
        raise BadVariant(f"{word}: only cudnn has a directory; bench/race/versions --programs compares builds")
    if "=" in word and not os.path.isdir(path):
        raise BadVariant(f"{word}: no directory at '{path}'")
    return Variant(word, name, precision, flags, layout, path)


def check_flags(word, name, flags, what, device):
    """Raises BadVariant for flags that exclude each other, or that do not fit the race."""
    its, others, needs = set(flags), {"benchmark", "graph"}, "needs --device cuda"
    if device != "cpu":
        others, needs = {"frozen", "hugepages", "passive"}, "is of races on the processor"
    untrained = its - {"compiled", "hugepages", "passive"} if what == "trainings" else set()
    compiles = its & {"compiled", "max-autotune"}
    rules = [(len(its) < len(flags), "duplicate flag")] + (name == "torch") * [
        (len(compiles) > 1, "compiled and max-autotune are two modes of one compiler; leave out one"),
        ("frozen" in its and not compiles, "frozen weights are the compiler's; add compiled or max-autotune"),
        ("graph" in its and "compiled" not in its, "graph is a mode of the compiler (reduce-overhead); add compiled"),
        (its & others, f"{', '.join(sorted(its & others))} {needs}"),
        (untrained, f"trainings have no {', '.join(sorted(untrained))}")]
    for broken, why in rules:
        if broken:
            raise BadVariant(f"{word}: {why}")


def read(text, what, device):
    """The Variants of words joined by commas. Raises BadVariant."""
    words = text.split(",")
    for i, word in enumerate(words):
        if word in words[:i]:
            raise BadVariant(f"duplicate '{word}'")
    return [parse(word, what, device) for word in words]


def with_pythons(variants, named, what):
    """The variants, each once for every interpreter that can import its engine. Raises NoPython."""
    # `named`: interpreters of --python. If none of them can import an engine, the first usual interpreter is taken.
    def modules_of(variant):  # many of PyTorch's networks come from torchvision
        vision = "torchvision, " if variant.engine == "torch" and what == "networks" else ""
        return vision + ENGINES[variant.engine].modules

    found, wanted = [], set(map(modules_of, variants))
    for python in named:
        if not any(modules and pythons.can_import(python, modules) for modules in wanted):
            raise pythons.NoPython(f"'{python}' can import nothing that is raced: {'; '.join(filter(None, wanted))}")
    for variant in variants:
        modules = modules_of(variant)
        every, versions = pythons.find(modules, named) if modules else [""], []
        for python in every:
            version = pythons.version(python, variant.engine) if len(every) > 1 else ""
            versions.append(version)
            number = f"#{versions.count(version)}" if versions.count(version) > 1 else ""
            found.append(dataclasses.replace(variant, python=python, version=version + number))
    return found
