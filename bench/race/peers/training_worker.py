"""The child of a peer that trains a workload epoch by epoch, on the batches that Lamina wrote: what PyTorch and Keras
share. Needs numpy."""

import os
import sys
import time
import traceback

import child
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


def serve(greeting, make):
    """`pass`: the next epoch. `make()` gives the training, whose `prepare(epoch)` is not timed and `run()` is. What fails
    ends the child with the reason."""
    say = child.answering()
    try:
        training, epoch = make(), 0
        say(greeting)
        for line in sys.stdin:
            if line.split()[0] != "pass":
                say({})
                continue
            training.prepare(epoch)
            say(timed(training.run))
            epoch += 1
    except Exception as error:  # whatever the library throws is the reason
        traceback.print_exc()
        say({"error": child.reason(error)})
        sys.exit(1)
