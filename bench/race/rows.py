"""Rows and context in the JSON form of Google Benchmark, so that its compare.py reads files of any peer."""

import contextlib
import copy
import datetime
import json
import os
import platform
import re
import shlex
import signal
import socket
import sys
import time

PASSES = {"training": ("forward", "backward", "total"), "inference": ("inference",)}  # of a network, by its mode
LAYER_PASSES = ("forward", "backward_params", "backward_data")
WRITING_SHARE = 0.02  # of a core, at most, for files while they grow


def passes(mode):
    """The passes of a network's mode that have rows; a pass of a layer is one row."""
    return PASSES.get(mode, (mode,))


def name_of(key):
    """A row's name, as lamina_bench makes it of the same fields."""
    fields = ("what", "network", "layer", "part", "backend", "algorithm", "type", "layout")
    differs = [what + (value and f":{value}") for what, value in key.get("differs", {}).items()]
    return "/".join([*(key[field] for field in fields if field in key), f"batch:{key['batch']}", *differs])


def rows_of(mode, samples, facts=(), **of):
    """One row for each pass and sample; `of`: the fields of the rows' keys but for `part`. A sample maps "forward", ...
    and "forward_cpu", ... to seconds, and may have a reading of the GPU. `facts`: what each row says besides."""
    rows = []
    for what in passes(mode):
        key = of | {"part": what}
        for i, sample in enumerate(samples):
            seconds = sample["forward"] + sample["backward"] if what == "total" else sample[what]
            cpu = sum(sample[f"{part}_cpu"] for part in (("forward", "backward") if what == "total" else (what,)))
            rows.append({
                "name": name_of(key), "run_name": name_of(key), "run_type": "iteration", "family_index": 0,
                "per_family_instance_index": 0, "repetitions": len(samples), "repetition_index": i, "threads": 1,
                "iterations": 1, "real_time": seconds * 1e3, "cpu_time": cpu * 1e3, "time_unit": "ms", "key": key,
                "items_per_second": of["batch"] / seconds, **dict(facts), **sample.get("gpu", {}),
            })
    return rows


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores():
    return len(os.sched_getaffinity(0))


def command_line(words):
    """A program's words for a shell; of absolute paths, the program's among them, their last names."""
    return shlex.join(re.sub(r"(?<![^=:,])/(?:[^,:]*/)?(?=[^,:/])", "", word) for word in words)


def context(executable, **more):
    """What Google Benchmark says of a run, and what else is known."""
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"), "host_name": socket.gethostname(),
        "executable": executable, "command": command_line(sys.argv), "num_cpus": os.cpu_count(),
        "load_avg": list(os.getloadavg()), "library_build_type": "release", "caches": [],
        "processor": processor(), **more,
    }


def take_versions(context_, versions):
    """Adds what the sides of a race say of themselves. The commit of ours is the file's, as in files of lamina_bench."""
    context_["peers"] |= versions
    for name, said in versions.items():
        if name.partition("/")[0] == "lamina" and "commit" in said:
            context_["commit"] = said["commit"]


def default_signals():
    """In a child, before it runs: an interrupt that its parent ignores, as one in the background does, is no rule for
    it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Unwritable(Exception):
    """A file cannot be written; the message says which and why."""


class File:
    """A file of rows, a context manager. Rows are kept, and the file is rewritten when that is due, which takes at most
    WRITING_SHARE of the time; what is left is written at the end, also after an error or an interrupt. Whether it can
    be written is found out at once. `written` says whether it has been."""

    def __init__(self, path):
        self.path, self.written = path, False
        self.waiting, self.due = None, 0
        if os.path.exists(path) and not os.path.isfile(path):
            raise Unwritable(f"cannot write {path}: it exists and is not a regular file")
        with self.part():
            pass
        os.remove(path + ".part")

    def part(self):
        """A file beside it, to be moved in its place."""
        folder = os.path.dirname(self.path) or "."
        try:
            os.makedirs(folder, exist_ok=True)
            return open(self.path + ".part", "w")
        except FileExistsError as error:
            raise Unwritable(f"cannot write {self.path}: {folder} exists and is not a folder") from error
        except OSError as error:
            raise Unwritable(f"cannot write {self.path}: {error.strerror}") from error

    def replace(self):
        """Moves the part in its place; an interrupt finds both that and `written` done, or neither."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
            os.replace(self.path + ".part", self.path)
            self.written = True
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.finish()

    def write(self, context_, rows, **more):
        """Keeps the rows, and writes the file if that is due."""
        lists = {"context": context_, "benchmarks": rows, **more}
        self.waiting = {name: copy.copy(its) for name, its in lists.items()}  # those of the caller grow
        if time.monotonic() >= self.due:
            self.finish()

    def finish(self):
        """Writes what waits, beside the file first, so that an interrupt leaves the old one whole."""
        if self.waiting is None:
            return
        begin = time.thread_time()
        try:
            with self.part() as file:
                json.dump(self.waiting, file, indent=1)
            self.replace()
        except OSError as error:
            raise Unwritable(f"cannot write {self.path}: {error.strerror}") from error
        finally:
            with contextlib.suppress(OSError):
                os.remove(self.path + ".part")
        self.waiting = None
        self.due = time.monotonic() + (time.thread_time() - begin) / WRITING_SHARE
