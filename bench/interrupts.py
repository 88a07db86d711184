"""Signals that end a program. The standard library suffices: the pack of bench/gpu has this, too."""

import signal


class Interrupts:
    """The first signal ends the run, by a KeyboardInterrupt. Later ones are heard and do nothing: they would disturb its
    end, which takes few seconds."""

    def __init__(self):
        self.number = None

    def listen(self, signals):
        for number in signals:
            signal.signal(number, self.hear)

    def hear(self, number, _frame):
        if self.number is None:
            self.number = number
            raise KeyboardInterrupt

    def status(self):
        """The exit status. Python's own end would let a further signal kill the process."""
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        return 128 + self.number
