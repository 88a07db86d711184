"""The worker of a peer that trains a workload epoch by epoch, on the batches that Lamina wrote: what PyTorch and Keras
share. Needs numpy."""

import os
import sys

import safetensors_file
from timers import WallTimer


def initial(folder):
    """The parameters that the training starts with."""
    return safetensors_file.read(os.path.join(folder, "initial.safetensors"))


class Server:
    """`open` and `pass` train the next epoch. The training's `prepare(x, labels)` is not timed. Its `run()` is, and
    gives the loss."""

    def __init__(self, greeting, training, config):
        self.greeting = greeting | {"python": sys.version.split()[0], "threads": config["threads"]}
        self.training, self.folder, self.epoch = training, config["files"], 0

    def answer(self, line):
        if line.split()[0] not in ("open", "pass"):
            return {}
        file = safetensors_file.read(os.path.join(self.folder, f"epoch-{self.epoch}.safetensors"))
        self.training.prepare(file["x"], file["labels"])
        self.epoch += 1
        loss, sample = WallTimer().time("epoch", self.training.run)
        return sample | {"loss": float(loss)}
