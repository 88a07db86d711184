"""Timers for PyTorch: by the wall clock, or by two events on a GPU's stream. Does not import torch."""

import time


class WallTimer:
    """Times work that has ended when its call returns, as on a processor."""

    def time(self, what, work):
        """(result of the work, {what: seconds, what_cpu: seconds of this process's CPU clock})."""
        cpu, start = time.process_time(), time.perf_counter()
        result = work()
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        return result, {what: seconds, what + "_cpu": cpu_seconds}


class EventTimer:
    """Times work on a GPU's idle stream from the first launch to the end of the last kernel, as Lamina is timed."""

    def __init__(self, cuda):
        """`cuda`: torch.cuda."""
        self.cuda = cuda
        self.start, self.stop = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)

    def time(self, what, work):
        self.cuda.synchronize()
        cpu = time.process_time()
        self.start.record()
        result = work()
        self.stop.record()
        self.stop.synchronize()
        milliseconds = self.start.elapsed_time(self.stop)
        return result, {what: 1e-3 * milliseconds, what + "_cpu": time.process_time() - cpu}
