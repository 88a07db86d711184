"""One of several ranks throws, hangs, computes a NaN or is killed. All ranks must end within seconds, with the cause.
After each kill the run resumes from its checkpoint with two or four ranks. Its losses must equal those without kills.

usage: faults_test.py CHILD MPIEXEC [KILLS]
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

CHILD, MPIEXEC = sys.argv[1:3]
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 4
SECONDS = 5  # the child's own limit is two seconds of these


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            # Z: the process has ended, but its status is not read
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def numbers(word, text):
    return [int(number) for number in re.findall(rf"^{word} (\d+)$", text, re.M)]


def start(ranks, arguments, said):
    return subprocess.Popen([MPIEXEC, "-n", str(ranks), CHILD, *arguments], stdout=said, stderr=said)


def run(arguments, ranks=2, at_pids=lambda pids: None):
    """Runs ranks that must fail. Returns the output, and the seconds from the last start to the last end."""
    with tempfile.NamedTemporaryFile() as said:
        path = pathlib.Path(said.name)
        process = start(ranks, arguments, said)
        pids, begun = [], time.monotonic()
        while len(pids) < ranks and process.poll() is None and time.monotonic() - begun < 60:
            time.sleep(0.05)
            pids = numbers("pid", path.read_text())
        at_pids(pids)
        begun = time.monotonic()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        text = path.read_text()
        pids = numbers("pid", text)
    while any(map(runs, pids)) and time.monotonic() - begun < SECONDS:
        time.sleep(0.1)
    seconds = time.monotonic() - begun
    alive = [pid for pid in pids if runs(pid)]
    if process.returncode in (0, -signal.SIGKILL) or len(pids) != ranks or alive:
        sys.exit(f"{arguments}: status {process.returncode}, ranks {pids}, of them alive {alive}:\n{text}")
    return text, seconds


def wants(mode, pattern, text):
    if not re.search(pattern, text):
        sys.exit(f"{mode}: no {pattern!r} in\n{text}")


def losses(ranks, checkpoint, epochs):
    """The losses of a run without kills, from the checkpoint on."""
    ended = subprocess.run([MPIEXEC, "-n", str(ranks), CHILD, "goes-on", checkpoint, str(epochs)],
                           capture_output=True, text=True, timeout=60)
    if ended.returncode != 0:
        sys.exit(f"a run to {epochs} epochs: status {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return [float(loss) for loss in re.findall(r"^loss (\S+)$", ended.stdout, re.M)]


def kill(folder, chance):
    """Kills one of two or four ranks again and again, each time at a random moment."""
    checkpoint, done, slowest = f"{folder}/killed", 0, 0

    def kill_one(pids):
        time.sleep(chance.uniform(0, 0.4))
        os.kill(chance.choice(pids), signal.SIGKILL)

    for number in range(KILLS):
        ranks = 2 if number % 3 < 2 else 4
        text, seconds = run(["goes-on", checkpoint, str(1 << 30)], ranks, kill_one)
        slowest = max(slowest, seconds)
        wants("goes-on", r"(?i)killed|signal 9", text)
        begins = numbers("begins at", text)
        if len(begins) != 1 or begins[0] < done:
            sys.exit(f"kill {number}: {done} updates were in the checkpoint, and it began at {begins}:\n{text}")
        done = max(begins + numbers("updates", text))
    epochs = done // 13 + 2  # an epoch has 13 updates
    killed, straight = losses(2, checkpoint, epochs), losses(1, f"{folder}/straight", epochs)
    if len(killed) != epochs or not all(abs(a - b) <= 1e-9 * b for a, b in zip(killed, straight, strict=True)):
        sys.exit(f"after the kills the epochs have the losses {killed}, and without {straight}")
    print(f"{KILLS} kills in {done} updates; all ranks ended within {slowest:.1f} s, and {epochs} epochs have the losses "
          "of a run without kills")


for mode, pattern in (("throws", r"rank 1 of 2: the disk is full"),
                      ("hangs", r"rank 0 of 2: communicator mpi: waited 2 s for a sum of \d+ numbers"),
                      ("errs", r"rank 1 of 2: the loss of batch 5 of epoch 1 is nan")):
    text, seconds = run([mode])
    wants(mode, pattern, text)
    print(f"{mode}: ended after {seconds:.1f} s")
with tempfile.TemporaryDirectory() as folder:
    kill(folder, random.Random(KILLS))
