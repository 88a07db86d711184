#!/usr/bin/env python3
"""The worker of a training in PyTorch. It trains epoch by epoch, on the batches that Lamina wrote."""
# Usage: torch_training.py CONFIG; variants.py describes this JSON.
# The flag compiled: torch.compile compiles forward, loss and backward, and the optimiser's step. Optimisers are
# PyTorch's own: fused or, if PyTorch has no fused one, foreach. On a GPU the samples of an epoch are on the device
# before the epoch begins, TF32 is off, and cudnn.benchmark is on.

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import child
import safetensors_file
import torch
import torch_settings
from timers import WallTimer
from torch_nets import trainings
from torch_worker import greeting


def optimiser(name, params):
    """The optimiser of a training, with Keras' constants. PyTorch's Adam adds epsilon at another place, at no cost."""
    if name == "mnist_cnn":
        return torch.optim.Adadelta(params, lr=1.0, rho=0.95, eps=1e-8, foreach=True)
    if name in trainings.REVIEWS:
        return torch.optim.Adam(params, lr=1e-3, eps=1e-8, fused=True)
    rate = {"cifar10_cnn": 1e-4, "lstm_text": 1e-2}.get(name, 1e-3)
    return torch.optim.RMSprop(params, lr=rate, alpha=0.9, eps=1e-8, foreach=True)


class Server:
    """Answers `open` and `pass`, which train the next epoch. Reading the epoch's batches is not timed."""

    def __init__(self, config):
        torch.set_num_threads(config["threads"])
        torch.manual_seed(0)
        flags = [] if config["device"] == "cpu" else ["benchmark"]
        self.greeting = greeting(torch_settings.Variant(flags, "f32", config["device"]), config["threads"])
        self.config, self.epoch = config, 0
        self.params = trainings.parameters(self.read("initial"), torch.float32, config["device"])
        self.optimiser = optimiser(config["net"], list(self.params.values()))
        self.loss, self.update = self.plain_loss, self.optimiser.step
        if "compiled" in config["flags"]:
            torch._dynamo.config.allow_rnn = True
            self.loss = torch.compile(self.plain_loss)
            self.update = torch.compile(self.optimiser.step)

    def read(self, name):
        return safetensors_file.read(os.path.join(self.config["files"], name + ".safetensors"))

    def plain_loss(self, x, labels):
        return trainings.loss(self.config["net"], x, labels, self.params)

    def train(self, batches, labels):
        """Trains an epoch, and returns its mean loss."""
        total = torch.zeros((), device=self.config["device"])
        for x, its_labels in zip(batches, labels):
            self.optimiser.zero_grad(set_to_none=True)
            loss = self.loss(x, its_labels)
            loss.backward()
            self.update()
            total += loss.detach()
        return total.item() / len(batches)

    def answer(self, line):
        if line.split()[0] not in ("open", "pass"):
            return {}
        file, device, batch = self.read(f"epoch-{self.epoch}"), self.config["device"], self.config["batch"]
        x = trainings.inputs(self.config["net"], file["x"], torch.float32).to(device).split(batch)
        labels = torch.tensor(file["labels"]).long().to(device).split(batch)
        self.epoch += 1
        loss, sample = WallTimer().time("epoch", lambda: self.train(x, labels))
        return sample | {"loss": loss}


if __name__ == "__main__":
    child.serve(lambda: Server(json.loads(sys.argv[1])))
