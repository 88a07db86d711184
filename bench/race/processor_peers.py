"""Which peers a race on the processor may have: the words of --peers, and what each means. Needs none of them."""

import dataclasses
import os

import contenders
import pythons
import workers

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lamina", "peers")
HUGE_PAGES = {  # glibc's malloc keeps its memory, in huge pages; no code is changed
    "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "1000000000000", "MALLOC_TOP_PAD_": "67108864",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
PASSIVE = {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}  # OpenMP's threads sleep while they wait
TORCH = ("torch", "torch+compiled", "torch+max-autotune", "torch+compiled+frozen", "torch+max-autotune+frozen")
RUNTIMES = ("onnxruntime", "openvino", "ncnn")  # of inference alone
BUILD = "build:"  # before the path of another lamina_bench
WORDS = tuple(word + more for word in TORCH + RUNTIMES for more in ("", "+hugepages"))


class NoPeer(Exception):
    """A peer is not here; the message says how to get it."""


@dataclasses.dataclass(frozen=True)
class Peer:
    """What a word of --peers means, under one interpreter."""
    program: str  # torch, a runtime or a build
    variant: str  # what is set beyond what it comes with; empty: nothing
    layouts: tuple
    python: str  # of a build: its lamina_bench
    name: str  # as tables have it

    @property
    def parts(self):
        return self.variant.split("+")

    @property
    def backend(self):
        """As rows have it."""
        return self.name.split()[0]

    @property
    def modes(self):
        inference = self.program in RUNTIMES or "frozen" in self.parts
        return ("inference",) if inference else ("training", "inference")

    @property
    def environment(self):
        return HUGE_PAGES if "hugepages" in self.parts else {}

    def command(self, net, arguments, files):
        """Of its child, which finds the network's numbers in the folder `files`."""
        if self.program == "build":
            return workers.serve_command(self.python, net=net, batch=arguments.batch, threads=arguments.threads,
                                         measure=arguments.measure)
        if self.program in RUNTIMES:
            return [self.python, os.path.join(HERE, "peers/runtimes.py"), self.program, files, str(arguments.threads),
                    *(["--passive"] if arguments.passive else [])]
        variant = "+".join(part for part in self.parts if part != "hugepages") or "eager"
        return [self.python, os.path.join(HERE, "peers/torch_rows.py"), "--worker", "--nets", net, "--batch",
                str(arguments.batch), "--threads", str(arguments.threads), "--files", files, "--variant", variant]


def known_words():
    return list(WORDS) + [f"{word}@{layout}" for word in WORDS if word.startswith("torch")
                          for layout in contenders.LAYOUTS]


def is_build(word):
    return word.startswith(BUILD)


def modes_of(word):
    """The modes that a word of --peers can be raced in."""
    if is_build(word):
        return ("training", "inference")
    word = contenders.split_variant(word)[0]
    program, _, variant = word.partition("+")
    return Peer(program, variant, (), "", program).modes


def brought(folder, program):
    """The interpreter that bench/get-peers has written for a program; None: it was not brought."""
    path = os.path.join(folder, program, "python")
    return path if os.access(path, os.X_OK) else None


def interpreters(arguments, program, modules="torch"):
    """Those of one program. PyTorch's, which can import `modules`, may be named; else the one that was brought counts,
    then the usual ones. Throws pythons.NoTorch, NoPeer."""
    python = brought(arguments.peers_folder, program)
    if program == "torch":
        return pythons.find(arguments.python or ([python] if python else ()), modules)
    if python is None:
        raise NoPeer(f"no {program} in {arguments.peers_folder}: bench/get-peers {program} brings it")
    return [python]


def peer_name(version, taken, alone):
    """What a PyTorch is called in rows and tables: its version where there are several, with a number where two are
    equal."""
    if alone:
        return "torch"
    name = f"torch-{version.split('+')[0]}"
    return name if name not in taken else next(other for other in (f"{name}#{i}" for i in range(2, 1000))
                                               if other not in taken)


def torch_peers(found):
    """{name: interpreter} of PyTorchs."""
    if len(found) == 1:
        return {"torch": found[0]}
    named = {}
    for python in found:
        named[peer_name(pythons.version(python), named, alone=False)] = python
    return named


def programs_of_builds(arguments):
    """(name in tables, path) of other builds of lamina_bench."""
    words = [word for word in arguments.peers.split(",") if is_build(word)]
    return [("build" if i == 1 else f"build#{i}", os.path.abspath(word.removeprefix(BUILD)))
            for i, word in enumerate(words, 1)]


def builds_of(arguments):
    """Other builds of lamina_bench, which are raced without any other peer."""
    return [Peer("build", "", tuple(arguments.our_layouts.split(",")), program, name)
            for name, program in programs_of_builds(arguments)]


def peers_of(arguments):
    """Every peer of a race on the processor. Throws pythons.NoTorch, NoPeer."""
    if builds := builds_of(arguments):
        return builds
    listed = [contenders.split_variant(word) for word in arguments.peers.split(",")]
    programs = dict.fromkeys(word.partition("+")[0] for word, _ in listed)
    named = {program: torch_peers(interpreters(arguments, program)) if program == "torch" else
             {program: interpreters(arguments, program)[0]} for program in programs}
    found = []
    for word, only in listed:
        program, _, variant = word.partition("+")
        layouts = ("nchw",) if program in RUNTIMES else tuple(
            layout for layout in arguments.layouts.split(",") if only in (None, layout))
        found += [Peer(program, variant, layouts, python, f"{name} {variant}".strip())
                  for name, python in named[program].items()]
    return found
