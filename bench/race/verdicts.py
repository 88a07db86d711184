"""What may be said of one row of lamina_bench that several variants (versions of a library, builds of the program) ran in
turns: equal, slower, faster, and what explains a slowdown."""

import dataclasses
import statistics

import intervals

LEAST = 0.02  # a ratio counts as a difference only beyond this, however narrow its interval
EQUAL = 0.05  # rows are equal only where the whole interval is within this of 1, however near the ratio is
MORE_MEMORY = 1.01
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
BACKWARD = ("backward_params", "backward_data")  # of layers
# Differences from the defaults that only rows of networks have.
OF_NETWORKS = ("graph", "recompute", "unfused", "measured", "choices", "softmax", "input_gradient", "accumulate")


@dataclasses.dataclass
class Observation:
    """What one process, one round of a variant, has to say of a row."""
    seconds: float = 0     # least of its passes, which others only disturb; of a row of set-up the first
    memory_MiB: float = 0  # what the plan holds, workspace included; 0: not known
    algorithm: str = ""    # that the variant picked, where it says so
    failure: str = ""      # why there is no time
    kind: str = ""         # of the failure: unsupported, out_of_memory or failed
    key: dict = dataclasses.field(default_factory=dict)  # what the row is of


@dataclasses.dataclass
class Difference:
    """How a row differs in a variant from the same row in the first one."""
    name: str
    verdict: str = "undecided"
    ratio: float = 1       # time over the first's: the median of the rounds' ratios, with its interval
    low: float = 1
    high: float = 1
    seconds: float = 0     # medians over the rounds
    first_seconds: float = 0
    memory_MiB: float = 0  # of the last round
    first_memory_MiB: float = 0
    algorithm: str = ""
    first_algorithm: str = ""
    regression: str = ""   # "pick", "kernel", "memory", "first call", "layers"
    evidence: str = ""     # the figures for it
    failure: str = ""      # of one that fails, its kind
    key: dict = dataclasses.field(default_factory=dict)  # what the row is of

    @property
    def is_layer(self):
        return self.key.get("what") == "layer"

    @property
    def is_default(self):
        """Whether it is a layer's row by the algorithm that the backend picks."""
        return self.key.get("algorithm") == "default"

    def is_alike(self, other):
        """Whether both are rows of one layer, by any algorithm."""
        return self.key | {"algorithm": ""} == other.key | {"algorithm": ""}

    @property
    def times(self):
        return f"{1e3 * self.first_seconds:.3f} -> {1e3 * self.seconds:.3f} ms"


def observations(result):
    """{row: Observation} of a result file of lamina_bench."""
    found = {}
    for run in result["benchmarks"]:
        if run.get("run_type") != "iteration":
            continue
        seen = found.setdefault(run["name"], Observation(key=run["key"]))
        if run.get("error_occurred") or run.get("skipped"):
            seen.failure = run.get("error_message") or run.get("skip_message") or "failed"
            seen.kind = run.get("failure", "failed")
        # A first call is the first one: by the next, libraries are open and their parts are loaded.
        elif seen.key["what"] != "setup" or run.get("repetition_index", 0) == 0:
            seconds = UNITS[run.get("time_unit", "ns")] * run["real_time"]
            seen.seconds = min(seen.seconds, seconds) if seen.seconds > 0 else seconds
            seen.memory_MiB, seen.algorithm = run.get("plan_MiB", 0), run.get("algorithm", "")
    return found


def last(rounds):
    """The last of the rounds that has a time, or else that has anything."""
    there = [one for one in rounds if one is not None]
    return next((one for one in reversed(there) if not one.failure), there[-1] if there else None)


def judge(name, first, other):
    """A Difference of the rounds of both, without what explains it."""
    a, b = last(first), last(other)
    found = Difference(name, key=(a or b).key)
    if a is None or b is None:
        found.evidence = "no such row here" if b is None else "no such row in the first"
        return found
    found.memory_MiB, found.first_memory_MiB = b.memory_MiB, a.memory_MiB
    found.algorithm, found.first_algorithm = b.algorithm, a.algorithm
    if a.failure or b.failure:
        found.verdict = "fails in both" if a.failure and b.failure else "fails" if b.failure else "no longer fails"
        found.evidence, found.failure = b.failure or a.failure, b.kind or a.kind
        return found
    pairs = [(x.seconds, y.seconds) for x, y in zip(first, other) if x and y and x.seconds > 0 and y.seconds > 0]
    if pairs:
        found.first_seconds, found.seconds = map(statistics.median, zip(*pairs))
        found.low, found.ratio, found.high = intervals.of_ratio(*zip(*pairs))
    if len(pairs) >= intervals.FEWEST:
        found.verdict = ("slower" if found.low > 1 and found.ratio > 1 + LEAST
                         else "faster" if found.high < 1 and found.ratio < 1 / (1 + LEAST)
                         else "equal" if found.low > 1 / (1 + EQUAL) and found.high < 1 + EQUAL else "undecided")
        if found.verdict == "undecided":
            found.evidence = "the rounds differ too much: more of them, or a quieter machine"
    elif pairs:
        found.evidence = f"{len(pairs)} rounds have both; {intervals.FEWEST - len(pairs)} more needed"
    return found


