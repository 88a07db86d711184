"""The options of `race`, every one of them checked before anything runs."""

import argparse
import os
import re

import networks
import variants

LARGEST = 2**31 - 1  # what the workers can read
FEWEST_ROUNDS = 6    # with an interval, as lamina_bench compare has it


def whole(least):
    """The type of an option that is a whole number."""
    def read(text):
        value = int(text) if re.fullmatch(r"-?\d{1,18}", text) else -1
        if not least <= value <= LARGEST:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least} to {LARGEST}")
        return value
    return read


def positive(text):
    """The type of an option that is a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def modes(text):
    """The type of --modes."""
    for mode in text.split(","):
        variants.check_known("mode", mode, variants.MODES)
    return list(dict.fromkeys(text.split(",")))


def parser_of(description):
    parser = argparse.ArgumentParser(prog="race", description=description, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NET",
                        help=f"networks, also ONNX files, or trainings (default: {', '.join(networks.PUBLISHED)}; of trainings "
                             f"{', '.join(networks.WORKLOADS)})")
    parser.add_argument("--what", choices=variants.WHATS, default="networks",
                        help="passes of whole networks, of each distinct convolution, or epochs (default: %(default)s)")
    parser.add_argument("--device", default="cpu",
                        help="cpu, cuda, cuda:N, or rehearsal: what a race on a GPU does, without one: PyTorch on the "
                             "processor, Lamina's kernels as the host runs them (default: %(default)s)")
    defaults = variants.DEFAULTS
    parser.add_argument("--ours",
                        help=f"variants of Lamina, joined by commas, of {', '.join(variants.OURS)} (default: eigen; "
                             f"on a GPU {defaults['networks', 'cuda'][0]})")
    parser.add_argument("--peers", help=f"what they race, of {', '.join(variants.PEERS)} (default: "
                                        f"{defaults['networks', 'cpu'][1]}; layers: {defaults['layers', 'cpu'][1]}; "
                                        f"trainings: {defaults['trainings', 'cpu'][1]}; on a GPU "
                                        f"{defaults['networks', 'cuda'][1]})")
    parser.add_argument("--modes", type=modes, default=["training"],
                        help="of networks: training, inference, or both joined by a comma (default: training)")
    parser.add_argument("--batch", type=whole(1), default=16, help="images of a pass (default: %(default)s)")
    parser.add_argument("--share", type=positive, default=0.1024,
                        help="of the trainings' synthetic sets (default: %(default)s, whole batches)")
    parser.add_argument("--threads", type=whole(1), default=len(os.sched_getaffinity(0)),
                        help="of every worker (default: the processors that this process may use, here %(default)s)")
    parser.add_argument("--rounds", type=whole(2), default=9,
                        help=f"each one pass of every variant; fewer than {FEWEST_ROUNDS} have no interval (default: "
                             "%(default)s)")
    parser.add_argument("--retries", type=whole(0), default=3,
                        help="how often a pass that other programs disturbed is run again at most; an epoch is not "
                             "(default: %(default)s)")
    parser.add_argument("--memory", choices=("yes", "no", "only"), default="yes",
                        help="of networks: whether peaks of memory are measured; only: and no times (default: "
                             "%(default)s)")
    parser.add_argument("--python", action="append", default=[], metavar="EXE",
                        help="an interpreter with a peer; may be given more than once (default: the first of "
                             "python3 and /usr/bin/python3 that has it)")
    parser.add_argument("--program", default=networks.BENCH,
                        help="the lamina_bench that is Lamina's side, and that judges (default: %(default)s)")
    parser.add_argument("--patience", type=positive, default=600.0, metavar="S",
                        help="seconds that a worker may take for an answer before it is ended and its variant left out "
                             "(default: %(default).0f)")
    parser.add_argument("--limit", metavar="X",
                        help="status 3 where Lamina is slower by more than this share, as 3%%; --fail-if-slower of "
                             "`lamina_bench compare` (default: no limit)")
    parser.add_argument("--benchmark_out", default="results/race.json", metavar="FILE",
                        help="the JSON file to write (default: %(default)s)")
    return parser


def read_variants(parser, given):
    """Fills in the variants, and refuses those that do not go with the rest."""
    if (given.what, given.device) not in variants.DEFAULTS:
        parser.error(f"--what {given.what} races on the processor; leave out --device")
    given.ours, given.peers = (chosen or usual for chosen, usual in zip((given.ours, given.peers),
                                                                       variants.DEFAULTS[given.what, given.device]))
    for flag in ("ours", "peers"):
        try:
            setattr(given, f"{flag}_variants", variants.read(getattr(given, flag), given.what, given.device))
        except variants.BadVariant as error:
            parser.error(f"--{flag}: {error}")
    for variant in given.ours_variants:
        if not variant.ours:
            parser.error(f"--ours: {variant.engine} is not of Lamina; name it in --peers")
    for variant in given.peers_variants:
        if variant.ours:
            parser.error(f"--peers: {variant.word} is of Lamina; name it in --ours")
    if given.what == "layers":  # of which ours say what there is to race
        ours = dict.fromkeys(variant.precision for variant in given.ours_variants)
        for variant in given.peers_variants:
            if variant.precision not in ours:
                parser.error(f"--peers: {variant.word} has nothing of ours beside it: --ours races in {', '.join(ours)}")
    for mode in given.modes if given.what == "networks" else ():
        if not any(mode in variant.modes for variant in given.peers_variants):
            parser.error(f"--peers: none of {given.peers} runs {mode} (--modes)")


def parse(description, words=None):
    """The options; ends the process with the reason where one of them makes no sense."""
    parser = parser_of(description)
    given = parser.parse_args(words)
    given.device_word = given.device
    if not re.fullmatch(r"cpu|cuda|cuda:\d+|rehearsal", given.device):
        parser.error(f"--device: there is no '{given.device}'; there are cpu, cuda, cuda:N, rehearsal")
    given.device, _, number = given.device.partition(":")
    given.device_number = int(number or 0)
    read_variants(parser, given)
    known = networks.WORKLOADS if given.what == "trainings" else networks.NAMES
    given.networks = given.networks or list(networks.WORKLOADS if given.what == "trainings" else networks.PUBLISHED)
    for name in given.networks:
        if name.endswith(".onnx") and given.what == "networks":
            if not os.path.isfile(name):
                parser.error(f"there is no file {name}")
            if any(variant.engine == "torch" for variant in given.peers_variants):
                parser.error(f"--peers: torch cannot read {name}; onnxruntime and openvino can, with --modes inference")
            continue
        try:
            variants.check_known("training" if given.what == "trainings" else "network", name, known)
        except variants.BadVariant as error:
            parser.error(str(error))
    given.networks = list(dict.fromkeys(given.networks))
    if given.share > 1:
        parser.error("--share is at most 1")
    if given.memory == "only" and (given.limit or given.what != "networks"):
        parser.error("--memory only is of networks, and leaves out the times, which --limit is of")
    if given.what == "trainings":
        given.retries = 0  # an epoch that is run again would be the next one
    given.program = os.path.abspath(given.program)
    programs = {given.program: "build the target lamina_bench, or name it with --program"}
    if given.what == "layers" and any(variant.engine == "onednn" for variant in given.peers_variants):
        programs[variants.onednn_worker(given.program)] = ("sudo apt-get install libdnnl-dev, configure again, and "
                                                           "build the target onednn_worker")
    for path, mend in programs.items():
        if os.path.isdir(path) or not os.access(path, os.X_OK):
            parser.error(f"no program at {path}: {mend}")
    return given
