#!/usr/bin/env python3
"""Trains a workload in PyTorch, for a race by epochs: usage: torch_training.py CONFIG, JSON as variants.py has it.

Compiled: forward, loss and backward by torch.compile, and the optimiser's step as well. Optimisers are PyTorch's own,
fused or over all parameters at once where it has that. On a GPU the samples of an epoch are there before it begins,
TF32 is off, and cudnn.benchmark is on.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import child
import torch
import torch_settings
import training_worker
from torch_nets import trainings


def optimiser(name, params):
    """With Keras' constants. PyTorch's Adam adds epsilon at another place than Keras', which takes the same time."""
    if name == "mnist_cnn":
        return torch.optim.Adadelta(params, lr=1.0, rho=0.95, eps=1e-8, foreach=True)
    if name in trainings.REVIEWS:
        return torch.optim.Adam(params, lr=1e-3, eps=1e-8, fused=True)
    rate = {"cifar10_cnn": 1e-4, "lstm_text": 1e-2}.get(name, 1e-3)
    return torch.optim.RMSprop(params, lr=rate, alpha=0.9, eps=1e-8, foreach=True)


class Training:
    def __init__(self, config):
        self.name, self.batch, self.device = config["net"], config["batch"], config["device"]
        self.params = trainings.parameters(training_worker.initial(config["files"]), torch.float32, self.device)
        self.optimiser = optimiser(self.name, list(self.params.values()))
        self.loss, self.update = self.plain_loss, self.optimiser.step
        if "compiled" in config["flags"]:
            torch._dynamo.config.allow_rnn = True
            self.loss = torch.compile(self.plain_loss)
            self.update = torch.compile(self.optimiser.step)
        self.x = self.labels = None

    def plain_loss(self, x, labels):
        return trainings.loss(self.name, x, labels, self.params)

    def prepare(self, x, labels):
        self.x = trainings.inputs(self.name, x, torch.float32).to(self.device).split(self.batch)
        self.labels = torch.tensor(labels).long().to(self.device).split(self.batch)

    def run(self):
        total = torch.zeros((), device=self.device)
        for x, labels in zip(self.x, self.labels):
            self.optimiser.zero_grad(set_to_none=True)
            loss = self.loss(x, labels)
            loss.backward()
            self.update()
            total += loss.detach()
        return total.item() / len(self.x)


def main():
    config = json.loads(sys.argv[1])
    torch.set_num_threads(config["threads"])
    torch.manual_seed(0)
    greeting = {"torch": torch.__version__}
    if config["device"] != "cpu":
        greeting |= torch_settings.Variant(["benchmark"], "f32", config["device"]).apply()
    child.serve(lambda: training_worker.Server(greeting, Training(config), config))


if __name__ == "__main__":
    main()
