"""The options of `compare`, every one of them checked before anything runs."""

import argparse
import difflib
import math
import os
import re

import contenders
import processor_peers
import race
import rows
import trainings
from protocol import BENCH, NAMES, PUBLISHED

LARGEST = 2**31 - 1  # what the workers can read


def whole(least):
    """The type of an option that is a whole number."""
    def read(text):
        try:
            value = int(text)
        except ValueError:
            value = -1
        if not least <= value <= LARGEST:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least} to {LARGEST}")
        return value
    return read


def number(text):
    """The type of an option that is a number, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of 0 or more")
    return value


def words(known, also=r"(?!)", shown=()):
    """The type of an option that is words joined by commas, each of them one of `known` or a match of `also`, which
    errors show as `shown`."""
    def read(text):
        found = text.split(",")
        for i, word in enumerate(found):
            if word not in known and not re.fullmatch(also, word):
                near = difflib.get_close_matches(word.lower(), known)
                hint = f"; did you mean {' or '.join(near)}? There are " if near else ", but "
                raise argparse.ArgumentTypeError(f"there is no '{word}'{hint}{', '.join((*shown, *known))}")
            if word in found[:i]:
                raise argparse.ArgumentTypeError(f"'{word}' is there twice")
        return text
    return read


DEVICE_DEFAULTS = {"precision": "f32,tf32", "torch": contenders.TORCH_DEFAULT, "ours": "plain,graph",
                   "backends": "cuda,cudnn", "compile_seconds": 600.0, "patience": 300.0, "others": 1.0}
REHEARSAL_BACKENDS = "cuda-host"


def add_device_options(group):
    group.add_argument("--device", default="cpu",
                       help="cpu, cuda, cuda:N, or rehearsal: what a race on a GPU does, without one: PyTorch on the "
                            "processor, Lamina's kernels as the host runs them (default: %(default)s)")
    group.add_argument("--precision", type=words(contenders.PRECISIONS),
                       help="of products, joined by commas: f32 (PyTorch's TF32 off, Lamina's strict "
                                           "math), tf32 (both on), f16, bf16 (PyTorch's autocast; Lamina has none yet) "
                                           f"(default: {DEVICE_DEFAULTS['precision']})")
    group.add_argument("--torch", type=words(contenders.known_words()),
                       help="PyTorch's variants, joined by commas, each followed by @nchw or @nhwc "
                                       f"if only in that layout: {', '.join(contenders.TORCH)} "
                                       f"(default: {DEVICE_DEFAULTS['torch']})")
    group.add_argument("--backends", type=words(contenders.BACKENDS, "cudnn:.+"),
                       help="Lamina's, joined by commas: cuda, cudnn, cudnn:DIRECTORY, cuda-host "
                                          f"(default: {DEVICE_DEFAULTS['backends']}; rehearsal: {REHEARSAL_BACKENDS})")
    group.add_argument("--ours", type=words(contenders.OURS),
                       help=f"Lamina's variants, joined by commas: {', '.join(contenders.OURS)} "
                                      f"(default: {DEVICE_DEFAULTS['ours']})")
    group.add_argument("--compile_seconds", type=number,
                       help="seconds for all first passes of compiled variants together; what is compiled later is "
                            f"left out, and a line says so (default: {DEVICE_DEFAULTS['compile_seconds']:.0f})")
    group.add_argument("--patience", type=number,
                       help="seconds that a child may take for an answer before it is ended and its variant left out "
                            f"(default: {DEVICE_DEFAULTS['patience']:.0f})")


def check_device_options(parser, arguments):
    """Fills in the defaults of a race on a GPU; without one its options are refused."""
    arguments.on_device = arguments.device != "cpu"
    if not re.fullmatch(r"cpu|cuda|cuda:\d+|rehearsal", arguments.device):
        parser.error(f"--device: there is no '{arguments.device}'; there are cpu, cuda, cuda:N, rehearsal")
    arguments.device_number = int(arguments.device.partition(":")[2] or 0)
    if not arguments.on_device:
        for flag in DEVICE_DEFAULTS:
            if flag != "others" and getattr(arguments, flag) is not None:
                parser.error(f"--{flag} belongs to a race on a GPU; say --device cuda as well, or leave it out")
        arguments.precision = "f32"
        arguments.others = race.DISTURBED_CORES if arguments.others is None else arguments.others
        return
    if arguments.layers:
        parser.error("--layers races on the processor; leave out --device")
    if arguments.measure:
        parser.error("--measure is of a race on the processor; on a GPU say --ours measured")
    defaults = DEVICE_DEFAULTS | ({"backends": REHEARSAL_BACKENDS} if arguments.device == "rehearsal" else {})
    for flag, value in defaults.items():
        if getattr(arguments, flag) is None:
            setattr(arguments, flag, value)
    if not contenders.theirs(arguments, "f32", "torch"):
        parser.error(f"--torch: none of {arguments.torch} is in the layouts {arguments.layouts} (--layouts)")


def check_trainings(parser, arguments):
    """Refuses what is of other races, before defaults are filled in."""
    if not 0 < arguments.share <= 1:
        parser.error("--share is above 0, and at most 1")
    if not arguments.trainings:
        arguments.retries = 3 if arguments.retries is None else arguments.retries
        return
    if arguments.layers:
        parser.error("--trainings races epochs, and --layers convolutions; leave out one of the two")
    if arguments.retries:
        parser.error("--retries: an epoch that is run again would be the next one; leave it out")
    arguments.retries = 0
    if arguments.device == "cpu":
        return
    for flag in ("precision", "torch", "ours", "compile_seconds"):
        if getattr(arguments, flag) is not None:
            parser.error(f"--{flag} is of a race of networks; leave it out, or --trainings")
    if arguments.keras:
        parser.error("--keras is of a race on the processor; leave out --device")


def check_program(parser, path, mend):
    """Refuses what cannot be started."""
    if os.path.isdir(path):
        parser.error(f"{path} is a folder; name the lamina_bench in it")
    if not os.access(path, os.X_OK):
        parser.error(f"no program at {path}: {mend}")


def check_peers(parser, arguments):
    """Refuses peers that do not go with the rest."""
    if arguments.peers != "torch" and (arguments.on_device or arguments.layers or arguments.trainings):
        parser.error("--peers is of a race of networks on the processor; leave out --device, --layers and --trainings")
    for mode in arguments.modes.split(","):
        if not any(mode in processor_peers.modes_of(word) for word in arguments.peers.split(",")):
            parser.error(f"--peers: none of {arguments.peers} runs {mode} (--modes)")
    words_of_peers = arguments.peers.split(",")
    builds = processor_peers.programs_of_builds(arguments)
    if builds and len(builds) < len(words_of_peers):
        parser.error("--peers: other builds race alone; leave out those that are not build:PROGRAM, or race them apart")
    for _, program in builds:
        check_program(parser, program, "name another build's lamina_bench by --peers build:PROGRAM")
    for word in [] if builds else words_of_peers:
        layout = contenders.split_variant(word)[1]
        if layout is not None and layout not in arguments.layouts.split(","):
            parser.error(f"--peers: {word} is in none of the layouts {arguments.layouts} (--layouts)")


def parser_of(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", type=words(NAMES), default=",".join(PUBLISHED),
                        help="joined by commas; bottleneck_stack is four blocks of ResNet-50's first stage (default: "
                             f"the ten of the published tables, {', '.join(PUBLISHED)})")
    parser.add_argument("--peers", type=words(processor_peers.known_words(), f"{processor_peers.BUILD}.+", ["build:PROGRAM"]),
                        default="torch",
                        help="joined by commas, each of PyTorch followed by @nchw or @nhwc if only in that layout: "
                             f"{', '.join(processor_peers.TORCH + processor_peers.RUNTIMES)}; +hugepages after any of "
                             "them: glibc's malloc keeps its memory, in huge pages. onnxruntime, openvino, ncnn "
                             "and what is frozen run inference alone. build:PROGRAM is another lamina_bench: did a change "
                             "make it slower? (default: %(default)s)")
    parser.add_argument("--peers_folder", default=processor_peers.FOLDER,
                        help="where bench/get-peers has put them (default: %(default)s)")
    parser.add_argument("--passive", action="store_true",
                        help="the peers' threads sleep while they wait instead of spinning: of OpenMP and of onnxruntime; "
                             "for machines that others use too")
    parser.add_argument("--layers", action="store_true", help="each distinct convolution against oneDNN's primitives")
    parser.add_argument("--variants", type=words(("any", "winograd", "nchw")), default="any,winograd,nchw",
                        help="of oneDNN's primitives: its own layouts, likewise by Winograd, plain tensors (default: "
                             "%(default)s)")
    trains = parser.add_argument_group("races of trainings, by epochs")
    trains.add_argument("--trainings", type=words(trainings.WORKLOADS), nargs="?", const=",".join(trainings.WORKLOADS),
                        help="workloads joined by commas, instead of networks; without a value the six (default: none)")
    trains.add_argument("--share", type=number, default=0.1024,
                        help="of their synthetic sets (default: %(default)s, whole batches)")
    trains.add_argument("--training_variants", type=words(trainings.VARIANTS), default=",".join(trainings.VARIANTS),
                        help="of PyTorch (default: %(default)s)")
    trains.add_argument("--keras", metavar="PYTHON", help="an interpreter with keras (default: no Keras)")
    parser.add_argument("--samples", type=whole(1), default=9,
                        help="rounds, each one pass of every side (default: %(default)s)")
    parser.add_argument("--modes", type=words(rows.PASSES), default="training",
                        help="training, inference, or both joined by a comma (default: %(default)s)")
    parser.add_argument("--batch", type=whole(1), default=16, help="images of a pass (default: %(default)s)")
    parser.add_argument("--threads", type=whole(1), default=rows.cores(),
                        help="of both sides (default: the processors that this process may use, here %(default)s)")
    parser.add_argument("--layouts", type=words(contenders.LAYOUTS), default="nchw,nhwc",
                        help="PyTorch's memory formats (default: %(default)s)")
    parser.add_argument("--our_layouts", type=words(contenders.LAYOUTS), default="nchw",
                        help="Lamina's layouts (default: %(default)s)")
    parser.add_argument("--measure", action="store_true", help="Lamina picks algorithms by timing them")
    parser.add_argument("--python", action="append", default=[],
                        help="an interpreter with torch; may be given more than once (default: that of bench/get-peers, "
                             "else the first with torch of python3 and /usr/bin/python3)")
    parser.add_argument("--program", "--worker", default=BENCH,
                        help="the lamina_bench that is Lamina's side (default: %(default)s)")
    parser.add_argument("--others", type=number,
                        help="cores that other processes may use during a pass (default: "
                             f"{race.DISTURBED_CORES}, on a GPU {DEVICE_DEFAULTS['others']})")
    parser.add_argument("--retries", type=whole(0),
                        help="how often a disturbed pass is run again at most (default: 3; of --trainings 0)")
    parser.add_argument("--memory", choices=("yes", "no", "only"), default="yes",
                        help="whether peaks of memory are measured; only: and no times (default: %(default)s)")
    add_device_options(parser.add_argument_group("races on a GPU"))
    parser.add_argument("--limit", type=number,
                        help="fail where the interval of a total is above this ratio (default: no limit)")
    parser.add_argument("--out", help="JSON file to write (default: results/peers.json, with --layers "
                                      "results/peer_layers.json)")
    return parser


def parse(description, arguments=None):
    """The options; ends the process with the reason where one of them makes no sense."""
    parser = parser_of(description)
    arguments = parser.parse_args(arguments)
    if arguments.samples < 2:
        parser.error("--samples must be 2 or more, 6 or more for an interval of 95 %")
    if arguments.memory == "only" and arguments.limit is not None:
        parser.error("--limit applies to times, which --memory only leaves out; leave out one of the two")
    if arguments.layers and arguments.limit is not None:
        parser.error("--limit applies to the totals of networks, which --layers does not race; leave out one of "
                     "the two")
    check_trainings(parser, arguments)
    arguments.out = arguments.out or ("results/peer_layers.json" if arguments.layers else
                                      "results/peer_trainings.json" if arguments.trainings else "results/peers.json")
    if arguments.layers and "bottleneck_stack" in arguments.nets.split(","):
        parser.error("--nets: there is no 'bottleneck_stack' among the networks of --layers")
    check_device_options(parser, arguments)
    check_peers(parser, arguments)
    arguments.program = os.path.abspath(arguments.program)
    check_program(parser, arguments.program, "build the target lamina_bench, or name it with --program")
    return arguments
