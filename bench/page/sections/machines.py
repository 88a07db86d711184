"""On what was measured, and how well: machine, build, load and the grade of the rows."""

import collections
import re

from page.parts import Cell, Row, Section, Table

FACTS = (
    ("Machine", ("processor", "processor_cores", "memory", "gpu_0", "gpu_1", "gpu", "system", "kernel")),
    (
        "Held down by",
        ("governor", "cpu_quota", "temperature_C_start", "temperature_C_end", "clock_MHz_start", "clock_MHz_end"),
    ),
    ("Other work", ("load_average_start", "load_average_end")),
    (
        "Program",
        ("lamina", "commit", "compiler", "build_type", "backend_eigen", "backend_cuda", "backend_cudnn", "peers"),
    ),
)
FEW = 2
MEANING = {"A": "measured quietly", "B": "small disturbances", "C": "disturbed", "D": "not to be relied on"}


def make(model):
    rows = [row_of(origin, model) for origin in model.origins]
    by_machine = {}
    for origin in model.origins:
        for machine in machines_of(origin, model):
            by_machine.setdefault(machine, []).append(origin)
    head = ["run", "machine", "backends", "commit", "date", "load, start and end", "rows", "grade"]
    table = Table("Runs in this page", head, rows, numeric=99)
    folded = len(rows) > FEW  # the table of the networks is what people come for
    facts = [
        Table(
            f"All facts of {title(origin)}",
            ["fact", "value"],
            [Row([name, value]) for name, value in ordered(origin)],
            numeric=99,
        )
        for origin in model.origins
    ]
    return Section(
        "machine",
        "Machine and grade of the measurement",
        short="Machine",
        tables=[] if folded else [table],
        folded=[table, *facts] if folded else facts,
        folded_title="The runs, one by one, with all facts" if folded else "All facts of these runs",
        notes=[*(summary(machine, its, model) for machine, its in by_machine.items()), *notes(model)],
    )


def title(origin):
    return f"{origin.source.name}{f', {origin.variant}' if origin.variant else ''}" + (
        f", {origin.context['date']}" if origin.context.get("date") else ""
    )


def ordered(origin):
    """Known facts first."""
    first = [name for _, names in FACTS for name in names if name in origin.context]
    return [(name, origin.context[name]) for name in [*first, *sorted(set(origin.context) - set(first))]]


def backends_of(origin, model):
    kinds = (model.timings, model.ledgers, model.frontiers, model.memories, model.trainings)
    return dict.fromkeys(one.key["backend"] for kind in kinds for one in kind if one.origin is origin)


def machines_of(origin, model):
    return dict.fromkeys(origin.machine(backend) for backend in backends_of(origin, model)) or [origin.machine()]


def cores(origin):
    count = origin.context.get("processor_cores") or origin.context.get("num_cpus")
    return f", {count} cores" if count else ""


def summary(machine, origins, model):
    """A machine in a line: its runs, their days, load and grades."""
    days = sorted({day for day in map(day_of, origins) if day})
    when = f", {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "") if days else ""
    loads = [
        float(load) for origin in origins for load in loads_of(origin) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]+)?", load)
    ]
    load = f"; load average {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    grades = collections.Counter(one.grade for one in model.timings if one.origin in origins)
    ungraded = grades.pop("", 0)
    counts = [f"{count} of grade {letter}" for letter, count in sorted(grades.items())]
    counts += [f"{ungraded} without a grade"] if ungraded else []
    graded = f"; rows: {', '.join(counts)}" if counts else ""
    return f"{machine}{cores(origins[0])}: {len(origins)} run{'s' * (len(origins) > 1)}{when}{load}{graded}."


def loads_of(origin):
    return [origin.context.get(f"load_average_{when}", "").split(" ")[0] for when in ("start", "end")]


def day_of(origin):
    return (origin.context.get("time_start") or origin.context.get("date", ""))[:10]


def row_of(origin, model):
    its = [one for one in model.timings if one.origin is origin]
    context = origin.context
    failed = sum(1 for one in its if not one.seconds)
    return Row(
        [
            Cell(title_short(origin), title=title(origin)),
            ", ".join(machines_of(origin, model)) + cores(origin),
            ", ".join(backends_of(origin, model)),
            Cell(origin.commit, title=context.get("commit", "")),
            day_of(origin),
            " / ".join(filter(None, loads_of(origin))),
            f"{len(its)}" + (f", {failed} without a time" if failed else ""),
            grade(its),
        ],
        context.get("command", ""),
    )


def title_short(origin):
    return origin.variant or origin.source.stem


def grade(timings):
    """The worst grade that is not rare, with how many rows have each."""
    grades = collections.Counter(one.grade for one in timings if one.grade)
    if not grades:
        return Cell("not graded", mark="tie")
    reasons = dict.fromkeys(reason for one in timings for reason in one.reasons)
    text = ", ".join(f"{letter}: {count}" for letter, count in sorted(grades.items()))
    return Cell(
        text, note="; ".join(list(reasons)[:3]), title="; ".join(MEANING.get(letter, "") for letter in sorted(grades))
    )


def notes(model):
    few = sum(1 for one in model.timings if 0 < len(one.seconds) < 6)
    found = [
        "Times are medians. The interval below each holds the median of such passes with 95 % or more, whatever the "
        "distribution of their noise, if they are independent. It is of one process: another one may differ by more, "
        "which lamina_bench compare takes into account."
    ]
    interrupted = [title(origin) for origin in model.origins if origin.context.get("interrupted") == "True"]
    if interrupted:
        found.append(f"Interrupted, so with fewer rows or passes than were asked for: {', '.join(interrupted)}.")
    if few:
        found.append(
            f"{few} of the rows {'has' if few == 1 else 'have'} fewer than six samples: the least and the greatest are "
            "shown in place of an interval."
        )
    return found
