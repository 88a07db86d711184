"""Children of `compare`: one process per side, asked for one pass at a time, one line of JSON each way."""

import contextlib
import json
import os
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
END_SECONDS = 30  # that children have to end in, together


class WorkerError(Exception):
    """A child died or refused; the message says which and why."""


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


class Worker:
    def __init__(self, name, command, threads):
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        self.name, self.command, self.threads = name, command, threads
        try:
            # In a group of its own: an interrupt at the terminal is for `compare`, which ends its children.
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                          env=environment, preexec_fn=os.setpgrp)
        except OSError as error:
            raise WorkerError(f"{name}: cannot start {command[0]}: {error.strerror}") from error
        try:
            self.versions = self.read()
        except BaseException:
            self.close(at_once=True)
            raise

    def read(self):
        line = self.child.stdout.readline()
        if not line:
            raise WorkerError(f"{self.name} ended with status {self.child.wait()}: {' '.join(self.command)}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.name}: {answer['error']}")
        return answer

    def ask(self, line):
        try:
            print(line, file=self.child.stdin, flush=True)
        except BrokenPipeError:
            pass  # read() says what happened
        return self.read()

    def tell_end(self, at_once=False):
        """Has the child end, behind the pass that it runs or at once, and does not wait for it."""
        if at_once:
            self.child.terminate()
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()

    def wait_end(self, latest):
        """Waits for the child to end, and kills it where it has not by then."""
        try:
            self.child.wait(timeout=max(0.0, latest - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.child.kill()
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
    """Ends them all: each is told before any is waited for."""
    for worker in workers:
        worker.tell_end(at_once)
    latest = time.monotonic() + END_SECONDS
    for worker in workers:
        worker.wait_end(latest)


class Subject:
    """One side in one layout."""

    def __init__(self, worker, peer, backend, layout):
        self.worker, self.peer, self.backend, self.layout = worker, peer, backend, layout

    def request(self, mode):
        return f"pass {mode} {self.layout}"

    def run(self, mode):
        """One pass, and how many cores other processes used meanwhile, less the clocks' doubt of a few ticks."""
        pid = self.worker.child.pid
        start, used, busy = time.monotonic(), used_seconds(pid), busy_seconds()
        sample = self.worker.ask(self.request(mode))
        others = (busy_seconds() - busy) - (used_seconds(pid) - used) - 4 / TICKS_PER_SECOND
        sample["others_cores"] = max(0.0, others) / (time.monotonic() - start)
        return sample

    def memory(self, mode):
        """Peak memory of two passes and what they need, in a child of its own: what another layout has left behind would
        be counted, or used again."""
        with Worker(self.worker.name, self.worker.command, self.worker.threads) as child:
            return child.ask(f"memory {mode} {self.layout}")


def peer_name(version, taken, alone):
    """What a PyTorch is called in rows and tables: its version where there are several, with a number where two are
    equal."""
    if alone:
        return "torch"
    name = f"torch-{version.split('+')[0]}"
    return name if name not in taken else next(other for other in (f"{name}#{i}" for i in range(2, 1000))
                                               if other not in taken)


class Team:
    """Every side of one network; its children end with the `with` block."""

    def __init__(self, net, interpreters, arguments):
        common = [str(arguments.batch), str(arguments.threads)]
        self.workers, self.subjects, self.versions = [], [], {}
        try:
            ours = Worker("lamina", [arguments.worker, net, *common, *(["measure"] if arguments.measure else [])],
                          arguments.threads)
            self.workers.append(ours)
            self.versions["lamina"] = ours.versions
            self.subjects += [Subject(ours, "lamina", "eigen", layout) for layout in arguments.our_layouts.split(",")]
            for python in interpreters:
                command = [python, os.path.join(HERE, "torch_rows.py"), "--worker", "--nets", net, "--batch", common[0],
                           "--threads", common[1]]
                theirs = Worker(python, command, arguments.threads)
                self.workers.append(theirs)
                peer = peer_name(theirs.versions["torch"], self.versions, alone=len(interpreters) == 1)
                self.versions[peer] = theirs.versions
                self.subjects += [Subject(theirs, peer, peer, layout) for layout in arguments.layouts.split(",")]
        except BaseException as fault:
            self.__exit__(type(fault))
            raise

    def drop(self, mode):
        """Gives back the memory of a mode."""
        for worker in self.workers:
            worker.ask(f"drop {mode}")

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        close_all(self.workers, at_once=fault is not None)
