"""The page at the end, in Markdown that also reads well on a terminal. It shows what programs found, and judges
nothing."""

import json
import os
import re

from . import text

WAITING = ("left out", "interrupted", "killed")
WHOLE = re.compile("/(total|inference|epoch)/")  # in the name of a row that the page shows
MOST_NAMED = 8  # steps that are named where one reason holds for all


def table(head, rows):
    """A Markdown table with even columns."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    lines = ["| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |"
             for row in [head, *rows]]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def numbers(path):
    """The numbers of a step's result file that the page shows: comparisons, and medians of whole passes."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        compared = document.get("comparisons", [])
        several = any(one["first"] == "fastest" for one in compared)
        return {
            "comparisons": [[one["name"], one["first"] + (f" ({one['fastest']})" if one.get("fastest") else ""),
                             one["second"], f"{one['ratio']:.3f} ({one['low']:.3f} to {one['high']:.3f})",
                             one["verdict"]]
                            for one in compared if WHOLE.search(one["name"]) and "low" in one
                            and (not several or one["first"] == "fastest")],
            "medians": [[row["run_name"], f"{row['real_time']:.3f} {row['time_unit']}"]
                        for row in document.get("benchmarks", []) if row.get("aggregate_name") == "median"
                        and row["key"].get("what") == "net" and WHOLE.search(row["name"]) and "variant" not in row]}
    except (OSError, ValueError):
        return {}
    except (KeyError, TypeError, AttributeError) as error:
        return {"line": f"its results have another form: {type(error).__name__}: {error}"}


def facts(data):
    machine = data["machine"]
    shown = ("gpu ", "driver:", "CUDA runtime:", "cuBLAS:", "cuDNN:", "Matrix rate of gpu")
    return [f"Lamina {data['identity']['commit']}"
            + ("; a rehearsal: no device took part" if data["identity"]["rehearsal"] else ""),
            *(line for line in machine.get("devices", "").splitlines() if line.startswith(shown)),
            *(f"{key}: {value}" for key, value in machine.items() if key != "devices" and value)]


def page(steps, data, folder):
    """The lines of the summary."""
    records = {step.name: data["steps"].get(step.name, {"state": "left out", "line": ""}) for step in steps}
    states = [record["state"] for record in records.values()]
    lines = ["# Lamina on a GPU: the summary", "", *("- " + text.one_line(fact) for fact in facts(data)), "",
             ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) + "."]

    def listing(title, wanted):
        found = [(name, record["line"]) for name, record in records.items() if record["state"] in wanted]
        by_reason = {}
        for name, line in found:
            by_reason.setdefault(line, []).append(name)
        if found:
            lines.extend(["", f"## {title}", ""])
        for line, names in by_reason.items():
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            lines.append(f"- {'; '.join(names[:MOST_NAMED])}{more}" + (f": {line}" if line else ""))

    listing("Failed", ("failed", "crashed"))
    compared = [row for record in records.values() for row in record.get("comparisons", [])]
    if compared:
        lines += ["", "## Comparisons", "",
                  "Time of the second / time of the first (95 % interval); below 1 the second is faster.", "",
                  *table(["row", "first", "second", "ratio", "the second is"], compared)]
    medians = [[name.rpartition(", ")[2], *row]
               for name, record in records.items() for row in record.get("medians", [])]
    if medians:
        lines += ["", "## Passes by lamina_bench", "", *table(["backend", "row", "median"], medians)]
    listing("Passed", ("passed",))
    listing("Not available here", ("not available",))
    listing("Left for the next call: the same command runs these, and only these", WAITING)
    there = [name for name in ("results.json", "results.tar") if os.path.exists(os.path.join(folder, name))]
    return lines + ["", f"Files in {folder}: {', '.join(there)}, summary.md. The tar has what each step printed and "
                        "measured."]
