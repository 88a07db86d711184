"""A worker: one process of one variant, which is asked for one thing at a time, one line of JSON each way."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
END_SECONDS = 4  # for all workers to end: less than the race may take to end


class WorkerError(Exception):
    """A worker failed. `refused`: it cannot do what was asked, which is no fault. The message says which and why."""

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


def resident_bytes(pid, field):
    """Resident memory of a process. VmRSS: now. VmHWM: the peak, since the process began or the peak was reset."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise OSError(f"/proc has no {field}")


class Worker:
    """The process."""
    # `patience`: seconds for an answer, after which the worker is ended. greet() reads the first line, the greeting, so
    # that several workers start at once. `environment`: variables besides those of this process.

    def __init__(self, name, command, threads, patience, environment=()):
        self.name, self.command, self.patience, self.greeting = name, command, patience, None
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)} | dict(environment)
        try:
            # In a separate group: an interrupt at the terminal is for the race, which ends its workers.
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                          env=environment, preexec_fn=os.setpgrp)
        except OSError as error:
            raise WorkerError(f"{name}: cannot start {command[0]}: {error.strerror}") from error

    def greet(self):
        """Reads the greeting, in which the worker says what it is."""
        self.greeting = self.read()
        return self

    def read(self):
        if not select.select([self.child.stdout], [], [], self.patience)[0]:
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
        with contextlib.suppress(BrokenPipeError):  # read() says what happened
            print(line, file=self.child.stdin, flush=True)
        return self.read()

    def timed_pass(self, request):
        """The answer to a pass, with the cores that others used meanwhile, minus the clocks' error of a few ticks."""
        pid = self.child.pid
        start, used, busy = time.monotonic(), used_seconds(pid), busy_seconds()
        sample = self.ask(f"pass {request}")
        others = (busy_seconds() - busy) - (used_seconds(pid) - used) - 4 / TICKS_PER_SECOND
        sample["others_cores"] = max(0.0, others) / (time.monotonic() - start)
        return sample

    def memory_growth(self, work):
        """The most bytes by which the process grew while it worked; None where the system does not report them."""
        with contextlib.suppress(OSError):
            with open(f"/proc/{self.child.pid}/clear_refs", "w") as file:
                file.write("5")  # makes the present size the peak
            before = resident_bytes(self.child.pid, "VmRSS")
            work()
            return resident_bytes(self.child.pid, "VmHWM") - before

    def kill(self):
        """Kills the worker and what it has started, for instance compilers, which would disturb other workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)

    def __enter__(self):
        try:
            return self.greet()
        except BaseException:
            close_all([self], at_once=True)
            raise

    def __exit__(self, fault, *_):
        close_all([self], at_once=fault is not None)


def close_all(workers, at_once):
    """Ends workers, at once or after the pass that each runs. All are asked to end before any is waited for."""
    for worker in workers:
        if at_once:
            worker.child.terminate()
        with contextlib.suppress(BrokenPipeError):
            worker.child.stdin.close()
    latest = time.monotonic() + END_SECONDS
    for worker in workers:
        try:
            worker.child.wait(timeout=max(0.0, latest - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.child.wait()
        worker.child.stdout.close()
