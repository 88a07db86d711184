"""The race: passes in the order A B C, C B A, ..., and what may be said of their times and of their memory."""

import itertools
import statistics
import time

import intervals
import rows
import workers

SETTLE_SECONDS = 0.05  # after a pass the other side's threads still spin for a moment
DISTURBED_CORES = 0.1
BEST = "best of all peers"
BEST_AS_IT_COMES = "best as it comes"  # of those without a variant, where others have one
CPU = " cpu"  # after a pass: judged by the processor time of all threads of a side's process
MEBIBYTE = 2**20


def turns(sides, rounds):
    """(round, side) in the order A B C, C B A, A B C, ..., so that drift meets all alike."""
    for i in range(rounds):
        for k in range(sides) if i % 2 == 0 else reversed(range(sides)):
            yield i, k


def run_quietly(subject, mode, others, retries):
    """One pass, again while others took the cores; the last attempt counts."""
    for attempt in range(retries + 1):
        time.sleep(SETTLE_SECONDS)
        sample = subject.run(mode)
        sample["attempts"], sample["disturbed"] = attempt + 1, sample["others_cores"] > others
        if not sample["disturbed"]:
            break
    return sample


def race(subjects, mode, rounds, others=DISTURBED_CORES, retries=3, failed=None, reading=dict):
    """Samples of every subject, round by round. The order turns from round to round, so that drift meets all alike.
    `failed(subject, error)` is called where a pass fails: the subject leaves the race without samples (None); without
    `failed` the race ends. `reading()` answers the state of the GPU after a round, which goes into its samples."""
    samples = [[] for _ in subjects]

    def one(k, work):
        if samples[k] is None:
            return
        try:
            work(subjects[k])
        except workers.WorkerError as error:
            if failed is None:
                raise
            samples[k] = None
            failed(subjects[k], error)

    for k in range(len(subjects)):
        one(k, lambda subject: subject.run(mode))  # warm-up
    for i, k in turns(len(subjects), rounds):
        one(k, lambda subject, k=k: samples[k].append(run_quietly(subject, mode, others, retries)))
        if k == (0 if i % 2 else len(subjects) - 1) and (now := reading()):  # the round's last
            for its in samples:
                if its is not None:
                    its[-1]["gpu"] = now
    return samples


def seconds(sample, what):
    part = what.removesuffix(CPU)
    suffix = "_cpu" if part != what else ""
    parts = ("forward", "backward") if part == "total" else (part,)
    return sum(sample[one + suffix] for one in parts)


def kinds(subjects):
    """The numbers of the subjects that are compared with each other: for each precision, and each of our names in it,
    that name's and every peer's in the same precision."""
    found = []
    for precision in dict.fromkeys(subject.precision for subject in subjects):
        alike = [k for k, subject in enumerate(subjects) if subject.precision == precision]
        for name in dict.fromkeys(subjects[k].name for k in alike if subjects[k].peer == "lamina"):
            found.append([k for k in alike if subjects[k].peer != "lamina" or subjects[k].name == name])
    return found


def judge(net, mode, subjects, samples, by_processor_time=False):
    """The lines of the table: each of our names against the peers of its precision, who may be missing."""
    parts = rows.passes(mode) + ((rows.passes(mode)[-1] + CPU,) if by_processor_time else ())
    return [line for kind in kinds(subjects)
            for line in judge_kind(net, parts, [subjects[k] for k in kind], [samples[k] for k in kind])]


