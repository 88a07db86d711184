"""Modules that several networks share."""

import torch
from torch import nn


class Add(nn.Module):
    """y = a + b, written over a: no gradient needs a."""

    def forward(self, a, b):
        return a.add_(b)


class Concat(nn.Module):
    def forward(self, *x):
        return torch.cat(x, 1)


class Narrow(nn.Module):
    """`length` columns from column `start`: the Inception of the tables has 1008 outputs and uses 1000."""

    def __init__(self, start, length):
        super().__init__()
        self.start, self.length = start, length

    def forward(self, x):
        return x.narrow(1, self.start, self.length)


class Chain(nn.Module):
    """Named modules in sequence."""

    def __init__(self, *layers):
        super().__init__()
        for name, module in layers:
            self.add_module(name, module)

    def forward(self, x):
        for module in self.children():
            x = module(x)
        return x


def relu():
    return nn.ReLU(inplace=True)


def head(features, classes):
    """Mean over the map, and fully connected."""
    return [("avgpool", nn.AdaptiveAvgPool2d(1)), ("flatten", nn.Flatten()), ("fc", nn.Linear(features, classes))]