def explain_layer(row, every):
    """"pick" where the default's algorithm differs and the fastest of the layer's got no slower; else "kernel"."""
    by = row.algorithm if row.is_default and row.algorithm else row.key["algorithm"]
    row.regression, row.evidence = "kernel", f"{row.times} by {by}"
    if not row.is_default:
        return
    other_pick = row.algorithm != row.first_algorithm
    if other_pick:
        row.evidence += f", picked {row.algorithm} instead of {row.first_algorithm}"
    named = [one for one in every if one.is_layer and not one.is_default and one.seconds > 0 and one.is_alike(row)]
    if not named:
        return
    before = min(named, key=lambda one: one.first_seconds)
    now = min(named, key=lambda one: one.seconds)
    row.evidence += (f"; the fastest: {1e3 * before.first_seconds:.3f} ms by {before.key['algorithm']} -> "
                     f"{1e3 * now.seconds:.3f} ms by {now.key['algorithm']}")
    if other_pick and now.seconds <= before.first_seconds * (1 + LEAST):
        row.regression = "pick"


def setting(key):
    """The network, where it runs and how, without what only a network's row has."""
    differs = {what: value for what, value in key.get("differs", {}).items() if what not in OF_NETWORKS}
    return [key.get(field) for field in ("network", "backend", "type", "layout", "batch")] + [differs]


def is_within(layer, net):
    """Whether the layer's pass, of this backend, type, layout and batch, is a part of what the network's row times."""
    if setting(layer) != setting(net):
        return False
    return net["part"] == "total" or (net["part"] == "backward") == (layer["part"] in BACKWARD)


def explain_network(row, every):
    """"layers" where some of its layers' rows got slower: of a layer with a default row, that one alone."""
    row.regression, row.evidence = "kernel", row.times
    within = [one for one in every if one.is_layer and is_within(one.key, row.key)]
    defaults = [one for one in within if one.is_default]
    ran = defaults + [one for one in within if not any(one.is_alike(default) for default in defaults)]
    slower = sorted((one for one in ran if one.verdict == "slower"), key=lambda one: one.first_seconds - one.seconds)
    if not ran:
        row.evidence += "; no row of its layers ran: let the filter pick layer/ rows too"
    elif not slower:
        row.evidence += f"; none of {len(ran)} rows of its layers got slower"
    else:
        row.regression = "layers"
        row.evidence += "; " + ", ".join(f"{one.name} (+{1e3 * (one.seconds - one.first_seconds):.3f} ms, "
                                         f"{one.regression})" for one in slower[:3])


def explain(row, every):
    """Fills in what explains a slowdown."""
    if row.verdict == "fails":
        row.regression = "memory" if row.failure == "out_of_memory" else ""
        return
    if row.verdict == "slower" and row.key.get("what") == "setup":
        row.regression, row.evidence = "first call", row.times
    elif row.verdict == "slower":
        (explain_layer if row.is_layer else explain_network)(row, every)
    if row.memory_MiB > MORE_MEMORY * row.first_memory_MiB > 0:
        row.regression = ", ".join(filter(None, (row.regression, "memory")))
        row.evidence = "; ".join(filter(None, (row.evidence,
                                               f"{row.first_memory_MiB:.1f} -> {row.memory_MiB:.1f} MiB")))


def fields_of(row):
    """What the file has of a Difference: no ratio, where a side has no time."""
    fields = dataclasses.asdict(row)
    return fields if row.seconds > 0 else {name: fields[name] for name in fields if name not in ("ratio", "low", "high")}


def compare(first, other):
    """Every row of either, in the order of names; both map a row to its rounds."""
    found = [judge(name, first.get(name, []), other.get(name, [])) for name in sorted({*first, *other})]
    for row in sorted(found, key=lambda one: one.key.get("what") == "net"):  # which name the labels of their layers
        explain(row, found)
    return found
