"""The options of `compare`, every one of them checked before anything runs."""

import argparse
import difflib
import math
import os

import layers
import race
import rows
from protocol import PROTOCOL, PUBLISHED, ZOO

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.normpath(os.path.join(HERE, "../../build/release/bench/peers/peer_worker"))
LARGEST = 2**31 - 1  # what the workers can read


def whole(least):
    """The type of an option that is a whole number."""
    def read(text):
        try:
            value = int(text)
        except ValueError:
            value = -1
        if not least <= value <= LARGEST:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number from {least} to {LARGEST}")
        return value
    return read


def number(text):
    """The type of an option that is a number, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of 0 or more")
    return value


def wrong_words(text, known):
    """What is wrong with words joined by commas of which each must be one of `known`, or none."""
    words = text.split(",")
    for i, word in enumerate(words):
        if not word:
            return f"there is an empty word in '{text}': leave out the comma beside it"
        if word not in known:
            near = difflib.get_close_matches(word.lower(), known)
            return f"there is no '{word}'" + (f"; did you mean {' or '.join(near)}? There are " if near else ", but ") \
                + ", ".join(known)
        if word in words[:i]:
            return f"'{word}' is there twice"
    return None


def parser_of(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(PUBLISHED),
                        help="joined by commas; bottleneck_stack is four blocks of ResNet-50's first stage (default: "
                             f"the ten of the published tables, {', '.join(PUBLISHED)})")
    parser.add_argument("--layers", action="store_true", help="each distinct convolution against oneDNN's primitives")
    parser.add_argument("--variants", default="any,winograd,nchw",
                        help="of oneDNN's primitives: its own layouts, likewise by Winograd, plain tensors (default: "
                             "%(default)s)")
    parser.add_argument("--samples", type=whole(1), default=9,
                        help="rounds, each one pass of every side (default: %(default)s)")
    parser.add_argument("--modes", default="training",
                        help="training, inference, or both joined by a comma (default: %(default)s)")
    parser.add_argument("--batch", type=whole(1), default=16, help="images of a pass (default: %(default)s)")
    parser.add_argument("--threads", type=whole(1), default=rows.cores(),
                        help="of both sides (default: the processors that this process may use, here %(default)s)")
    parser.add_argument("--layouts", default="nchw,nhwc", help="PyTorch's memory formats (default: %(default)s)")
    parser.add_argument("--our_layouts", default="nchw", help="Lamina's layouts (default: %(default)s)")
    parser.add_argument("--measure", action="store_true", help="Lamina picks algorithms by timing them")
    parser.add_argument("--python", action="append", default=[],
                        help="an interpreter with torch; may be given more than once (default: the first with torch of "
                             "python3 and /usr/bin/python3)")
    parser.add_argument("--worker", default=WORKER, help="Lamina's side (default: %(default)s)")
    parser.add_argument("--others", type=number, default=race.DISTURBED_CORES,
                        help="cores that other processes may use during a pass (default: %(default)s)")
    parser.add_argument("--retries", type=whole(0), default=3,
                        help="how often a disturbed pass is run again at most (default: %(default)s)")
    parser.add_argument("--memory", choices=("yes", "no", "only"), default="yes",
                        help="whether peaks of memory are measured; only: and no times (default: %(default)s)")
    parser.add_argument("--limit", type=number,
                        help="fail where the interval of a total lies above this ratio (default: no limit)")
    parser.add_argument("--out", help="JSON file to write (default: results/peers.json, with --layers "
                                      "results/peer_layers.json)")
    return parser


def parse(description, words=None):
    """The options; ends the process with the reason where one of them cannot be meant."""
    parser = parser_of(description)
    arguments = parser.parse_args(words)
    if arguments.samples < 2:
        parser.error("--samples must be 2 or more, 9 or more for an interval worth the name")
    if arguments.memory == "only" and arguments.limit is not None:
        parser.error("--limit is held against times, which --memory only leaves out; leave out one of the two")
    if arguments.layers and arguments.limit is not None:
        parser.error("--limit is held against the totals of networks, which --layers does not race; leave out one of "
                     "the two")
    arguments.out = arguments.out or ("results/peer_layers.json" if arguments.layers else "results/peers.json")
    for flag, known in (("nets", ZOO if arguments.layers else PROTOCOL), ("modes", rows.PASSES),
                        ("layouts", ("nchw", "nhwc")), ("our_layouts", ("nchw", "nhwc")),
                        ("variants", ("any", "winograd", "nchw"))):
        wrong = wrong_words(getattr(arguments, flag), known)
        if wrong:
            parser.error(f"--{flag}: {wrong}")
    ours = arguments.worker if not arguments.layers else layers.programs(arguments.worker)[0]
    if not os.access(ours, os.X_OK):
        parser.error(f"no program at {os.path.normpath(ours)}: build the target {os.path.basename(ours)}, or say "
                     "--worker (where peer_worker is, or would be)")
    return arguments
