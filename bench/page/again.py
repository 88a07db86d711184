"""The commands that measure a number again."""

import re
import shlex

import rows

FLAGS = {
    "graph": "--cuda_graph",
    "recompute": "--keep=cheap",
    "unfused": "--unfused",
    "deterministic": "--deterministic",
    "measured": "--measure",
    "choices": "--choices=FILE",
}
OURS = ("eigen", "cuda", "cudnn", "cuda-host")  # backends; others are peers of bench/race
SWITCHES = ("softmax", "input_gradient", "accumulate")  # a flag, and one with no_ before it
PROGRAM = "lamina_bench"
FRONTIER_ALONE = ("max_measured_error",)  # what `run` takes no flag for


def exactly(name):
    """The expression that picks this row alone. \\ before what an expression of std::regex would read as its own."""
    return "^" + re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", name) + "$"


def settings(key, context):
    """The flags under which a row with this key is listed."""
    flags = [f"--backend={key['backend']}"]
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
            flags.append(FLAGS.get(what) or (f"--{what}={value}" if value else f"--{what}"))
    if context.get("threads", "").isdigit() and "threads" not in key.get("differs", {}):
        flags.append(f"--threads={context['threads']}")
    return flags


def line(*words):
    return " ".join(shlex.quote(word) for word in words)


def filter_of(key):
    """Picks a row alone. The number of threads is no part of a name."""
    differs = {what: value for what, value in key.get("differs", {}).items() if what != "threads"}
    return f"--benchmark_filter={exactly(rows.name_of(key | {'differs': differs}))}"


def row_command(key, samples, context):
    if key["backend"] not in OURS:
        return peer_command(key)
    if "algorithm" in key.get("differs", {}):  # of every layer that has it: a sweep alone does that
        return sweep_command(key, samples, context)
    return line(PROGRAM, "run", filter_of(key), *settings(key, context), f"--passes={max(samples, 6)}")


def peer_command(key):
    """Of a row that is not Lamina's: the race that it was in."""
    batch = [f"--batch={key['batch']}"] if key["batch"] != 16 else []
    if key["what"] == "layer":
        return line("bench/race/compare", "--layers", "--nets", key["network"], *batch)
    peer = key["backend"].partition("-")[0]
    peers = [] if peer == "torch" else ["--peers", peer]
    mode = "inference" if key["part"] == "inference" else "training"
    return line("bench/race/compare", *peers, "--nets", key["network"], "--modes", mode, *batch)


def versions_command(name, key, context):
    """Of a row that two versions have: both in turns, or of a call of a ledger the ledger of each."""
    if not {"what", "network", "part", "backend", "type", "layout", "batch"} <= key.keys():
        return line("bench/race/versions", "--programs=BEFORE,AFTER", f"--benchmark_filter={exactly(name)}")
    if key["what"] == "ledger":
        return found_command("ledger", key, context)
    if "algorithm" in key.get("differs", {}):
        return sweep_command(key, 0, context)
    return line("bench/race/versions", "--programs=BEFORE,AFTER", filter_of(key), *settings(key, context))


def sweep_command(key, samples, context):
    """Of a row with an algorithm: a sweep of one batch and one number of threads."""
    differs = dict(key["differs"])
    algorithm, threads = differs.pop("algorithm"), differs.pop("threads", context.get("threads", ""))
    return line(
        PROGRAM,
        "sweep",
        key["network"],
        f"--algorithms={algorithm}",
        *([f"--batch={key['batch']}"] if key["batch"] == 16 else []),  # a sweep alone would take many
        *settings(key | {"differs": differs}, context),
        *([f"--thread_counts={threads}"] if threads.isdigit() else []),
        *(["--inference"] if key["part"] == "inference" else []),
        f"--passes={max(samples, 6)}",
        "--benchmark_out=sweep.json",
    )


def found_command(subcommand, key, context):
    """Of a ledger, a frontier or a memory."""
    return line(PROGRAM, subcommand, key["network"], *settings(key, context))


def layer_command(key, node, pass_, context):
    """Of one layer of a ledger or frontier, whose limits on what it picks change no row."""
    key = key | {"differs": {what: value for what, value in key.get("differs", {}).items() if what not in FRONTIER_ALONE}}
    name = f"layer/{key['network']}/{node}/{pass_}"
    return line(PROGRAM, "run", f"--benchmark_filter=^{exactly(name)[1:-1]}", *settings(key, context), "--passes=6")
