"""Reading what a result file says. What is not as it must be is Damaged, with the path of the field."""

import os
import statistics

import rows
from page import comparisons
from page.fields import Damaged, key_of
from page.measured import Found, Measured, Origin, Timing

UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
COUNTERS = ("plan_MiB", "peak_flops_per_second")
AMOUNTS = {"flops": "flops_per_second", "bytes": "bytes_per_second"}  # of a pass, from the rate of one


ROW = ("what", "network", "part", "backend", "type", "layout", "batch")
SERIES = ("network", "part", "backend")


def measured_in(root, source):
    """What one file says. Raises Damaged."""
    its = Measured()
    del its.sources
    context = source.context
    if root.has("benchmarks"):
        take_rows(root, source, its)
    for race in sorted(root.objects("races"), key=lambda race: race.text("date")):
        take_race(race, source, its)
    origin = its.origins[0] if its.origins else Origin(source, context)
    if not its.origins:
        its.origins.append(origin)
    for name in ("ledgers", "frontiers", "memories"):
        for fields in root.objects(name):
            getattr(its, name).append(CHECKS[name](fields, origin))
    take_trainings(root, its)
    for fields in root.objects("answers"):
        said = {"what": fields.text("what"), "text": fields.text("text"), "value": fields.number("value", None)}
        its.answers.append(Found(origin, said, key_of(fields, SERIES)))
    for fields in root.objects("not_planned"):
        its.not_planned.append(Found(origin, {"reason": fields.text("reason")}, key_of(fields, SERIES)))
    comparisons.take(root, origin, its)
    return its


def take_rows(root, source, its):
    origins, found, variants, trainings, rounds = {}, {}, {}, {}, {}
    context = root.object("context") if root.has("context") else root
    for one in context.objects("variants"):
        facts = one.object("context").value if one.has("context") else {}
        variants[one.text("variant")] = {
            name: str(value) for name, value in facts.items() if not isinstance(value, (list, dict))
        }
    for row in root.objects("benchmarks"):
        if row.text("run_type", "iteration") != "iteration":
            continue
        if not row.has("key"):
            raise Damaged(
                f'{row.path} has no "key": written by an older version of Lamina, or by another program; run it again'
            )
        variant = row.text("variant", "")
        if variant not in origins:
            is_race = os.path.basename(source.context.get("executable", "")) == "compare"  # bench/race/compare
            origins[variant] = Origin(
                source, variants.get(variant) or source.context, variant, in_turns=source if is_race else None
            )
        name = row.text("run_name", "") or row.text("name")
        timing = found.get((variant, name))
        if timing is None:
            timing = found[variant, name] = Timing(origins[variant], name, key_of(row, ROW))
        elif key_of(row, ROW) != timing.key:
            raise Damaged(f"{row.where('key')} is another one than that of the same row before")
        take_sample(row, timing, rounds.setdefault((variant, name), {}))
        if timing.key["what"] == "train" and not timing.failure:
            take_epoch(row, timing, trainings)
    for whose, by_round in rounds.items():
        if by_round:  # passes of a process resemble each other, so that the process is the sample
            found[whose].seconds = [statistics.median(seconds) for seconds in by_round.values()]
    its.trainings += trainings.values()
    its.origins += origins.values() or [Origin(source, source.context)]
    its.timings += found.values()


def take_sample(row, timing, rounds):
    """Into the timing, and what bench/race/versions ran in rounds by these, too."""
    if row.flag("error_occurred", False) or row.flag("skipped", False):
        timing.failure = row.text("error_message", "") or row.text("skip_message", "failed")
        timing.out_of_memory = row.text("failure", "") == "out_of_memory" or timing.failure.startswith("OutOfMemory")
        timing.predicted = row.flag("predicted", False)
        timing.bytes_wanted = row.number("bytes_wanted", 0)
        return
    unit = row.text("time_unit", "ns")
    if unit not in UNITS:
        raise Damaged(f'{row.where("time_unit")} is "{unit[:20]}"; one of {", ".join(UNITS)} is needed')
    seconds = UNITS[unit] * row.positive("real_time")
    if row.has("real_times"):  # all passes in one entry, which is that of one of them
        timing.seconds += [UNITS[unit] * one for one in row.times("real_times")]
    else:
        timing.seconds.append(seconds)
        if row.has("round"):
            rounds.setdefault(row.number("round"), []).append(seconds)
    if row.has("joules"):
        timing.joules.append(row.positive("joules"))
    for name in COUNTERS:
        if row.has(name):
            timing.readings.setdefault(name, []).append(row.amount(name))
            timing.counters[name] = statistics.median(timing.readings[name])
    for name, rate in AMOUNTS.items():
        if row.has(rate):
            timing.counters[name] = row.amount(rate) * seconds
    timing.others_share = max(timing.others_share, row.number("others_share", 0))
    timing.algorithm = row.text("algorithm", timing.algorithm)
    timing.grade = row.text("grade", timing.grade)
    timing.reasons = row.texts("grade_reasons", timing.reasons)


