"""Runs the steps in their order, each in a separate process, and keeps what came of each before the next begins."""

import hashlib
import os
import re
import shutil
import tempfile
import time

from . import judge, process, steps, summary, text
from .results import DONE

LOG_MOST = 128 << 10     # bytes of a step's log that logs.txt gets
JUDGED_MOST = 1 << 20    # that are looked through for errors
KEPT_MOST = 2 << 20      # of a table or an ncu report
PROBE_SECONDS = 120
OVERRIDES = ("NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATE_DOUBLE_PRECISION",
             "CUBLAS_EMULATION_STRATEGY", "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT")  # of what is measured


def work_folder(results):
    """The folder that the steps run in, made: beside the results, or where nothing can be made there a temporary one
    that the next call finds again."""
    beside = os.path.normpath(results) + ".work"
    try:
        os.makedirs(beside, exist_ok=True)
        return beside
    except OSError:
        name = f"lamina-run-all-{os.getuid()}-{hashlib.sha256(beside.encode()).hexdigest()[:16]}"
        return os.path.join(tempfile.gettempdir(), name)


class Loop:
    """`say` prints a line of progress; `minutes` bound the whole run."""

    def __init__(self, target, machine, results, chosen, minutes, say, retry=False):
        self.target, self.machine, self.results, self.steps, self.say = target, machine, results, chosen, say
        self.deadline = time.monotonic() + 60 * minutes
        self.folder, self.retry = work_folder(results.folder), retry
        self.no_device = ""

    def remaining(self):
        return self.deadline - time.monotonic()

    def environment(self, step=None):
        found = {key: value for key, value in os.environ.items() if key not in OVERRIDES}
        found["LAMINA_TEST_DATA"] = os.path.join(self.target.root, "data")
        if not self.target.rehearsal:
            found["LAMINA_EXPECT_GPU"] = "1"
        ours = self.machine.environment()
        if step is not None and step.kind == "peers":  # PyTorch brings its own: lamina_bench.sh hands it on to our side
            found["LAMINA_LIBRARY_PATH"] = ours.get("LD_LIBRARY_PATH", "")
        else:
            found.update(ours)
        if step is not None:
            found.update(step.environment)
        return found

    def run(self):
        """All steps. Raises what interrupts it; what is done by then is kept."""
        self.finish_killed()
        self.probe()
        again = [step for step in self.steps if self.retry and not self.waits(step)
                 and self.results.of(step.name).get("state") != "passed"]
        for step in filter(self.waits, self.steps):
            self.take_and_tell(step)
        for step in again:
            if self.remaining() >= step.seconds:  # what it had failed with is kept otherwise
                self.take_and_tell(step)
        shutil.rmtree(self.folder, ignore_errors=True)

    def waits(self, step):
        """Whether the step has not come to its end yet."""
        record = self.results.of(step.name)
        return record.get("state") not in DONE or bool(record.get("no_device"))

    def take_and_tell(self, step):
        start = time.monotonic()
        self.take(step, self.results.of(step.name))
        record = self.results.of(step.name)
        self.say(f"[{self.steps.index(step) + 1}/{len(self.steps)}] {step.part} {step.name}: {record['state']}"
                 + (f": {record['line']}" if record.get("line") else "")
                 + f" ({time.monotonic() - start:.0f} s, {max(0, self.remaining()) / 60:.1f} min left)")

    def finish_killed(self):
        """Keeps the log of a step during which the runner was killed."""
        for name, record in list(self.results.data["steps"].items()):
            if record.get("state") == "running":
                self.keep_log(name, f"the runner was killed while it ran, attempt {record['attempts']}")
                state = "crashed" if record["attempts"] > 1 else "killed"
                self.results.put(name, part=record["part"], state=state, attempts=record["attempts"],
                                 line="the runner was killed while it ran"
                                      + (", twice: " + text.first_error(self.log())
                                         if state == "crashed" else ""))
        shutil.rmtree(self.folder, ignore_errors=True)

    def probe(self):
        """What the device is, and whether there is one."""
        os.makedirs(self.folder, exist_ok=True)
        facts = self.results.data["machine"]
        facts.update(self.machine.facts())
        self.say(summary.libraries(facts))  # at once, so that a user can stop and name others
        if not self.target.rehearsal:
            environment = self.environment()
            if self.machine.cudnn:  # by the loader, whose version is printed
                folders = [environment.get("LD_LIBRARY_PATH", ""), self.machine.cudnn[0]]
                environment["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
            ended = process.run([self.target.program("lamina_bench"), "devices"], self.log_path(),
                                min(PROBE_SECONDS, max(1, self.remaining())), environment)
            self.keep_log("lamina_bench devices", ended.text())
            table = self.log()
            why = re.search(r"^GPU: (.*)$", table, re.MULTILINE)
            self.no_device = f"no device: {why.group(1)}" if why else ""
            facts["devices"], facts["no_device"] = table[:8000], self.no_device
            # A program that fails here may fail at what it measures: whether there is a device is not known from that.
            broken = not why and (ended.why or ended.status != 0)
            facts["probe"] = f"lamina_bench devices: {ended.text()}: {text.first_error(table)}" if broken else ""
        self.results.save()

    def log_path(self):
        return os.path.join(self.folder, "log")

    def log(self):
        """What the step that ran last has printed."""
        return text.read(self.log_path(), JUDGED_MOST).decode("utf-8", "replace")

    def keep_log(self, name, how):
        self.results.append("logs.txt", f"\n======== {name}: {how}\n".encode() + text.read(self.log_path(), LOG_MOST))

    def take(self, step, record):
        """Runs a step, or says why not."""
        def put(state, line, **facts):
            self.results.put(step.name, part=step.part, state=state, line=line, attempts=record.get("attempts", 0),
                             **facts)

        if "device" in step.needs and self.no_device and not self.target.rehearsal:
            return put("failed", self.no_device, no_device=True)
        lacks = next(filter(None, (self.machine.lacks(need) for need in step.needs
                                   if not (self.target.rehearsal and need in ("cudnn", "device")))), "")
        if lacks:
            return put("not available", lacks)
        if self.remaining() < step.seconds:
            return put("left out", f"needs about {step.seconds} s")
        return self.run_step(step)

    def run_step(self, step):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        attempts = self.results.begin(step.name, step.part)
        command = [word.replace(steps.WORK, self.folder) for word in step.command]
        limit = min(step.time_limit(), max(1.0, self.remaining()))
        start = time.monotonic()
        try:
            ended = process.run(command, self.log_path(), limit, self.environment(step), self.folder)
        except BaseException:
            self.keep_log(step.name, "interrupted")
            self.results.put(step.name, part=step.part, state="interrupted", attempts=attempts - 1,
                             line=f"interrupted after {time.monotonic() - start:.0f} s")
            raise
        found = judge.judge(step, ended, self.log(), self.folder)
        # One that had twice its estimate is not tried again: it would take the next call's time as well.
        if ended.why.startswith("timed out") and limit < min(step.time_limit(), 2 * step.seconds):
            found["state"], attempts = "left out", attempts - 1
            found["line"] = f"began, and was stopped after {limit:.0f} s when the time was over"
        self.keep(step, ended)
        self.results.put(step.name, part=step.part, attempts=attempts, seconds=round(ended.seconds, 1),
                         end=ended.text(), command=command, **found)

    def keep(self, step, ended):
        """Adds what a step left to the growing files."""
        self.keep_log(step.name, ended.text() + "\n$ " + " ".join(step.command))
        if step.keeps:
            head = f"\n======== {step.name}\n".encode()
            self.results.append(step.keeps, head + text.read(self.log_path(), KEPT_MOST))
        for name, to in (("bench.json", "bench.jsonl.gz"), ("peers.json", "peers.jsonl.gz")):
            report = judge.load(os.path.join(self.folder, name))
            if report is not None:
                self.results.append_json(to, {"step": step.name, "report": report})
