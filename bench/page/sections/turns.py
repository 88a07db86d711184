"""Trainings of several programs that took turns: the time of an epoch, and how many times as long as ours it takes."""

import intervals
from page import again, measured, training_command
from page.parts import Cell, Row, Sentence, Table
from page.text import between, digits, milliseconds


def pairs(trainings):
    """(ours, another program's, the ratio of its epochs to ours) of each workload that was trained in turns."""
    found = []
    for ours in trainings:
        if not ours.origin.in_turns or ours.key["backend"] not in measured.OURS:
            continue
        for other in trainings:
            if other.origin.in_turns is ours.origin.in_turns and other is not ours and alike(ours, other):
                found.append((ours, other, intervals.of_ratio(seconds_of(ours), seconds_of(other))))
    return found


def alike(one, other):
    """The same workload, batch and data, as often."""
    fields = ("network", "batch", "type", "differs")
    same = all(one.key.get(field) == other.key.get(field) for field in fields)
    return same and len(one["epochs"]) == len(other["epochs"])


def seconds_of(training):
    return [epoch["seconds"] for epoch in training["epochs"]]


def table(found):
    """Ours first, then the others of the workload."""
    rows, shown = [], set()
    for ours, other, ratio in found:
        for one, its in ((ours, None), (other, ratio)):
            if id(one) not in shown:
                shown.add(id(one))
                rows.append(row_of(one, its))
    heads = ["workload", "machine", "ms of an epoch", "times ours"]
    return Table("Epochs of programs that took turns", heads, rows, numeric=2)


def row_of(training, ratio):
    its = intervals.of_median(seconds_of(training))
    times = Cell(f"×{digits(ratio.middle)}", ratio.middle, between(ratio, 1)) if ratio else ""
    machine = Cell(measured.who(training.origin, training.key), note=" ".join(measured.differences(training.key)))
    cells = [training.key["network"], machine, Cell(milliseconds(its.middle), its.middle, between(its)), times]
    return Row(cells, training_command.of(training), "" if ratio else "ours")


def answers(found):
    said, races = {}, {}
    for ours, other, ratio in found:
        of = (ours.key["network"], measured.program(ours.key["backend"]))
        text = f"{measured.program(other.key['backend'])} ×{digits(ratio.middle)} ({between(ratio, 1)})"
        said.setdefault(of, []).append(text)
        races.setdefault(of, []).append((other.key["network"], training_command.of(other)))
    return [
        Sentence(f"{of[0]}, time of an epoch over that of {of[1]}: {', '.join(its)}.", again.together(races[of]))
        for of, its in said.items()
    ]
