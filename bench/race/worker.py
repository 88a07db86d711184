"""A worker: the process of one variant. It answers one request at a time: a line of text, answered by a JSON line."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
END_SECONDS = 4  # time for all workers to end; less than the 5 s that bench/gpu/run-all gives the race to end


class WorkerError(Exception):
    """A worker failed. The message says which, and why. `refused`: the request cannot be done here, but is no fault."""

    def __init__(self, message, refused=False):
        super().__init__(message)
        self.refused = refused


def busy_seconds():
    """The CPU time that all processes of the machine have used."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND


def used_seconds(pid):
    """The CPU time of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_bytes(pid, field):
    """The resident memory of a process. VmRSS: now. VmHWM: peak since the process began or the peak was reset."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise OSError(f"/proc has no {field}")


class Worker:
    """A worker process."""
    # `patience`: seconds to wait for an answer, after which the worker is ended. The constructor does not wait for the
    # first line, the greeting, so that several workers start at once: greet() reads it. `environment`: additional
    # variables.

    def __init__(self, name, command, threads, patience, environment=()):
        self.name, self.command, self.patience, self.greeting = name, command, patience, None
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)} | dict(environment)
        try:
            # A separate process group: Ctrl-C then interrupts only the race, which ends its workers.
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                          env=environment, preexec_fn=os.setpgrp)
        except OSError as error:
            raise WorkerError(f"{name}: cannot start {command[0]}: {error.strerror}") from error

    def greet(self):
        """Reads the greeting: the facts about the worker."""
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
        """The answer to a pass, with the cores that other processes used meanwhile, minus some ticks of clock error."""
        pid = self.child.pid
        start, used, busy = time.monotonic(), used_seconds(pid), busy_seconds()
        sample = self.ask(f"pass {request}")
        others = (busy_seconds() - busy) - (used_seconds(pid) - used) - 4 / TICKS_PER_SECOND
        sample["others_cores"] = max(0.0, others) / (time.monotonic() - start)
        return sample

    def memory_growth(self, work):
        """The largest growth of the process during the work, in bytes; None: the system does not report it."""
        with contextlib.suppress(OSError):
            with open(f"/proc/{self.child.pid}/clear_refs", "w") as file:
                file.write("5")  # resets the peak to the present size
            before = resident_bytes(self.child.pid, "VmRSS")
            work()
            return resident_bytes(self.child.pid, "VmHWM") - before

    def kill(self):
        """Kills the worker and its children, such as compilers, which would disturb other workers."""
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
    """Ends workers, at once or after their running passes. First asks all workers to end, then waits for each."""
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
