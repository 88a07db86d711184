"""On what was measured, and how well: machine, build, load and the grade of the rows."""

import collections

from page.parts import Cell, Row, Section, Table

FACTS = (("Machine", ("processor", "processor_cores", "memory", "gpu_0", "gpu_1", "gpu", "system", "kernel")),
         ("Held down by", ("governor", "cpu_quota", "temperature_C_start", "temperature_C_end", "clock_MHz_start", "clock_MHz_end")),
         ("Other work", ("load_average_start", "load_average_end")),
         ("Program", ("lamina", "commit", "compiler", "build_type", "backend_eigen", "backend_cuda", "backend_cudnn", "peers")))
MEANING = {"A": "measured quietly", "B": "small disturbances", "C": "disturbed", "D": "not to be relied on"}


def make(model):
    rows = [row_of(origin, model) for origin in model.origins]
    head = ["run", "machine", "backends", "commit", "date", "load, start and end", "rows", "grade"]
    table = Table("Runs in this page", head, rows, numeric=99)
    facts = [Table(f"All facts of {title(origin)}", ["fact", "value"], [Row([name, value]) for name, value in ordered(origin)],
                   numeric=99) for origin in model.origins]
    return Section("machine", "Machine and grade of the measurement", tables=[table], folded=facts, folded_title="All facts of these runs",
                   notes=notes(model))


def title(origin):
    return f"{origin.source.name}{f', {origin.variant}' if origin.variant else ''}" + \
           (f", {origin.context['date']}" if origin.context.get("date") else "")


def ordered(origin):
    """Known facts first."""
    first = [name for _, names in FACTS for name in names if name in origin.context]
    return [(name, origin.context[name]) for name in [*first, *sorted(set(origin.context) - set(first))]]


def row_of(origin, model):
    its = [one for one in model.timings if one.origin is origin]
    backends = dict.fromkeys(one.key["backend"] for one in
                             [*its, *(found for kind in (model.ledgers, model.frontiers, model.memories, model.trainings)
                                      for found in kind if found.origin is origin)])
    machines = dict.fromkeys(origin.machine(backend) for backend in backends) or [origin.machine()]
    context = origin.context
    loads = [context.get(f"load_average_{when}", "").split(" ")[0] for when in ("start", "end")]
    cores = context.get("processor_cores") or context.get("num_cpus") or ""
    processors = f", {cores} cores" if cores else ""
    failed = sum(1 for one in its if not one.seconds)
    return Row([Cell(title_short(origin), title=title(origin)), ", ".join(machines) + processors, ", ".join(backends),
                Cell(origin.commit, title=context.get("commit", "")), (context.get("time_start") or context.get("date", ""))[:10],
                " / ".join(filter(None, loads)), f"{len(its)}" + (f", {failed} without a time" if failed else ""), grade(its)],
               context.get("command", ""))


def title_short(origin):
    return origin.variant or origin.source.stem


def grade(timings):
    """The worst grade that is not rare, with how many rows have each."""
    grades = collections.Counter(one.grade for one in timings if one.grade)
    if not grades:
        return Cell("not graded", mark="tie")
    reasons = dict.fromkeys(reason for one in timings for reason in one.reasons)
    text = ", ".join(f"{letter}: {count}" for letter, count in sorted(grades.items()))
    return Cell(text, note="; ".join(list(reasons)[:3]), title="; ".join(MEANING.get(letter, "") for letter in sorted(grades)))


def notes(model):
    few = sum(1 for one in model.timings if 0 < len(one.seconds) < 6)
    found = ["Times are medians. Below each stands the interval that holds the true median with 95 % or more, whatever the noise."]
    if few:
        found.append(f"{few} rows have fewer than six samples: in place of an interval they show the least and the greatest.")
    return found
