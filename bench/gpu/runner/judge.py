"""What came of a step: its state, one line about it, and the numbers that the summary shows."""

import json
import os
import re
import statistics

from . import text

SKIPPED = 77  # as ctest and the tests have it; of our scripts: not available here
TOOL_REFUSES = re.compile(r"not supported|not available|LibraryNotLoaded|ERR_NVGPUCTRPERM|No device|cannot start|"
                          r"error while loading|Failed to (initialize|prepare|load)", re.IGNORECASE)

FINDING = re.compile(r"Invalid|hazard|Uninitialized|Program hit|leaked|error", re.IGNORECASE)


def verdict(state, line="", **numbers):
    return {"state": state, "line": text.one_line(line), **numbers}


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def judge(step, ended, log, folder):
    """`log`: all that the step printed; `folder`: where it left its files."""
    by_kind = {"tests": of_tests, "bench": of_bench, "peers": of_peers, "sanitizer": of_sanitizer, "text": of_text}
    try:
        return by_kind[step.kind](ended, log, folder)
    except text.OTHER_FORM as error:  # the steps after it are not to be lost as well
        return verdict("failed", f"{ended.text()}, and its results have another form: {type(error).__name__}: {error}")


def of_text(ended, log, _folder):
    if ended.why:
        return verdict("failed", f"{ended.why}; {text.first_error(log)}")
    if ended.status == SKIPPED:
        return verdict("not available", text.first_error(log))
    if ended.status != 0:
        return verdict("failed", f"{ended.text()}: {text.first_error(log)}")
    return verdict("passed")


def of_tests(ended, log, folder):
    """Of cases.py. A case that was skipped has failed."""
    found = load(os.path.join(folder, "cases.json"))
    if found is None:
        return verdict("failed", f"{ended.text()}; {text.cases_ended(log) or text.first_error(log)}")
    failed = [case for case in found["cases"] if not case["passed"]]
    numbers = {"passed": found["passed"], "failed": len(failed), "failures": failed[:20]}
    if found["together"] == "passed" and ended.status == 0 and not ended.why:
        return verdict("passed", f"{found['passed']} cases", **numbers)
    unfinished = f" ({ended.why} meanwhile)" if ended.why else ""
    if failed:
        first = failed[0]
        return verdict("failed", f"{len(failed)} of {len(found['cases'])} cases{unfinished}: {first['name']}: "
                                 f"{first['error']}", **numbers)
    if found["together"] == "passed":
        return verdict("failed", f"{ended.text()}, after all {found['passed']} cases had passed: "
                                 f"{text.first_error(log)}", **numbers)
    alone = f"; alone all {found['passed']} pass" if found["cases"] and not unfinished else ""
    return verdict("failed", f"{found['together']}{alone}{unfinished}", **numbers)


def of_bench(ended, log, folder):
    """Of lamina_bench's rows: medians of the networks (of one version), and how many rows there are of each end."""
    report = load(os.path.join(folder, "bench.json"))
    if report is None:
        return verdict("failed", f"{ended.text()}: {text.first_error(log)}")
    medians, measured, refused, wrong, refusal = {}, set(), set(), "", ""
    for row in report.get("benchmarks", []):
        message = row.get("error_message")
        if row.get("failure") == "unsupported":
            refused.add(row["run_name"])
            refusal = refusal or f"{row['run_name']}: {message}"
        elif message:
            wrong = wrong or f"{row['run_name']}: {message}"
        elif row.get("run_type") == "iteration":
            measured.add(row["run_name"])
            if row["key"]["what"] == "net" and "variant" not in row:  # versions in turns: tables.txt compares
                medians.setdefault(row["run_name"], (row["key"], []))[1].append(row["real_time"])
    numbers = {"rows": len(measured), "refused": len(refused),
               "medians": [{"key": key, "ms": statistics.median(times)} for key, times in medians.values()]}
    line = f"{len(measured)} rows" + (f", {len(refused)} refused" if refused else "")
    if ended.why or ended.status != 0:
        return verdict("failed", f"{ended.text()}, {line}: {wrong or refusal or text.first_error(log)}", **numbers)
    return verdict("passed", line, **numbers)


def of_peers(ended, log, folder):
    """Of bench/race/compare: its lines of ratios. A variant of ours that fails is a failure; one that says that it
    cannot do what was asked (`refused`, as cuda does of TF32) is not."""
    report = load(os.path.join(folder, "peers.json"))
    lines = (report or {}).get("comparison") or []
    if ended.status == SKIPPED:
        return verdict("not available", text.first_error(log))
    if ended.why or ended.status != 0 or not lines:
        return verdict("failed", f"{ended.text()}: {text.first_error(log)}", comparison=lines)
    failures = report.get("failures") or []

    def left(some):
        return [f"{one['name']} {one['layout']}, {one['stage']}: {one['reason']}" for one in some]

    absent = left(failures)
    ours = left(one for one in failures if one.get("ours") and not one.get("refused"))
    if ours:
        return verdict("failed", f"{len(lines)} ratios, without {len(ours)} of ours: {ours[0]}", comparison=lines,
                       absent=absent)
    line = f"{len(lines)} ratios" + (f", {len(absent)} variants left out: {absent[0]}" if absent else "")
    return verdict("passed", line, comparison=lines, absent=absent)


def of_sanitizer(ended, log, _folder):
    """Of compute-sanitizer. Where the tool itself refuses to work there is no verdict on our kernels."""
    counts = text.catch_counts(log)
    found = [int(number) for number in re.findall(r"ERROR SUMMARY: (\d+) error", log)]
    hazards = [int(number) for number in re.findall(r"RACECHECK SUMMARY: (\d+) hazard", log)]
    errors = max(found + hazards, default=None)
    complaint = next((line for line in log.splitlines() if line.startswith("=====") and TOOL_REFUSES.search(line)), "")
    if ended.why.startswith("cannot start") or (complaint and not counts):
        return verdict("not available", complaint or ended.why)
    if ended.why:
        return verdict("failed", f"{ended.why}" + (f", {errors} errors by then" if errors else ""))
    if ended.status == 0 and errors == 0 and counts and counts["passed"] and not counts["failed"]:
        return verdict("passed", f"no errors in {counts['passed']} cases", passed=counts["passed"])
    first = next((line.strip("= ") for line in log.splitlines() if line.startswith("=====") and FINDING.search(line)
                  and "SUMMARY" not in line), "")
    return verdict("failed", f"{errors if errors is not None else 'no count of'} errors, {ended.text()}: "
                             f"{first or text.first_error(log)}")
