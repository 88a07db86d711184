"""The race: passes in the order A B C, C B A, ..., and what may be said of their times and of their memory."""

import itertools
import random
import statistics
import time

import rows

SETTLE_SECONDS = 0.05  # after a pass the other side's threads still spin for a moment
DISTURBED_CORES = 0.1
LEVEL = 0.95
BEST = "best of all peers"
MEBIBYTE = 2**20


def run_quietly(subject, mode, others, retries):
    """One pass, again while others took the cores; the last attempt counts."""
    for attempt in range(retries + 1):
        time.sleep(SETTLE_SECONDS)
        sample = subject.run(mode)
        sample["attempts"] = attempt + 1
        if sample["others_cores"] <= others:
            break
    return sample


def race(subjects, mode, rounds, others=DISTURBED_CORES, retries=3):
    """Samples of every subject, round by round. The order turns from round to round, so that drift meets all alike."""
    for subject in subjects:
        subject.run(mode)  # warm-up
    samples = [[] for _ in subjects]
    for i in range(rounds):
        order = list(enumerate(subjects))
        for k, subject in order if i % 2 == 0 else reversed(order):
            samples[k].append(run_quietly(subject, mode, others, retries))
    return samples


def seconds(sample, what):
    return sample["forward"] + sample["backward"] if what == "total" else sample[what]


def ratio(ours, theirs):
    """Our median over the lowest median of theirs, which are one list for each layout (and peer)."""
    return statistics.median(ours) / min(statistics.median(t) for t in theirs)


def interval(ours, theirs, draws=5000):
    """Percentile bootstrap of `ratio`: whole rounds are drawn, and the layout is chosen anew in each draw."""
    chance, n = random.Random(1), len(ours)
    found = []
    for _ in range(draws):
        picks = [chance.randrange(n) for _ in range(n)]
        found.append(ratio([ours[i] for i in picks], [[t[i] for i in picks] for t in theirs]))
    found.sort()
    tail = int((1 - LEVEL) / 2 * draws)
    return found[tail], found[draws - 1 - tail]


def judge(net, mode, subjects, samples):
    """A line of the table for each pass and peer, and, where there are several, one against the fastest of all of them.
    Our layout, where there are several, is the faster in total."""
    def times(k, what):
        return [seconds(sample, what) for sample in samples[k]]

    def fastest(candidates, what):
        return min(candidates, key=lambda k: statistics.median(times(k, what)))

    def of(peer):
        return [k for k, subject in enumerate(subjects) if subject.peer == peer]

    ours = fastest(of("lamina"), rows.passes(mode)[-1])
    peers = {peer: of(peer) for peer in dict.fromkeys(subject.peer for subject in subjects) if peer != "lamina"}
    if len(peers) > 1:
        peers[BEST] = [k for its in peers.values() for k in its]
    lines = []
    for what, (peer, its) in itertools.product(rows.passes(mode), peers.items()):
        best = fastest(its, what)
        theirs = [times(k, what) for k in its]
        low, high = interval(times(ours, what), theirs)
        lines.append({
            "net": net, "pass": what, "peer": peer, "fastest_peer": subjects[best].peer,
            "layout": subjects[ours].layout, "peer_layout": subjects[best].layout, "samples": len(samples[ours]),
            "ms": 1e3 * statistics.median(times(ours, what)), "peer_ms": 1e3 * statistics.median(times(best, what)),
            "ratio": ratio(times(ours, what), theirs), "low": low, "high": high,
            "disturbed": max(sum(s["others_cores"] > DISTURBED_CORES for s in samples[k]) for k in [ours, *its]),
        })
    return lines


def judge_memory(net, mode, subjects, peaks):
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
            "net": net, "mode": mode, "peer": peer, "lowest_peer": subject.peer, "layout": subjects[ours].layout,
            "peer_layout": subject.layout, "peak_MiB": peaks[ours]["peak_bytes"] / MEBIBYTE,
            "plan_MiB": peaks[ours]["plan_bytes"] / MEBIBYTE, "peer_peak_MiB": lowest / MEBIBYTE,
            "ratio": peaks[ours]["peak_bytes"] / lowest,
        })
    return lines


def unknown_memory(subjects, peaks):
    """{peer: why its peak is not known}, of those whose answer is "unsupported"."""
    return {subject.peer: peak["unsupported"] for subject, peak in zip(subjects, peaks) if "unsupported" in peak}


def above(lines, limit):
    """Whole passes whose interval lies above the limit: against the best of all peers, where there are several."""
    several = any(line["peer"] == BEST for line in lines)
    return [line for line in lines if line["pass"] in ("total", "inference") and line["low"] > limit
            and (line["peer"] == BEST or not several)]


def summary(lines):
    """Geometric mean of the ratios over networks, per peer and pass."""
    means = {}
    for line in lines:
        means.setdefault((line["peer"], line["pass"]), []).append(line["ratio"])
    return {key: statistics.geometric_mean(ratios) for key, ratios in means.items() if len(ratios) > 1}
