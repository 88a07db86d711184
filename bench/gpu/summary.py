"""The summary that run-all prints last, as Markdown that also reads well on a terminal. It does not judge results."""

import json
import re

import text

WHOLE = re.compile("/(total|inference|epoch)/")  # names of rows that the page shows


def table(head, rows):
    """A Markdown table with even columns."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    rows = [head, ["-" * width for width in widths], *rows]
    return ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]


def numbers(rows):
    """The numbers of a step's result file for the page: comparisons, and medians of whole passes."""
    try:
        document = json.loads(rows)
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
    except ValueError:
        return {}
    except (KeyError, TypeError, AttributeError) as error:
        return {"line": f"its results have another form: {type(error).__name__}: {error}"}


def facts(data):
    """The facts of the machine of the last call."""
    machine = data["machines"][-1] if data["machines"] else {}
    return [*(["a rehearsal: no device took part"] if data["rehearsal"] else []), f"calls: {len(data['machines'])}",
            *filter(None, machine.get("devices", "").splitlines()),
            *(f"{key}: {value}" for key, value in machine.items() if key != "devices" and value)]


def page(names, data):
    """The lines of the summary."""
    records = {name: data["steps"].get(name, {"state": "left out", "line": ""}) for name in names}
    states = [record["state"] for record in records.values()]
    cards = {record["card"] for record in records.values() if record.get("card")}
    lines = ["# Lamina on a GPU: the summary", "", *("- " + text.one_line(fact) for fact in facts(data)), "",
             ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) + "."]

    def on(record):
        return f" on {record['card']}" if len(cards) > 1 else ""

    def listing(title, wanted):
        by_reason = {}
        for name, record in records.items():
            if record["state"] == wanted:
                by_reason.setdefault(record["line"], []).append(name + on(record))
        if by_reason:
            lines.extend(["", f"## {title}", ""])
        for line, found in by_reason.items():
            lines.append(f"- {'; '.join(found)}" + (f": {line}" if line else ""))

    listing("Failed", "failed")
    compared = [[row[0] + on(record), *row[1:]] for record in records.values() for row in record.get("comparisons", [])]
    if compared:
        lines += ["", "## Comparisons", "",
                  "Time of the second / time of the first (95 % interval); below 1 the second is faster.", "",
                  *table(["row", "first", "second", "ratio", "the second is"], compared)]
    medians = [[name.removeprefix("passes, ") + on(record), *row]
               for name, record in records.items() for row in record.get("medians", [])]
    if medians:
        lines += ["", "## Passes by lamina_bench", "", *table(["step", "row", "median"], medians)]
    listing("Passed", "passed")
    listing("Not available here", "not available")
    listing("Left for the next call: run-all without --steps runs these", "left out")
    return lines + ["", "results.tar.gz beside this page has what each step printed and measured."]
