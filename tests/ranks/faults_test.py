"""Ranks of which one throws, hangs, computes a NaN or is killed: all end within seconds, and the cause is printed.

usage: faults_test.py CHILD MPIEXEC
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

CHILD, MPIEXEC = sys.argv[1:3]
SECONDS = 10  # two of them are the child's limit


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"  # one that ended, and that nobody asks for its status
    except FileNotFoundError:
        return False


def pids_in(text):
    return [int(pid) for pid in re.findall(r"^pid (\d+)$", text, re.M)]


def run(mode, at_pids=lambda pids: None):
    with tempfile.NamedTemporaryFile() as said:
        path = pathlib.Path(said.name)
        process = subprocess.Popen([MPIEXEC, "-n", "2", CHILD, mode], stdout=said, stderr=said)
        pids, begun = [], time.monotonic()
        while len(pids) < 2 and process.poll() is None and time.monotonic() - begun < 60:
            time.sleep(0.05)
            pids = pids_in(path.read_text())
        begun = time.monotonic()
        at_pids(pids)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        text = path.read_text()
        pids = pids_in(text)
    while any(map(runs, pids)) and time.monotonic() - begun < SECONDS:
        time.sleep(0.1)
    alive = [pid for pid in pids if runs(pid)]
    if process.returncode == 0 or len(pids) != 2 or alive:
        sys.exit(f"{mode}: status {process.returncode}, ranks {pids}, of them alive {alive}:\n{text}")
    print(f"{mode}: ended after {time.monotonic() - begun:.1f} s")
    return text


def wants(mode, pattern, text):
    if not re.search(pattern, text):
        sys.exit(f"{mode}: no {pattern!r} in\n{text}")


wants("throws", r"rank 1 of 2: the disk is full", run("throws"))
wants("hangs", r"rank 0 of 2: communicator mpi: waited 2 s for a sum of \d+ numbers", run("hangs"))
wants("errs", r"rank 1 of 2: the loss of batch 5 of epoch 1 is nan", run("errs"))
for victim in (0, 1):
    wants("runs", r"(?i)killed|signal 9", run("runs", lambda pids: os.kill(pids[victim], signal.SIGKILL)))
