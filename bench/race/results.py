"""The file of a race: rows and context, in the format of bench/results.schema.json."""

import contextlib
import datetime
import json
import os
import platform
import re
import shlex
import socket
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, or the folder of a pack
import atomic

FORMAT = 2  # number of the format in bench/results.schema.json
PARTS = {"training": ("forward", "backward", "total"), "inference": ("inference",)}  # {mode: parts of a network's pass}


def name_of(key):
    """The name of a row. lamina_bench makes the same name from the same fields."""
    fields = ("what", "network", "layer", "part", "backend", "algorithm", "type", "layout")
    differs = [what + (value and f":{value}") for what, value in key.get("differs", {}).items()]
    return "/".join([*(key[field] for field in fields if field in key), f"batch:{key['batch']}", *differs])


def times_of(sample, part):
    """[milliseconds of a part by the wall clock, milliseconds of processor time]."""
    names = ("forward", "backward") if part == "total" else (part,)
    return [1e3 * sum(sample[name + clock] for name in names) for clock in ("", "_cpu")]


def rows_of(request, key, variant, passes, **facts):
    """The rows of a variant in a case: one for each part, with a time for each round."""
    found = []
    for part in PARTS.get(request, (request,)):
        its_key = key | {"part": part}
        real, cpu = zip(*(times_of(sample, part) for sample in passes))
        found.append({"name": name_of(its_key), "run_name": name_of(its_key), "run_type": "iteration",
                      "repetitions": len(passes), "threads": 1, "time_unit": "ms", "key": its_key, "variant": variant,
                      "real_times": real, "cpu_times": cpu, **facts})
    return found


def processor():
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def command_line(words):
    """A command line, quoted for a shell. Only the last name of an absolute path is kept."""
    return shlex.join(re.sub(r"(?<![^=:,])/(?:[^,:]*/)?(?=[^,:/])", "", word) for word in words)


def context(**more):
    """The facts of the machine and of this run."""
    return {
        "lamina_format": FORMAT, "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "host_name": socket.gethostname(), "executable": os.path.basename(sys.argv[0]),
        "command": command_line(sys.argv), "num_cpus": os.cpu_count(), "load_avg": list(os.getloadavg()),
        "library_build_type": "release", "caches": [], "processor": processor(), "variants": [], **more,
    }


class Unwritable(Exception):
    """A file cannot be written. The message says which file, and why."""


class File:
    """A file that is whole at every moment. The constructor checks that it is writable. `written`: it has content."""

    def __init__(self, path):
        self.path, self.written = path, False
        if os.path.exists(path) and not os.path.isfile(path):
            raise Unwritable(f"cannot write {path}: it exists and is not a regular file")
        folder = os.path.dirname(path) or "."
        try:
            os.makedirs(folder, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise Unwritable(f"cannot write {path}: {error.strerror}") from error

    def write(self, document):
        """Writes the document."""
        try:
            atomic.write(self.path, json.dumps(document, indent=1))
        except OSError as error:
            raise Unwritable(f"cannot write {self.path}: {error.strerror}") from error
        self.written = True