def take_race(race, source, its):
    """Of a network in several races of a file the latest counts."""
    load = race.numbers("load_avg", [])
    peers = race.object("peers") if race.has("peers") else None
    facts = {name: str(race.value[name]) for name in ("commit", "date", "threads") if race.has(name)}
    if load:
        facts["load_average_start"] = " ".join(f"{one:.2f}" for one in load)
    if peers is not None:
        facts["peers"] = ", ".join(peers.value)
        if peers.has("lamina"):
            facts["backend_eigen"] = peers.object("lamina").text("backend", "")
    origin = Origin(source, source.context | facts)
    origin.in_turns = origin
    its.origins.append(origin)
    found = []
    for row in race.objects("rows"):
        key = key_of(row, ROW)
        milliseconds = row.numbers("ms")
        if not milliseconds or min(milliseconds) <= 0:
            raise Damaged(f"{row.where('ms')} has no times above 0")
        found.append(Timing(origin, rows.name_of(key), key, [1e-3 * one for one in milliseconds]))
    found += totals(found)
    names = {one.name for one in found}
    its.timings[:] = [one for one in its.timings if one.name not in names] + found


def totals(timings):
    """Forward and backward of each round together, as race.seconds() has them, where no row has them."""
    by_name = {one.name: one for one in timings}
    found = []
    for forward in timings:
        backward = by_name.get(rows.name_of(forward.key | {"part": "backward"}))
        key = forward.key | {"part": "total"}
        if forward.key["part"] == "forward" and backward and rows.name_of(key) not in by_name:
            found.append(
                Timing(
                    forward.origin, rows.name_of(key), key, [a + b for a, b in zip(forward.seconds, backward.seconds)]
                )
            )
    return found


CALL = {"layers": "text", "op": "text", "pass": "text", "algorithm": "text", "seconds": "positive"}
FOUND = ("network", "backend", "type", "layout", "batch")


def take_ledger(fields, origin):
    calls = []
    for call in fields.objects("calls"):
        one = {name: getattr(call, kind)(name) for name, kind in CALL.items()}
        one |= {name: call.amount(name, None) for name in ("flops", "bytes", "live_bytes", "predicted_seconds")}
        one |= {
            "node": call.text("node", ""),
            "samples": call.numbers("samples", []),
            "call": call.whole("call", len(calls)),
        }
        calls.append(one)
    its = {
        name: fields.amount(name, None)
        for name in (
            "passes",
            "forward_seconds",
            "backward_seconds",
            "peak_flops_per_second",
            "product_flops_per_second",
            "memory_bytes_per_second",
            "passes_asked",
        )
    }
    return Found(origin, its | {"calls": calls, "peak_is": fields.text("peak_is", "")}, key_of(fields, FOUND))


def take_frontier(fields, origin):
    lines = []
    for line in fields.objects("lines"):
        tried = []
        for one in line.objects("algorithms"):
            tried.append(
                {"algorithm": one.text("algorithm"), "failure": one.text("failure", "")}
                | {name: one.amount(name, None) for name in ("seconds", "low", "high", "workspace_bytes", "error")}
                | {name: one.flag(name, None) for name in ("deterministic", "on_frontier", "picked", "by_rule")}
            )
        lines.append(
            {"node": line.text("node"), "pass": line.text("pass"), "layers": line.whole("layers", 1), "tried": tried}
        )
    return Found(origin, {"lines": lines, "complete": fields.flag("complete", True)}, key_of(fields, FOUND))


def take_memory(fields, origin):
    steps = []
    for step in fields.objects("steps"):
        by_kind = step.object("by_kind", {})
        steps.append(
            {
                "step": step.whole("step", len(steps)),
                "layers": step.text("layers", ""),
                "pass": step.text("pass", ""),
                "live_bytes": step.amount("live_bytes"),
                "by_kind": {kind: by_kind.amount(kind) for kind in by_kind.value},
            }
        )
    parts = ("parameters", "state", "optimiser", "inputs", "arena", "prepared", "total")
    its = {name: fields.amount(name, None) for name in (*parts, "largest_batch", "limit_bytes")}
    return Found(origin, its | {"steps": steps}, key_of(fields, ("network", "backend", "batch")))


CHECKS = {"ledgers": take_ledger, "frontiers": take_frontier, "memories": take_memory}


EPOCH = ("loss", "accuracy", "validation_loss", "validation_accuracy", "joules")


def take_epoch(row, timing, trainings):
    """A row of a training is an epoch."""
    training = trainings.get(timing)
    if training is None:
        training = trainings[timing] = Found(timing.origin, {"epochs": [], "data": row.text("label", "")}, timing.key)
    place = row.whole("epoch", row.whole("repetition_index", len(training["epochs"])))
    training["epochs"].append(
        {"epoch": int(place) + 1, "seconds": timing.seconds[-1], "joules_missing": row.text("joules_missing", "")}
        | {name: row.number(name, None) for name in EPOCH}
    )


def take_trainings(root, its):
    """What a file says of its trainings besides their epochs."""
    for fields in root.objects("trainings"):
        name, said = fields.text("name"), {}
        said["optimiser"] = fields.text("optimiser", "")
        said["seed"] = fields.number("seed", None)
        said["onnx"] = fields.text("onnx", "")
        said["is_network"] = fields.has("published") and fields.value["published"] is None  # no workload of the posts
        if fields.has("best_possible"):
            best = fields.object("best_possible")
            said["best_possible"] = {"loss": best.number("loss"), "accuracy": best.number("accuracy")}
        keys = [one.key for one in its.timings if one.name == name]
        for training in its.trainings:
            if any(training.key is key for key in keys):
                training.fields.update(said)