def judge_kind(net, parts, subjects, samples):
    """A line of the table for each part and peer, and, where there are several, one against the fastest of all of them.
    Our layout, where there are several, is the faster in total."""
    def times(k, what):
        return [seconds(sample, what) for sample in samples[k]]

    def fastest(candidates, what):
        return min(candidates, key=lambda k: statistics.median(times(k, what)))

    def of(peer):
        return [k for k, subject in enumerate(subjects) if subject.peer == peer]

    ours = fastest(of("lamina"), next(part for part in reversed(parts) if not part.endswith(CPU)))
    peers = {peer: of(peer) for peer in dict.fromkeys(subject.peer for subject in subjects) if peer != "lamina"}
    if len(peers) > 1:
        every = [k for its in peers.values() for k in its]
        untuned = {peer: its for peer, its in peers.items() if not any(subjects[k].variant for k in its)}
        if 1 < len(untuned) < len(peers):
            peers[BEST_AS_IT_COMES] = [k for its in untuned.values() for k in its]
        peers[BEST] = every
    lines = []
    for what, (peer, its) in itertools.product(parts, peers.items()):
        best = fastest(its, what)
        low, ratio, high = intervals.of_ratio(times(best, what), times(ours, what))
        lines.append({
            "net": net, "pass": what, "precision": subjects[ours].precision, "lamina": subjects[ours].name,
            "backend": subjects[ours].backend, "variant": subjects[ours].variant, "peer": peer, "fastest_peer": subjects[best].peer, "peer_variant": subjects[best].variant,
            "layout": subjects[ours].layout, "peer_layout": subjects[best].layout, "samples": len(samples[ours]),
            "ms": 1e3 * statistics.median(times(ours, what)), "peer_ms": 1e3 * statistics.median(times(best, what)),
            "ratio": ratio, "low": low, "high": high,
            "disturbed": max(sum(s.get("disturbed", False) for s in samples[k]) for k in [ours, *its]),
        })
    return lines


def judge_memory(net, mode, subjects, peaks):
    """The lines of memory: each of our names against the peers of its precision."""
    return [line for kind in kinds(subjects)
            for line in judge_memory_of_kind(net, mode, [subjects[k] for k in kind], [peaks[k] for k in kind])]


def judge_memory_of_kind(net, mode, subjects, peaks):
    """A line for each peer, and for the best of several: our first layout's peak against the lowest of theirs. A side
    whose answer is "unsupported" has none."""
    ours = next(k for k, subject in enumerate(subjects) if subject.peer == "lamina")
    if "unsupported" in peaks[ours]:
        return []
    theirs = [(peak["peak_bytes"], subject) for subject, peak in zip(subjects, peaks)
              if subject.peer != "lamina" and "unsupported" not in peak]
    peers = list(dict.fromkeys(subject.peer for _, subject in theirs))
    lines = []
    for peer in peers + ([BEST] if len(peers) > 1 else []):
        lowest, subject = min((one for one in theirs if peer in (BEST, one[1].peer)), key=lambda one: one[0])
        lines.append({
            "net": net, "mode": mode, "precision": subject.precision, "lamina": subjects[ours].name, "peer": peer,
            "lowest_peer": subject.peer, "peer_variant": subject.variant, "layout": subjects[ours].layout,
            "peer_layout": subject.layout, "peak_MiB": peaks[ours]["peak_bytes"] / MEBIBYTE,
            "plan_MiB": peaks[ours]["plan_bytes"] / MEBIBYTE, "peer_peak_MiB": lowest / MEBIBYTE,
            "ratio": peaks[ours]["peak_bytes"] / lowest,
        })
    return lines


def unknown_memory(subjects, peaks):
    """{peer: why its peak is not known}, of those whose answer is "unsupported"."""
    return {subject.name: peak["unsupported"] for subject, peak in zip(subjects, peaks) if "unsupported" in peak}


def above(lines, limit):
    """Whole passes whose interval is above the limit: against the best of all peers, where there are several."""
    several = any(line["peer"] == BEST for line in lines)
    return [line for line in lines if line["pass"] in ("total", "inference", "epoch") and line["low"] > limit
            and (line["peer"] == BEST or not several)]


def summary(lines):
    """Geometric mean of the ratios over networks and their number, per precision, name of ours, peer and pass."""
    means = {}
    for line in lines:
        means.setdefault((line["precision"], line["lamina"], line["peer"], line["pass"]), []).append(line["ratio"])
    return {key: (statistics.geometric_mean(ratios), len(ratios)) for key, ratios in means.items() if len(ratios) > 1}
