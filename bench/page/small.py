"""Result files as small as the page and `lamina_bench compare` can have them, to be kept: of each row one entry, with
the times of all its passes; of a sweep's answers those that do not follow from these times."""

import errno
import json
import os

from page import answers, reading, result_files, written
from page.fields import Damaged, Fields

KEPT = {
    *("name", "run_name", "run_type", "repetitions", "variant", "round", "key", "label", "algorithm"),
    *("time_unit", "real_time", "cpu_time", "real_times", "cpu_times", "joules"),
    *("grade", "grade_reasons", "others_share"),
    *("error_occurred", "error_message", "skipped", "skip_message", "failure", "predicted", "bytes_wanted"),
    *reading.COUNTERS,
    *reading.AMOUNTS.values(),
}
EPOCHS = "train"  # whose rows differ in more than their times


def write(paths, folder):
    """Writes each file into the folder. (a line about each, the problems of those that cannot be used)."""
    model, problems = result_files.read(paths)
    said = []
    os.makedirs(folder, exist_ok=True)
    for source in model.sources:
        out = os.path.join(folder, source.name)
        document = json.loads(source.content)
        try:
            if "benchmarks" in document:
                document["benchmarks"] = rows(Fields(document).objects("benchmarks"))
            if "answers" in document:
                document["answers"] = [one for one in document["answers"] if one["what"] not in answers.FROM_TIMES]
            text = text_of(document)
            if os.path.exists(out):
                raise FileExistsError(errno.EEXIST, "it exists; give another folder with --small")
            written.write(out, text)
        except Damaged as error:
            problems.append(result_files.Problem(source.name, str(error)))
        except OSError as error:
            problems.append(result_files.Problem(out, error.strerror))
        else:
            said.append(f"{out}: {len(text.encode()) / 1024:.0f} KiB of {len(source.content) / 1024:.0f}")
    return said, problems


def rows(entries):
    """The entries of a file, in their order: passes together, aggregates left out. Raises Damaged."""
    groups, found = {}, []
    for fields in entries:
        entry = fields.value
        if entry.get("run_type", "iteration") != "iteration":
            continue
        check(fields)
        failed = entry.get("error_occurred") or entry.get("skipped")
        if failed or "real_times" in entry or entry["key"]["what"] == EPOCHS:
            found.append([entry])
            continue
        key = (entry.get("variant"), entry.get("round"), entry["name"], entry.get("time_unit"))
        if key not in groups:
            groups[key] = []
            found.append(groups[key])
        groups[key].append(entry)
    return [one(passes) for passes in found]


def check(fields):
    """What the page does not read. Raises Damaged."""
    fields.text("name")
    for name in ("round", "repetition_index", "cpu_time"):
        fields.number(name, None)


def one(passes):
    """The entry of the pass in the middle by time, with the times of all passes. A single entry keeps the times that it
    has, and an epoch everything."""
    if passes[0]["key"]["what"] == EPOCHS:
        return passes[0]
    passes = sorted(passes, key=lambda entry: entry.get("repetition_index", 0))
    middle = sorted(passes, key=lambda entry: entry["real_time"])[(len(passes) - 1) // 2]
    entry = {name: middle[name] for name in middle if name in KEPT}
    if entry.get("run_name") == entry["name"]:
        del entry["run_name"]
    if len(passes) == 1:
        return entry
    # Clocks have nanoseconds: nine digits of a second, and more than enough of a smaller unit.
    entry["real_times"] = [round(its["real_time"], 9) for its in passes]
    if all("cpu_time" in its for its in passes):
        entry["cpu_times"] = [round(its["cpu_time"], 9) for its in passes]
    return entry


def text_of(document):
    """Each entry of each list is one line, as lamina_bench writes them."""
    return "{" + ",\n".join(f"{json.dumps(name)}: {lines(value)}" for name, value in document.items()) + "}\n"


def lines(value):
    if not value or not isinstance(value, (list, dict)):
        return json.dumps(value)
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(compact, value)) + "\n]"
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {compact(each)}" for name, each in value.items()) + "\n}"


def compact(value):
    return json.dumps(value, separators=(",", ":"))
