"""Runs one program in a separate process group, under a time limit. What it prints goes to a file."""

import os
import signal
import subprocess
import time

try:
    import ctypes
except ImportError:  # a Python without it: then the child of a killed runner goes on to its end
    ctypes = None

FLOOD_BYTES = 64 << 20  # of output; a program that prints more is killed
GRACE_SECONDS = 5.0     # from SIGTERM to SIGKILL
LOST_SECONDS = 10.0     # from SIGKILL until a process counts as one that cannot be killed
PR_SET_PDEATHSIG = 1


class Ended:
    """How a program ended: `status` as subprocess has it (below 0: by that signal; None: never started, or cannot be
    killed), and in `why` what the runner did to it, or nothing."""

    def __init__(self, status, why, seconds):
        self.status, self.why, self.seconds = status, why, seconds

    def text(self):
        """The end in words."""
        if self.why:
            return self.why
        if self.status is not None and self.status < 0:
            return f"ended by {signal_name(-self.status)}"
        return f"exit status {self.status}"


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def die_with_parent():
    """In the child: SIGKILL when the runner is killed, so that nothing goes on alone on the device. An interrupt that
    the runner ignores because it runs in the background is no rule for its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if ctypes is not None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _signal_group(child, number):
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def end_group(child, grace=GRACE_SECONDS):
    """Ends the child and everything that it started: first asked, then killed. Returns whether it is gone."""
    if child.poll() is None:
        _signal_group(child, signal.SIGTERM)
        try:
            child.wait(timeout=grace)
        except subprocess.TimeoutExpired:
            pass
    _signal_group(child, signal.SIGKILL)
    try:
        child.wait(timeout=LOST_SECONDS)
        return True
    except subprocess.TimeoutExpired:
        return False


def run(command, log, limit, env=None, cwd=None, flood=FLOOD_BYTES, grace=GRACE_SECONDS):
    """Runs `command` for at most `limit` seconds; both of its outputs are appended to the file `log`. An exception, an
    interrupt too, ends the whole group before it goes on."""
    start = time.monotonic()

    def since():
        return time.monotonic() - start

    with open(log, "ab") as output:
        before = output.tell()
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                     env=env, cwd=cwd, start_new_session=True, preexec_fn=die_with_parent)
        except OSError as error:
            return Ended(None, f"cannot start {command[0]}: {error.strerror}", since())
        why = ""
        try:
            while child.poll() is None and not why:
                if since() > limit:
                    why = f"timed out after {limit:.0f} s"
                elif os.path.getsize(log) - before > flood:
                    why = f"printed more than {flood >> 20} MiB"
                else:
                    try:
                        child.wait(timeout=min(0.2, 0.01 + since() / 20))
                    except subprocess.TimeoutExpired:
                        pass
        finally:
            gone = end_group(child, grace)
    if not gone:
        return Ended(None, (why or "was interrupted") + " and cannot be killed", since())
    return Ended(child.returncode, why, since())
