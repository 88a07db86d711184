"""The worker of a peer that trains a workload epoch by epoch, on the batches that Lamina wrote: what PyTorch and Keras
share. Needs numpy."""

import os
import sys
import time

import safetensors_file


class Files:
    """Initial parameters and the batches of each epoch."""

    def __init__(self, folder):
        self.folder = folder

    def initial(self):
        return safetensors_file.read(os.path.join(self.folder, "initial.safetensors"))

    def epoch(self, number):
        """The samples and labels of an epoch; it is an error if there are no more."""
        file = safetensors_file.read(os.path.join(self.folder, f"epoch-{number}.safetensors"))
        return file["x"], file["labels"]


def timed(work):
    """What the work gives, as "loss", and its seconds, by the wall's clock and of this process's processor time."""
    cpu, start = time.process_time(), time.perf_counter()
    loss = work()
    return {"epoch": time.perf_counter() - start, "epoch_cpu": time.process_time() - cpu, "loss": float(loss)}


class Server:
    """`open` and `pass` train the next epoch. The training's `prepare(epoch)` is not timed, and its `run()` is."""

    def __init__(self, greeting, training, config):
        self.greeting = greeting | {"python": sys.version.split()[0], "threads": config["threads"]}
        self.training, self.epoch = training, 0

    def answer(self, line):
        if line.split()[0] not in ("open", "pass"):
            return {}
        self.training.prepare(self.epoch)
        self.epoch += 1
        return timed(self.training.run)
