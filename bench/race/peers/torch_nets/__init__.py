"""The networks of the zoo in PyTorch: torchvision's, and the others from their published definitions."""
# A module's name in `named_modules()` is the node's name in the zoo, so a state_dict saved here loads there. A race on
# the processor compares a network's output with ours.

import networks
import torch
from torch import nn

from torch_nets import images, inception, resnet, straight

# Dropout is as the published tables timed it; whole blocks are never dropped, and an auxiliary classifier is left out.
TORCHVISION = {
    "vgg_a": ("vgg11", {"dropout": 0.0}), "alexnet_owt": ("alexnet", {"dropout": 0.0}),
    "googlenet_tv": ("googlenet", {"aux_logits": False, "init_weights": False}),
    "efficientnet_b0": ("efficientnet_b0", {"stochastic_depth_prob": 0.0}),
    "convnext_tiny": ("convnext_tiny", {"stochastic_depth_prob": 0.0}),
} | {name: (name, {}) for name in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d",
                                   "vgg16", "vgg19", "mobilenet_v2")}


def build(name, softmax=None):
    """A network by name, or torchvision's of an ONNX file's name. `softmax` None: as the published tables timed it."""
    softmax = networks.protocol_of(name).softmax if softmax is None else softmax
    file = networks.name_of(name) if name.endswith(".onnx") else ""
    if file or name in TORCHVISION:
        from torchvision import models  # which trainings need not have
        theirs, settings = TORCHVISION.get(name, (file, {}))
        if theirs not in models.list_models():
            raise ValueError(f"torchvision has no network {theirs}: PyTorch races only files that are named after one of "
                             "its networks, such as mnasnet1_0.onnx; onnxruntime and openvino race any, in inference")
        net = models.get_model(theirs, **settings)
        if name.startswith(("vgg", "alexnet")):
            net.avgpool = nn.Identity()  # of maps of the size that it would make
    else:
        net = getattr(next(module for module in (straight, inception, resnet, images) if hasattr(module, name)), name)()
    if softmax:  # VGG alone of torchvision's; its forward calls what it knows
        (net.classifier if name in TORCHVISION else net).add_module("prob", nn.Softmax(1))
    return net


def load(net, weights):
    """Loads Lamina's weights and statistics, arrays by name; it is an error if names or numbers of elements differ."""
    # Where Lamina has a 1x1 convolution, PyTorch may have a Linear. A layer scale of PyTorch has no shift, and has the
    # name of its block.
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
    # Weights have the variance 2 / fan-in, biases are small, scales of norms near 1, layer scales below 1, and
    # statistics anywhere sane.
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
