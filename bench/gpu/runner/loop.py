"""Runs the steps in their order, each in a process of its own, and keeps what came of each before the next begins."""

import os
import re
import shutil
import time

from . import judge, process, steps, text
from .results import DONE

LOG_MOST = 128 << 10     # bytes of a step's log that logs.txt gets
JUDGED_MOST = 1 << 20    # that are looked through for errors
KEPT_MOST = 2 << 20      # of a table or an ncu report
PROBE_SECONDS = 120


class Loop:
    """`say` prints a line of progress; `minutes` bound the whole run."""

    def __init__(self, target, machine, results, chosen, minutes, say):
        self.target, self.machine, self.results, self.steps, self.say = target, machine, results, chosen, say
        self.deadline = time.monotonic() + 60 * minutes
        self.folder = os.path.normpath(results.folder) + ".work"
        self.no_device = ""

    def remaining(self):
        return self.deadline - time.monotonic()

    def environment(self, step=None):
        found = dict(os.environ)
        found["LAMINA_TEST_DATA"] = os.path.join(self.target.root, "data")
        if not self.target.rehearsal:
            found["LAMINA_EXPECT_GPU"] = "1"
        ours = self.machine.environment()
        if step is not None and step.kind == "peers":  # PyTorch brings its own: peer_worker.sh hands it on to our side
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
        for i, step in enumerate(self.steps):
            record = self.results.of(step.name)
            if record.get("state") in DONE and not record.get("no_device"):
                continue
            start = time.monotonic()
            self.take(step, record)
            record = self.results.of(step.name)
            self.say(f"[{i + 1}/{len(self.steps)}] {step.part} {step.name}: {record['state']}"
                     + (f": {record['line']}" if record.get("line") else "")
                     + f" ({time.monotonic() - start:.0f} s, {max(0, self.remaining()) / 60:.1f} min left)")
        shutil.rmtree(self.folder, ignore_errors=True)

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
        if not self.target.rehearsal:
            ended = process.run([self.target.program("lamina_bench"), "--devices"], self.log_path(),
                                min(PROBE_SECONDS, max(1, self.remaining())), self.environment())
            self.keep_log("lamina_bench --devices", ended.text())
            table = self.log()
            why = re.search(r"^GPU: (.*)$", table, re.MULTILINE)
            self.no_device = f"no device: {why.group(1)}" if why else ""
            facts["devices"], facts["no_device"] = table[:8000], self.no_device
            # A program that fails here may fail at what it measures: whether there is a device is not known from that.
            broken = not why and (ended.why or ended.status != 0)
            facts["probe"] = f"lamina_bench --devices: {ended.text()}: {text.first_error(table)}" if broken else ""
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
        if ended.why.startswith("timed out") and limit < step.time_limit():
            found["state"] = "left out"
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
