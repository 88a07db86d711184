"""Runs one program in a separate process group, under a time limit. Its output goes to a file."""

import contextlib
import ctypes
import os
import signal
import subprocess
import time

MOST_OUTPUT = 64 << 20  # bytes; a program that prints more is killed
GRACE_SECONDS = 5.0     # from SIGTERM to SIGKILL
PR_SET_PDEATHSIG = 1


class Ended:
    """How a program ended. `status` is that of subprocess, or None where it never started. `why` is what the runner did
    to it, or empty."""

    def __init__(self, status, why, seconds):
        self.status, self.why, self.seconds = status, why, seconds

    def text(self):
        if self.why:
            return self.why
        return f"exit status {self.status}" if self.status >= 0 else f"ended by {signal.Signals(-self.status).name}"


def die_with_parent():
    """In the child: SIGKILL when the runner is killed, so that nothing goes on alone on the device. A runner in the
    background may ignore interrupts; its children must not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end_group(child):
    """Ends the child and everything that it started."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(timeout=GRACE_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def run(command, log, limit, env=None, cwd=None):
    """Runs `command` for at most `limit` seconds; its output is appended to the file `log`. An interrupt, as any
    exception, ends the whole group before it goes on."""
    start = time.monotonic()
    with open(log, "ab") as output:
        before = output.tell()
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                     env=env, cwd=cwd, start_new_session=True, preexec_fn=die_with_parent)
        except OSError as error:
            return Ended(None, f"cannot start {command[0]}: {error.strerror}", 0.0)
        why = ""
        try:
            while child.poll() is None and not why:
                if time.monotonic() - start > limit:
                    why = f"timed out after {limit:.0f} s"
                elif os.path.getsize(log) - before > MOST_OUTPUT:
                    why = f"printed more than {MOST_OUTPUT >> 20} MiB"
                else:
                    time.sleep(min(0.2, 0.01 + (time.monotonic() - start) / 20))
        finally:
            end_group(child)
    return Ended(child.returncode, why, time.monotonic() - start)
