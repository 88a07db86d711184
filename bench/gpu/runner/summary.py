"""The one page at the end: what is known, in Markdown that also reads well on a terminal."""

import os

from . import steps, text

STATES = ("passed", "failed", "crashed", "not available", "left out", "interrupted", "killed")
NAMED = 8  # steps that are named where one reason holds for all
PASSES, EPOCHS = ("forward", "backward", "total", "inference"), ("epoch",)
FILES = (("results.json", "every step"), ("logs.txt", "what they printed"), ("tables.txt", "ledgers, frontiers"),
         ("ncu.txt", "Nsight Compute"), ("bench.jsonl.gz", "samples of lamina_bench"),
         ("peers.jsonl.gz", "samples of the races"))


def table(head, rows):
    """A Markdown table with even columns."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    def line(row):
        return "| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |"
    return [line(head), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows)]


def cell(line):
    return f"{line['ms']:.2f} / {line['peer_ms']:.2f}: {line['ratio']:.2f} ({line['low']:.2f} to {line['high']:.2f})"


def ratio_rows(records, passes=PASSES):
    """A row for each network, backend, precision and peer that has one of the passes. Of our variants (with CUDA graphs or without) it is the
    faster in total; peers.jsonl.gz has all."""
    sides = {}
    for record in records.values():
        for line in (one for one in record.get("comparison") or [] if one["pass"] in passes):
            backend = line["backend"].partition(":")[0]  # a cuDNN's folder may be in it
            key = (line["net"], backend, line["precision"], line["peer"])
            sides.setdefault(key, {}).setdefault(line["variant"], {})[line["pass"]] = line
    rows = []
    for key, variants in sides.items():
        best = min(variants, key=lambda name: next((variants[name][what]["ms"] for what in ("total", "inference", "epoch")
                                                    if what in variants[name]), float("inf")))
        lines = variants[best]
        theirs = dict.fromkeys(filter(None, (lines[what].get("peer_variant") for what in passes if what in lines)))
        rows.append([*key[:3], best, ", ".join(theirs),
                     *(cell(lines[what]) if what in lines else "" for what in passes)])
    return ["network", "backend", "precision", "variant", "PyTorch", *passes], rows


def median_rows(records):
    """A row for each network: ms of a whole training pass, by backend and variant."""
    columns, rows = {}, {}
    for record in records.values():
        for median in record.get("medians") or ():
            key = median["key"]
            if key["part"] != "total":
                continue
            differs = [what + (value and f":{value}") for what, value in key.get("differs", {}).items()]
            variant = " ".join([key["backend"], key["type"], *differs])
            columns[variant] = None
            rows.setdefault(key["network"], {})[variant] = f"{median['ms']:.2f}"
    return ["network", *columns], [[net, *(cells.get(name, "") for name in columns)] for net, cells in rows.items()]


def count_rows(chosen, records):
    rows = []
    for part, what in steps.PARTS.items():
        states = [records.get(step.name, {}).get("state", "left out") for step in chosen if step.part == part]
        if states:
            rows.append([f"{part}, {what}", *(states.count(state) or "" for state in STATES)])
    return rows


def section(title, rows_of, records, *more, nothing=""):
    """The lines of a table under its title; where a step's results have another form, the lines say so."""
    try:
        head, rows = rows_of(records, *more)
        its = table(head, rows) if rows else [nothing] if nothing else []
    except text.OTHER_FORM as error:
        its = [f"Cannot be made: {type(error).__name__}: {error}. results.json has the numbers."]
    return ["", title, "", *its] if its else []


def libraries(machine):
    """What was found, and what was not."""
    return (f"cuDNN in {', '.join(machine.get('cudnn') or []) or 'no folder'}; cuBLAS in "
            f"{(machine.get('cublas') or ['no folder'])[0]}; PyTorch of {machine.get('torch_python') or 'no Python'}")


def facts(machine, identity):
    lines = [f"Lamina {identity.get('commit', 'of an unknown commit')}"
             + (f"; rehearsal, {identity['rehearsal']}: no device took part" if identity.get("rehearsal") else "")]
    lines += [machine[key] for key in ("no_device", "probe") if machine.get(key)]
    shown = ("gpu ", "driver:", "CUDA runtime:", "cuBLAS:", "cuDNN:", "Matrix rate of gpu")
    lines += [line for line in machine.get("devices", "").splitlines() if line.startswith(shown)]
    lines.append(f"{machine.get('processor')}, {machine.get('cores')} cores, {machine.get('system')}")
    lines.append(libraries(machine))
    return ["- " + text.one_line(line) for line in lines]


def entry(step, record):
    return f"- {step.part} {step.name}" + (f": {record['line']}" if record.get("line") else "")


def page(chosen, results):
    """The lines of the summary."""
    records, identity = results.data["steps"], results.data["identity"]
    lines = ["# Lamina on a GPU: the summary", "", *facts(results.data["machine"], identity), ""]
    lines += table(["part", *STATES], count_rows(chosen, records))

    def listing(title, states):
        found = [(step, records[step.name]) for step in chosen if records.get(step.name, {}).get("state") in states]
        if not found:
            return
        lines.extend(["", f"## {title}", ""])
        if len(found) > 3 and len({record.get("line") for _, record in found}) == 1:  # one reason for all
            names = "; ".join(step.name for step, _ in found[:NAMED]) + ("; ..." if len(found) > NAMED else "")
            lines.append(f"- {len(found)} steps: {found[0][1].get('line')}: {names}")
            return
        lines.extend(entry(step, record) for step, record in found)

    listing("Failed", ("failed", "crashed"))
    ratios = "ms of Lamina / ms of the peer: ratio (95 % interval); below 1 Lamina is faster"
    lines += section(f"## Beside PyTorch\n\n{ratios}", ratio_rows, records, nothing="No network was raced.")
    lines += section("## Trainings beside PyTorch", ratio_rows, records, EPOCHS)
    lines += section("## Training passes by lamina_bench, median ms", median_rows, records)
    listing("Passed", ("passed",))
    listing("Not available here", ("not available",))
    waiting = [step for step in chosen if records.get(step.name, {}).get("state", "left out") in
               ("left out", "interrupted", "killed")]
    if waiting:
        need = sum(step.seconds for step in waiting)
        lines += ["", "## Left out for time", "",
                  f"About {text.seconds_text(need)} of steps; the same command runs them, and only them:", ""]
        lines += [entry(step, records.get(step.name, {})) for step in waiting]
    there = [f"{name} ({what})" for name, what in FILES if os.path.exists(os.path.join(results.folder, name))]
    lines += ["", f"Files in {results.folder}: " + ", ".join([*there, "summary.md"])]
    return lines
