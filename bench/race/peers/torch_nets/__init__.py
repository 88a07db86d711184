"""The networks of the zoo in PyTorch, from their published definitions, with the names of the zoo's nodes.

A module's name in `named_modules()` is the node's name in the zoo, so a state_dict saved here loads there.
A race on the processor holds what it computes against ours.
"""

import networks
import torch
from torch import nn

from torch_nets import inception, resnet, straight


def build(name, softmax=None):
    """A network by name. `softmax` None: as the published tables timed it."""
    if name not in networks.NAMES:
        raise KeyError(f"no network '{name}'; there are {', '.join(networks.NAMES)}")
    softmax = networks.protocol_of(name).softmax if softmax is None else softmax
    if name in networks.TORCHVISION:
        from torchvision import models
        net = models.get_model(name, **({"stochastic_depth_prob": 0.0} if name == "efficientnet_b0" else {}))
    elif name in resnet.RESNETS:
        net = resnet.resnet(*resnet.RESNETS[name])
    else:
        net = getattr(next(module for module in (straight, inception, resnet) if hasattr(module, name)), name)()
    if softmax:
        net.add_module("prob", nn.Softmax(1))
    return net


def randomise(net, seed):
    """Weights of variance 2 / fan-in, small random biases, batch-norm scales near 1 and statistics anywhere sane."""
    g = torch.Generator().manual_seed(seed)
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            fan_in = module.weight[0].numel()
            module.weight.data.normal_(0, (2 / fan_in) ** 0.5, generator=g)
            if module.bias is not None:
                module.bias.data.normal_(0, 0.1, generator=g)
        elif isinstance(module, nn.BatchNorm2d):
            module.weight.data.uniform_(0.5, 1.5, generator=g)
            module.bias.data.normal_(0, 0.2, generator=g)
            module.running_mean.normal_(0, 0.2, generator=g)
            module.running_var.uniform_(0.5, 2, generator=g)
    return net
