"""The networks of the zoo in PyTorch, from their published definitions, with the names of the zoo's nodes.

A module's name in `named_modules()` is the node's name in the zoo, so a state_dict saved here loads there.
`check_nets.py` holds every network against the table of layers.
"""

import torch
from torch import nn

from torch_nets import inception, resnet, straight

# name: (image, channels, softmax in the timed net, its image gradient); see docs/networks.md
PROTOCOL = {
    "alexnet": (224, 3, True, True),
    "inception_v1": (224, 3, True, True),
    "vgg16": (224, 3, True, True),
    "vgg19": (224, 3, True, True),
    "resnet18": (224, 3, False, False),
    "resnet34": (224, 3, False, False),
    "resnet50": (224, 3, False, False),
    "resnet101": (224, 3, False, False),
    "resnet152": (224, 3, False, False),
    "resnet200": (224, 3, False, False),
    "overfeat": (231, 3, False, False),
    "alexnet_owt": (224, 3, False, False),
    "vgg_a": (224, 3, False, False),
    "googlenet_cb": (224, 3, False, False),
    "googlenet_tv": (224, 3, False, False),
    "mnist_mlp": (28, 1, True, False),
    "mnist_cnn": (28, 1, True, False),
    "cifar10_cnn": (32, 3, True, False),
    "bottleneck_stack": (56, 64, False, True),
}
PUBLISHED = list(PROTOCOL)[:10]
OVERWRITES = {"mnist_mlp", "mnist_cnn", "cifar10_cnn"}  # Keras' nets: parameter gradients are not added up


def build(name, softmax=None):
    """A network by name. `softmax` None: as the published tables timed it."""
    if name not in PROTOCOL:
        raise KeyError(f"no network '{name}'; there are {', '.join(PROTOCOL)}")
    softmax = PROTOCOL[name][2] if softmax is None else softmax
    if name in resnet.RESNETS:
        return resnet.resnet(*resnet.RESNETS[name], softmax)
    folder = next(module for module in (straight, inception, resnet) if hasattr(module, name))
    return getattr(folder, name)(softmax)


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
