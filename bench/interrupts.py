"""Signals that end a program. Needs only the standard library, because the pack of bench/gpu has this file."""

import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """The signals that were heard. After each signal, `act` is called with the count of signals so far."""

    def __init__(self, act=lambda count: None):
        self.heard, self.act = [], act

    def listen(self, signals=SIGNALS):
        for number in signals:
            signal.signal(number, self.hear)

    def hear(self, number, _frame):
        self.heard.append(number)
        self.act(len(self.heard))

    def status(self):
        """The exit status. Blocks further signals: while Python ends, they would kill the process."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        return 128 + self.heard[0]


def end_run(count):
    """Ends a run on the first signal. Ignores later signals: the end takes a few seconds."""
    if count == 1:
        raise KeyboardInterrupt


def default_signals():
    """Runs in a child. Resets signals that the parent ignores, as a parent in the background may."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
