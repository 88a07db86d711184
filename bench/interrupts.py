"""Signals that end a program. The standard library suffices: the pack of bench/gpu has this, too."""

import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """The signals that were heard. `act` is told how many they are by now."""

    def __init__(self, act=lambda count: None):
        self.heard, self.act = [], act

    def listen(self, signals=SIGNALS):
        for number in signals:
            signal.signal(number, self.hear)

    def hear(self, number, _frame):
        self.heard.append(number)
        self.act(len(self.heard))

    def status(self):
        """The exit status. Python's own end would let a further signal kill the process."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        return 128 + self.heard[0]


def end_run(count):
    """The first signal ends a run, by a KeyboardInterrupt. Later ones would disturb its end, which takes few seconds."""
    if count == 1:
        raise KeyboardInterrupt


def default_signals():
    """In a child, before it runs: signals that its parent ignores, as one in the background does, are for it again."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
