"""The networks of the zoo in PyTorch: from torchvision or, if it lacks a network, by the published definition."""
# A module's name in `named_modules()` is the node's name in the zoo, so Lamina can load a state_dict saved here.
# A race on the processor compares a network's output with ours.

import child
import networks
import torch
from torch import nn

from torch_nets import images, inception, resnet, straight

# {network: (its name in torchvision, settings)}. The settings turn off parts that Lamina's networks do not have:
# dropout in some networks, auxiliary classifiers.
TORCHVISION = {
    "vgg_a": ("vgg11", {"dropout": 0.0}), "alexnet_owt": ("alexnet", {"dropout": 0.0}),
    **{name: (name.removesuffix("_tv"), {"aux_logits": False, "init_weights": False})
       for name in ("googlenet_tv", "googlenet", "inception_v3")},
} | {name: (name, {}) for name in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d",
                                   "vgg16", "vgg19", "mobilenet_v2", "efficientnet_b0", "convnext_tiny")}


def build(name, softmax=None):
    """A network by name. For an ONNX file: torchvision's network of this name. `softmax` None: as in its protocol."""
    softmax = networks.protocol_of(name).softmax if softmax is None else softmax
    if name.endswith(".onnx") or name in TORCHVISION:
        from torchvision import models, ops  # imported here, because trainings do not need torchvision
        its = networks.name_of(name)
        theirs, settings = TORCHVISION.get(its, (its, {}))
        if theirs not in models.list_models():
            raise child.Refused(f"torchvision has no network {theirs}; an ONNX file needs the name of one")
        net = models.get_model(theirs, **settings)
        for module in (module for module in net.modules() if isinstance(module, ops.StochasticDepth)):
            module.p = 0.0  # Lamina has no random depth
        if name in TORCHVISION and theirs.startswith(("vgg", "alexnet")):
            net.avgpool = nn.Identity()  # the maps already have the size that this pooling would make
    else:
        net = getattr(next(module for module in (straight, inception, resnet, images) if hasattr(module, name)), name)()
    if softmax:  # only VGG of torchvision's networks has one, and its forward calls only known modules
        (net.classifier if name in TORCHVISION else net).add_module("prob", nn.Softmax(1))
    return net


def load(net, weights):
    """Loads Lamina's weights and statistics, {name: array}. Raises an error if names or numbers of elements differ."""
    # A 1x1 convolution of Lamina may be a Linear in PyTorch. A layer scale in PyTorch has no shift, and has the name of
    # its block.
    own = net.state_dict()
    state = type(own)((name, values) for name, values in own.items() if name.endswith("num_batches_tracked"))
    state._metadata = own._metadata  # MNASNet reads its version there
    for name, values in weights.items():
        if not name.endswith("layer_scale.shift"):
            name = networks.torch_name(name).removesuffix(".scale")
            values = torch.tensor(values)
            state[name] = values.reshape(own[name].shape) if name in own else values
    net.load_state_dict(state)


def randomise(net, seed):
    """Draws all parameters and statistics of a network."""
    # Weights have the variance 2 / fan-in. Biases are small, scales of norms are near 1, and layer scales are below 1.
    # Statistics have realistic values.
    g = torch.Generator().manual_seed(seed)
    for module in net.modules():
        if hasattr(module, "layer_scale"):
            module.layer_scale.data.uniform_(0.25, 0.75, generator=g)
        if isinstance(module, (nn.Conv2d, nn.Linear, nn.ConvTranspose2d)):
            fan_in = (module.weight[:, 0] if isinstance(module, nn.ConvTranspose2d) else module.weight[0]).numel()
            module.weight.data.normal_(0, (2 / fan_in) ** 0.5, generator=g)
            if module.bias is not None:
                module.bias.data.normal_(0, 0.1, generator=g)
        elif isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)):
            module.weight.data.uniform_(0.5, 1.5, generator=g)
            module.bias.data.normal_(0, 0.2, generator=g)
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2, generator=g)
            module.running_var.uniform_(0.5, 2, generator=g)
    return net
