"""The commands that measure a number again."""

import collections
import functools
import itertools
import os
import re
import shlex

import rows
from page import published

FLAGS = {
    "graph": "--cuda_graph",
    "recompute": "--keep=cheap",
    "unfused": "--unfused",
    "deterministic": "--deterministic",
    "measured": "--measure",
    "choices": "--choices=FILE",
}
OURS = ("eigen", "cuda", "cudnn", "cuda-host")  # backends; others are peers of bench/race
VALUES = {"synthetic": "share"}  # of a row train/...; `run` calls it otherwise
SWITCHES = ("softmax", "input_gradient", "accumulate")  # a flag, and one with no_ before it
RUN_ALONE = ("graph", "measured", "choices")  # what `sweep` takes no flag for
PROGRAM = "lamina_bench"
OUT = "--benchmark_out="
FRONTIER_ALONE = ("max_measured_error",)  # what `run` takes no flag for
TRAIN_ALONE = ("table_updates", "optimiser", "learning_rate", "seed")  # likewise
RACED = "no_validation"  # an epoch of bench/race
ON_DEVICE = "no_readings"  # what a race on a GPU has in its context


def exactly(name):
    """The expression that picks this row alone. \\ before what an expression of std::regex would read as its own."""
    return "^" + re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", name) + "$"


@functools.cache
def files_of(command):
    """{network: the ONNX file that it was read from} of a command of lamina_bench."""
    try:
        words = shlex.split(command)
    except ValueError:  # no command of a shell
        return {}
    found = {}
    for word, following in zip(words, [*words[1:], ""]):
        flag, equals, files = word.partition("=")
        for file in (files if equals else following).split(",") if flag == "--onnx" else []:
            found[os.path.splitext(os.path.basename(file))[0]] = file
    return found


def file_of(key, context):
    """The ONNX file of a row's network, as the command names it that measured it; "" of any other network."""
    return files_of(context.get("command", "")).get(key["network"], "")


def named(key, context):
    """The word that names the network to a subcommand; none where a flag of `settings` brings it."""
    return [] if file_of(key, context) else [key["network"]]


def settings(key, context):
    """The flags under which a row with this key is listed."""
    file = file_of(key, context)
    flags = [*([f"--onnx={file}"] if file else []), f"--backend={key['backend']}"]
    flags += [
        f"--{flag}={key[field]}"
        for field, flag, usual in (("batch", "batch", 16), ("type", "dtype", "f32"), ("layout", "layout", "nchw"))
        if key.get(field, usual) != usual and key[field] != "tf32"
    ]
    if key.get("type") == "tf32":
        flags.append("--math=tf32")
    for what, value in key.get("differs", {}).items():
        if what in SWITCHES:
            flags.append(f"--{what}" if value == "1" else f"--no_{what}")
        else:
            name = VALUES.get(what, what)
            flags.append(FLAGS.get(what) or (f"--{name}={value}" if value else f"--{name}"))
    if context.get("threads", "").isdigit() and "threads" not in key.get("differs", {}):
        flags.append(f"--threads={context['threads']}")
    return flags


def line(*words):
    return " ".join(shlex.quote(word) for word in words)


def lines_of(text):
    """The words of each command of a text that has one a line. A newline in quotes ends no line."""
    words = shlex.shlex(text, posix=True, punctuation_chars="\n")
    words.whitespace, words.whitespace_split, words.commenters = " \t\r", True, ""
    return [list(its) for is_end, its in itertools.groupby(words, lambda word: set(word) == {"\n"}) if not is_end]


def together(found):
    """Commands, of pairs of a network and its command or lines of these, one a line, each with a file of its own. Those
    that differ in the network alone, which is a word of theirs, are one, with the networks joined by commas."""
    lines = {}
    for network, words in ((network, words) for network, text in found for words in lines_of(text)):
        place = words.index(network) if words.count(network) == 1 else len(words)
        networks = lines.setdefault((tuple(words[:place]), tuple(words[place + 1 :])), {})
        networks.update(dict.fromkeys(words[place : place + 1]))
    texts, files = [], collections.Counter()
    for (before, after), networks in lines.items():
        words = [*before, *([",".join(networks)] if networks else []), *after]
        files.update(word for word in words if word.startswith(OUT))
        texts.append(line(*(numbered(word, files[word]) for word in words)))
    return "\n".join(texts)


def numbered(word, count):
    """A flag of a file that `count` commands have so far."""
    return word if count < 2 else f"{word.removesuffix('.json')}_{count}.json"


def filter_of(key):
    """Picks a row alone. The number of threads is no part of a name."""
    differs = {what: value for what, value in key.get("differs", {}).items() if what != "threads"}
    return f"--benchmark_filter={exactly(rows.name_of(key | {'differs': differs}))}"


def is_of_race(key):
    """Whether `run` has no such row, and bench/race/compare has."""
    return key["backend"] not in OURS or RACED in key.get("differs", {})


def row_command(key, samples, context):
    if is_of_race(key):
        return peer_command(key, context)
    if "algorithm" in key.get("differs", {}):  # of every layer that has it: a sweep alone does that
        return sweep_command(key, samples, context)
    return line(PROGRAM, "run", filter_of(key), *settings(key, context), f"--passes={max(samples, 6)}")


