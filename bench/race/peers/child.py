"""What every child of a race in Python does: it answers in lines of JSON, and says why it fails in one line."""

import json
import os
import signal
import sys


def answering():
    """The function that says an answer. What compilers print goes to standard error from here on."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(answer):
        print(json.dumps(answer), file=answers, flush=True)

    return say


def reason(error):
    """One line of what went wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"[:400]
