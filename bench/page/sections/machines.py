"""The section of machines: machine, build and load of each run, and the grades of its rows."""

import collections

from page import prices
from page.parts import cell, row, section, table

FIRST = ("processor", "num_cpus", "memory", "gpu_0", "gpu_1", "gpu", "system", "kernel", "governor", "cpu_quota")
MEANING = {"A": "measured quietly", "B": "small disturbances", "C": "disturbed", "D": "not to be relied on"}
TIMES = (
    "Times are medians. The middle half of the passes lies between the two small numbers below a time. All passes ran "
    "in one process, and another process may differ by more: lamina_bench compare says whether two runs differ."
)


def make(model):
    notes = [summary(machine, runs, model) for machine, runs in by_machine(model).items()] + [TIMES]
    interrupted = [title(run) for run in model.runs if run.context.get("interrupted") == "True"]
    if interrupted:
        notes.append(f"Interrupted, so rows or passes are missing: {', '.join(interrupted)}.")
    head = ["run", "machine", "backends", "commit", "date", "load, start and end", "rows", "grade"]
    runs = table("Runs in this page", head, [line(run, model) for run in model.runs], numeric=99)
    facts = [table(f"All facts of {title(run)}", ["fact", "value"], rows_of(run), 99) for run in model.runs]
    heading, folded_title = "Machine and grade of the measurement", "The runs, one by one, with all facts"
    return section("machine", heading, "Machine", folded=[runs, *facts], folded_title=folded_title, notes=notes)


def by_machine(model):
    found = collections.defaultdict(list)
    for run in model.runs:
        for machine in machines_of(run, model):
            found[machine].append(run)
    return found


def warnings(model):
    """The warnings at the head of the page: a line for each machine that has rows of grade C or D, with its load."""
    for machine, runs in by_machine(model).items():
        letters = [one["grade"] for one in model.rows if one.run in runs and one.get("grade")]
        if "C" in letters or "D" in letters:
            yield (f"{machine}: grades of rows (A to D): {grades(letters)}{load_of(runs)}. "
                   "More --passes, or a quieter machine, gives better ones.")


def title(run):
    return ", ".join(filter(None, (run.file, run.name, run.context.get("date", "")[:19])))


def rows_of(run):
    """The facts of a run as rows. The most important facts come first."""
    first = [name for name in FIRST if name in run.context]
    return [row([name, run.context[name]]) for name in [*first, *sorted(run.context.keys() - set(first))]]


def backends_of(run, model):
    kinds = (model.rows, model.ledgers, model.frontiers, model.memories)
    return list(dict.fromkeys(one.key["backend"] for kind in kinds for one in kind if one.run is run))


def machines_of(run, model):
    return list(dict.fromkeys(map(run.machine, backends_of(run, model)))) or [run.machine()]


def loads(run):
    return [run.context.get(f"load_average_{when}", "").split(" ")[0] for when in ("start", "end")]


def day(run):
    return (run.context.get("time_start") or run.context.get("date", ""))[:10]


def grades(letters):
    return ", ".join(f"{letter}: {count}" for letter, count in sorted(collections.Counter(letters).items()))


def summary(machine, runs, model):
    """A machine in one line: number of files, days, load and grades."""
    count, days = len({run.file for run in runs}), sorted(filter(None, map(day, runs)))
    text = f"{machine}: {count} file{'s' * (count > 1)}"
    if days:
        text += f", {days[0]}" + (f" to {days[-1]}" if days[-1] != days[0] else "")
    rows = [one.get("grade", "none") for one in model.rows if one.run in runs]
    return text + load_of(runs) + (f"; grades of rows: {grades(rows)}." if rows else ".")


def load_of(runs):
    known = [load for load in (prices.number(load) for run in runs for load in loads(run)) if load is not None]
    return f"; load average {min(known):.1f} to {max(known):.1f}" if known else ""


def line(run, model):
    rows = [one for one in model.rows if one.run is run]
    failed = sum(not one.seconds for one in rows)
    graded = [one["grade"] for one in rows if one.get("grade")]
    reasons = list(dict.fromkeys(reason for one in rows for reason in one.get("grade_reasons", [])))
    letters = "; ".join(f"{letter}: {MEANING[letter]}" for letter in sorted(set(graded)))
    cells = [
        cell(run.name or run.file.removesuffix(".json"), title=title(run)),
        ", ".join(machines_of(run, model)),
        ", ".join(backends_of(run, model)) if run.is_ours else run.program(""),
        cell(run.commit, title=run.context.get("commit", "")),
        day(run),
        " / ".join(filter(None, loads(run))),
        f"{len(rows)}" + (f", {failed} without a time" if failed else ""),
        cell(grades(graded), note="; ".join(reasons[:3]), title=letters) if graded else cell("not graded", mark="tie"),
    ]
    return row(cells, run.context.get("command", ""))
