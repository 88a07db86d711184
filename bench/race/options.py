"""The options of `race`. All are checked before anything runs."""

import argparse
import os
import re

import networks
import pythons
import variants

LARGEST = 2**31 - 1  # the largest number that workers read
FEWEST_ROUNDS = 6    # for an interval, as in lamina_bench compare


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
    if not 0 < float(text) < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return float(text)


def limit(text):
    """The type of --limit, which the program reads again."""
    if not re.fullmatch(r"[0-9]*\.?[0-9]+%", text) or not 0 < float(text[:-1]) < 1000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a share above 0 and below 1000%, as 3%")
    return text


def modes(text):
    """The type of --modes."""
    for mode in text.split(","):
        variants.check_known("mode", mode, variants.MODES)
    return list(dict.fromkeys(text.split(",")))


def parser_of(description):
    parser = argparse.ArgumentParser(prog="race", description=description, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)

    def add(flag, text, usual="", **more):
        default = more.get("default")
        usual = usual or (default if isinstance(default, str) else f"{default:g}" if default else "")
        parser.add_argument(flag, help=(f"{text} (default: {usual})" if usual else text).replace("%", "%%"), **more)

    defaults, every = variants.DEFAULTS, len(os.sched_getaffinity(0))
    add("networks", "networks, ONNX files among them, or trainings", f"{', '.join(networks.PUBLISHED)}; of trainings "
        f"{', '.join(networks.WORKLOADS)}", nargs="*", metavar="NET")
    add("--what", "passes of whole networks, of each distinct convolution, or epochs", choices=variants.WHATS,
        default="networks")
    add("--device", "cpu, cuda, cuda:N, or rehearsal: what a race on a GPU does, without one", default="cpu")
    add("--ours", f"variants of Lamina, joined by commas, of {', '.join(variants.OURS)}",
        f"eigen; on a GPU {defaults['networks', 'cuda'][0]}")
    add("--peers", f"variants that ours race, joined by commas, of {', '.join(variants.PEERS)}",
        "; ".join(f"{' on '.join(of)}: {words[1]}" for of, words in defaults.items()))
    add("--modes", "modes of networks: training, inference, or both joined by a comma", "training", type=modes,
        default=["training"])
    add("--batch", "images of a pass", type=whole(1), default=16)
    add("--share", "share of the trainings' synthetic sets, in whole batches", type=positive, default=0.1024)
    add("--threads", "threads of each worker", f"the processors that this process may use, here {every}", type=whole(1),
        default=every)
    add("--rounds", f"rounds of one pass of every variant; fewer than {FEWEST_ROUNDS} have no interval", type=whole(2),
        default=9)
    add("--retries", "how often a disturbed pass, but no epoch, is run again", type=whole(0), default=3)
    add("--memory", "whether peaks of memory of networks are measured; only: they, and no times",
        choices=("yes", "no", "only"), default="yes")
    add("--python", "an interpreter with a peer; may be given more than once",
        f"the first of {', '.join(pythons.USUAL)}", action="append", default=[], metavar="EXE")
    add("--program", "the lamina_bench that is Lamina's side, and that judges", default=networks.BENCH)
    add("--plans", "folder of the plans that cudnn-graph keeps", "none", metavar="DIR")
    add("--patience", "seconds for an answer, after which a worker is ended and left out", type=positive, default=600.0,
        metavar="S")
    add("--limit", "status 3 if Lamina is slower by more than this share, as 3%", "no limit", type=limit, metavar="X")
    add("--benchmark_out", "the JSON file to write", default="results/race.json", metavar="FILE")
    return parser


def read_variants(parser, given):
    """Sets the variants, and refuses variants that do not fit the other options."""
    if (given.what, given.device) not in variants.DEFAULTS:
        parser.error(f"--what {given.what} races on the processor; leave out --device")
    given.ours, given.peers = (chosen or usual for chosen, usual in zip((given.ours, given.peers),
                                                                       variants.DEFAULTS[given.what, given.device]))
    for flag, right in (("ours", "peers"), ("peers", "ours")):
        try:
            setattr(given, f"{flag}_variants", variants.read(getattr(given, flag), given.what, given.device))
        except variants.BadVariant as error:
            parser.error(f"--{flag}: {error}")
        for variant in getattr(given, f"{flag}_variants"):
            if variant.ours != (flag == "ours"):
                whose = "of Lamina" if variant.ours else "not of Lamina"
                parser.error(f"--{flag}: {variant.word} is {whose}; name it in --{right}")
    if given.what == "layers":  # our side lists the layers
        ours = dict.fromkeys(variant.precision for variant in given.ours_variants)
        for variant in given.peers_variants:
            if variant.precision not in ours:
                parser.error(f"--peers: {variant.word} has none of ours beside it: --ours races in {', '.join(ours)}")
    for mode in given.modes if given.what == "networks" else ():
        if not any(mode in variant.modes for variant in given.peers_variants):
            parser.error(f"--peers: none of {given.peers} runs {mode} (--modes)")


def parse(description, words=None):
    """The options. Ends the process, with the reason, if an option makes no sense."""
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
        if name.endswith(".onnx"):
            if given.what != "networks":
                parser.error(f"{name}: --what {given.what} takes no files: leave out --what, or name built-in networks")
            if not os.path.isfile(name):
                parser.error(f"there is no file {name}")
            continue
        try:
            variants.check_known("training" if given.what == "trainings" else "network", name, known)
        except variants.BadVariant as error:
            parser.error(str(error))
    given.networks = list(dict.fromkeys(given.networks))
    names = [networks.name_of(name) for name in given.networks]
    if twice := [net for net, name in zip(given.networks, names) if names.count(name) > 1]:
        parser.error(f"{' and '.join(twice)} would have rows of one name: rename a file, or race them one by one")
    if given.share > 1:
        parser.error("--share is at most 1")
    if given.memory == "only" and (given.limit or given.what != "networks"):
        parser.error("--memory only is for networks; it measures no times, so --limit has nothing to judge")
    if given.what == "trainings":
        given.retries = 0  # an epoch cannot be run again: the training would run the next epoch
    given.program = os.path.abspath(given.program)
    programs = {given.program: "build the target lamina_bench, or name it with --program"}
    if given.what == "layers" and any(variant.engine == "onednn" for variant in given.peers_variants):
        programs[variants.onednn_worker(given.program)] = ("sudo apt-get install libdnnl-dev, configure again, and "
                                                           "build the target onednn_worker")
    for path, mend in programs.items():
        if os.path.isdir(path) or not os.access(path, os.X_OK):
            parser.error(f"no program at {path}: {mend}")
    return given
