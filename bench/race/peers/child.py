"""The common part of Python workers. A worker answers in lines of JSON, and reports an error in one line."""

import json
import os
import signal
import sys
import traceback


class Refused(Exception):
    """The request is valid, but cannot be done here. The message says why."""


def answering():
    """The function that prints an answer. From now on, other output, such as a compiler's, goes to standard error."""
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
            try:
                say(server.answer(line))
            except Refused as error:  # the next request may be another case
                say({"error": str(error), "refused": True})
    except Refused as error:
        say({"error": str(error), "refused": True})
        sys.exit(1)
    except Exception as error:  # a library may throw any exception
        traceback.print_exc()
        say({"error": reason(error)})
        sys.exit(1)


def difference(theirs, ours):
    """The largest difference of two NumPy arrays, divided by the largest value of ours; infinite if it is a NaN."""
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
