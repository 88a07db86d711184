"""Modules that several networks share."""

import collections

import torch
from torch import nn


class Concat(nn.Module):
    def forward(self, *x):
        return torch.cat(x, 1)


class Narrow(nn.Module):
    """Columns 1 to 1000: inception_v1 has 1008 outputs and uses only these."""

    def forward(self, x):
        return x.narrow(1, 1, 1000)


class Chain(nn.Sequential):
    """Named modules in sequence."""

    def __init__(self, *layers):
        super().__init__(collections.OrderedDict(layers))


def relu():
    return nn.ReLU(inplace=True)


def head(features, classes):
    """Global average pooling and a fully connected layer."""
    return [("avgpool", nn.AdaptiveAvgPool2d(1)), ("flatten", nn.Flatten()), ("fc", nn.Linear(features, classes))]