def peer_command(key, context):
    """Of a row of a race: that race. A peer's variant is what its key has beyond the defaults."""
    words = ["bench/race/compare", *(["--device=cuda"] if ON_DEVICE in context else [])]
    differs = key.get("differs", {})
    if key["what"] == "train":
        share = [f"--share={differs['synthetic']}"] if differs.get("synthetic") else []
        return line(*words, f"--trainings={key['network']}", *share)
    batch = [f"--batch={key['batch']}"] if key["batch"] != 16 else []
    if key["what"] == "layer":
        return line(*words, "--layers", "--nets", key["network"], *batch)
    if ON_DEVICE in context:
        variant = [f"--torch={variant}@{key['layout']}" for variant in differs]
        words += [f"--precision={key['type']}", *variant]
    else:
        peer = "+".join([key["backend"].partition("-")[0], *differs])
        words += [] if peer == "torch" else ["--peers", peer]
    mode = "inference" if key["part"] == "inference" else "training"
    return line(*words, "--nets", key["network"], "--modes", mode, *batch)


def versions_command(name, key, context):
    """Of a row that two versions have: both in turns, or of a call of a ledger the ledger of each."""
    if not {"what", "network", "part", "backend", "type", "layout", "batch"} <= key.keys():
        return line("bench/race/versions", "--programs=BEFORE,AFTER", f"--benchmark_filter={exactly(name)}")
    if is_of_race(key):
        return peer_command(key, context)
    if key["what"] == "ledger":
        return found_command("ledger", key, context)
    if "algorithm" in key.get("differs", {}):
        return sweep_command(key, 0, context)
    if key["what"] == "train":
        return train_command(key, context)
    return line("bench/race/versions", "--programs=BEFORE,AFTER", filter_of(key), *settings(key, context))


def train_command(key, context):
    """Of a row train/...: of both versions in turns, or of each by `train`, where `run` has no such row."""
    flags = [*settings(key, context), *data_of(key)]
    if not is_network(key, context) and not key.get("differs", {}).keys() & set(TRAIN_ALONE):
        return line("bench/race/versions", "--programs=BEFORE,AFTER", filter_of(key), *flags)
    flags = [flag for flag in flags if not flag.startswith("--batch=")]
    batch = [f"--batch={key['batch']}"] if is_network(key, context) else []  # without it `train` has another than `run`
    return line(PROGRAM, "train", *named(key, context), *batch, *flags)


def epochs_command(key, epochs, context):
    """Of a row train/... of `run`."""
    return line(PROGRAM, "run", filter_of(key), *settings(key, context), *data_of(key), f"--passes={epochs}")


def is_network(key, context):
    """Whether a training is of no workload, whose batch is the published one."""
    return bool(file_of(key, context)) or key["network"] not in published.workloads()


def data_of(key):
    """The flag of a training on real files; one on a synthetic set has its share among its settings."""
    return [] if key.get("differs", {}).get("synthetic") else ["--data=DIR"]


def sweep_command(key, samples, context, batches=None, thread_counts=None, limit=""):
    """Of a row: a sweep of its batch and its number of threads, or of these batches or numbers of threads in their
    place; of no batches: of all that fit in memory, or in the limit."""
    differs = dict(key.get("differs", {}))
    algorithm, threads = differs.pop("algorithm", ""), differs.pop("threads", context.get("threads", ""))
    batches = [key["batch"]] if batches is None else batches
    counts = thread_counts or ([threads] if threads.isdigit() else [])
    return line(
        PROGRAM,
        "sweep",
        *named(key, context),
        *([f"--algorithms={algorithm}"] if algorithm else []),
        *([f"--batch={','.join(map(str, batches))}"] if batches else []),
        *settings(key | {"differs": differs, "batch": 16}, context),
        *([f"--thread_counts={','.join(map(str, counts))}"] if counts else []),
        *(["--inference"] if key["part"] == "inference" else []),
        *([f"--memory_limit={limit}"] if limit else []),
        f"--passes={max(samples, 6)}",
        f"{OUT}sweep.json",
    )


def swept_command(timings, **what):
    """Of rows of a network that differ in their batches or their numbers of threads alone: a sweep of these; where no
    sweep has such rows, the command of each. `what`: as of sweep_command."""
    key = timings[0].key
    if is_of_race(key) or key.get("differs", {}).keys() & set(RUN_ALONE):
        return together((key["network"], one.command) for one in timings)
    return sweep_command(key, max(len(one.seconds) for one in timings), timings[0].origin.context, **what)


def found_command(subcommand, key, context, *more):
    """Of a ledger, a frontier or a memory."""
    return line(PROGRAM, subcommand, *named(key, context), *settings(key, context), *more)


def layers_command(key, samples, context):
    """Of all rows of a network's layers, by every algorithm."""
    if is_of_race(key):
        return peer_command(key, context)
    name = exactly(f"layer/{key['network']}/")[:-1]
    passes = f"--passes={max(samples, 6)}"
    return line(PROGRAM, "run", f"--benchmark_filter={name}", *settings(key, context), passes)


def layer_command(key, node, pass_, context):
    """Of one layer of a ledger or frontier, whose limits on what it picks change no row."""
    differs = {what: value for what, value in key.get("differs", {}).items() if what not in FRONTIER_ALONE}
    key = key | {"differs": differs}
    name = f"layer/{key['network']}/{node}/{pass_}"
    return line(PROGRAM, "run", f"--benchmark_filter=^{exactly(name)[1:-1]}", *settings(key, context), "--passes=6")
