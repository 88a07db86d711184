"""Children of `compare`: one process per side, asked for one pass at a time, one line of JSON each way."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time

import resident
import rows

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
END_SECONDS = 4  # that children have to end in, together: less than whoever ends the race waits for it


class WorkerError(Exception):
    """A child died or refused; the message says which and why. `refused`: it said that it cannot do what was asked,
    which is no fault."""

    def __init__(self, message, refused=False):
        super().__init__(message)
        self.refused = refused


def busy_seconds():
    """CPU time that the whole machine has spent working."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND


def used_seconds(pid):
    """CPU time of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def serve_command(program, **config):
    """The command of a child of ours; without a network in `config` it serves convolutions."""
    return [program, "serve", json.dumps(config)]


class Worker:
    """A child. `patience`: seconds for an answer, after which it is ended; None: for ever. `greet` False: its first
    line is left to the caller to read, so that several children start at once. `environment`: what it has besides."""

    def __init__(self, name, command, threads, patience=None, greet=True, environment=()):
        self.name, self.command, self.threads, self.patience = name, command, threads, patience
        self.environment = dict(environment)
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)} | self.environment
        try:
            # In a separate group: an interrupt at the terminal is for `compare`, which ends its children.
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                          env=environment, preexec_fn=os.setpgrp)
        except OSError as error:
            raise WorkerError(f"{name}: cannot start {command[0]}: {error.strerror}") from error
        if greet:
            self.greet()

    def greet(self):
        """Reads what the child says of itself."""
        try:
            self.versions = self.read()
        except BaseException:
            self.close(at_once=True)
            raise

    def read(self):
        if self.patience is not None and not select.select([self.child.stdout], [], [], self.patience)[0]:
            self.kill()
            raise WorkerError(f"{self.name} gave no answer for {self.patience:g} s and was ended")
        line = self.child.stdout.readline()
        if not line:
            raise WorkerError(f"{self.name} ended with status {self.child.wait()}: {' '.join(self.command)}")
        try:
            answer = json.loads(line)
        except json.JSONDecodeError as error:
            raise WorkerError(f"{self.name} answered '{line.strip()[:80]}', which is not JSON") from error
        if "error" in answer:
            raise WorkerError(f"{self.name}: {answer['error']}", answer.get("refused", False))
        return answer

    def ask(self, line):
        try:
            print(line, file=self.child.stdin, flush=True)
        except BrokenPipeError:
            pass  # read() says what happened
        return self.read()

    def kill(self):
        """Kills the child and what it has started, for instance compilers, which would disturb the others."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)

    def tell_end(self, at_once=False):
        """Has the child end, after the pass that it runs or at once, and does not wait for it."""
        if at_once:
            self.child.terminate()
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()

    def wait_end(self, latest):
        """Waits for the child to end, and kills it where it has not by then."""
        try:
            self.child.wait(timeout=max(0.0, latest - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            self.child.wait()
        self.child.stdout.close()

    def close(self, at_once=False):
        """Ends the child and waits for it."""
        close_all([self], at_once)

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        self.close(at_once=fault is not None)


def close_all(workers, at_once):
    """Ends them all: each is asked to before any is waited for."""
    for worker in workers:
        worker.tell_end(at_once)
    latest = time.monotonic() + END_SECONDS
    for worker in workers:
        worker.wait_end(latest)


class Subject:
    """One side in one layout and variant; on a GPU in one precision as well. `name` is what tables call it."""

    def __init__(self, worker, peer, backend, layout, contender=None, variant=""):
        self.worker, self.peer, self.backend, self.layout = worker, peer, backend, layout
        self.contender, self.name, self.variant, self.precision = contender, peer, variant, "f32"
        if contender is not None:
            self.name, self.variant, self.precision = contender.name, contender.variant, contender.precision

    def rows(self, net, mode, batch, samples, device=None):
        """Its rows, in the form of Google Benchmark. `device`: the name of the GPU."""
        of = {"what": "net", "network": net, "backend": self.backend, "type": self.precision, "layout": self.layout,
              "batch": batch}
        if self.contender is None:
            return rows.rows_of(mode, samples, **of, **({"differs": {self.variant: ""}} if self.variant else {}))
        facts = {"device": device, "variant": self.variant, "precision": self.precision,
                 "launches": "replayed" if self.contender.replays else "included"}
        return rows.rows_of(mode, samples, facts, **of, differs=self.contender.differs)

    def request(self, mode, command="pass"):
        return f"{command} {mode} {self.layout}"

    def run(self, mode):
        """One pass, and how many cores other processes used meanwhile, less the clocks' doubt of a few ticks."""
        pid = self.worker.child.pid
        start, used, busy = time.monotonic(), used_seconds(pid), busy_seconds()
        sample = self.worker.ask(self.request(mode))
        others = (busy_seconds() - busy) - (used_seconds(pid) - used) - 4 / TICKS_PER_SECOND
        sample["others_cores"] = max(0.0, others) / (time.monotonic() - start)
        return sample

    def memory(self, mode):
        """Peak memory of two passes and what they need, in a separate child: what another layout left there would be counted,
        or used again."""
        its = self.worker
        with Worker(its.name, its.command, its.threads, environment=its.environment) as child:
            try:
                answer = {"peak_bytes": resident.growth_of(child.child.pid, lambda: [child.ask(self.request(mode))
                                                                                     for _ in range(2)])}
            except resident.Unsupported as error:
                return {"unsupported": str(error)}
            return answer | (child.ask(self.request(mode, "facts")) if self.peer == "lamina" else {})
