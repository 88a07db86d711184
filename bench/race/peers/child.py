"""The common part of Python workers: they answer in lines of JSON, and say why they fail in one line."""

import json
import os
import signal
import sys
import traceback


class Refused(Exception):
    """The request cannot be done here, which is no fault; the message says why."""


def answering():
    """The function that prints an answer. Other prints, as those of compilers, go to standard error from here on."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(answer):
        print(json.dumps(answer), file=answers, flush=True)

    return say


def serve(make):
    """Prints the `greeting` of the server that `make` makes, then its `answer` to each line of standard input."""
    say = answering()
    try:
        server = make()
        say(server.greeting)
        for line in sys.stdin:
            say(server.answer(line))
    except Refused as error:
        say({"error": str(error), "refused": True})
        sys.exit(1)
    except Exception as error:  # whatever a library throws is the reason
        traceback.print_exc()
        say({"error": reason(error)})
        sys.exit(1)


def difference(theirs, ours):
    """The largest difference of two arrays of numpy over the largest value of ours; infinite where it is no number."""
    import numpy

    ours = numpy.asarray(ours, numpy.float64).ravel()
    theirs = numpy.asarray(theirs, numpy.float64).ravel()
    if theirs.size != ours.size:
        raise ValueError(f"it computes {theirs.size} numbers, and Lamina {ours.size}")
    found = float(numpy.abs(theirs - ours).max() / numpy.abs(ours).max())
    return found if found == found else float("inf")


def reason(error):
    """The error in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"[:400]
