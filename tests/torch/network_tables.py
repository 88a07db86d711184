#!/usr/bin/env python3
"""Prints rows of tests/data/networks.csv, or with --layers rows of network_layers.csv, for networks in PyTorch.

usage: network_tables.py [--layers] NET...

Rows have the order of PyTorch's trace in inference. A fully connected layer on each pixel is a 1x1 convolution. A
permutation of axes, a stochastic depth and an identity have no row. Parameters of LRN and Narrow are not printed.
Needs torch and torchvision.
"""

import sys

import comparison  # noqa: F401  sets the paths of the race's modules
import torch
import torch_nets
from torch import fx, nn

IMAGES = {"darknet53": (3, 256, 256), "unet": (3, 256, 256), "dcgan_generator": (100, 1, 1),
          "dcgan_discriminator": (3, 64, 64)}
SKIPPED = ("Identity", "Permute", "StochasticDepth")


class Tracer(fx.Tracer):
    def is_leaf_module(self, module, name):
        return not any(True for _ in module.children())


def both(extents):
    return "x".join(map(str, extents if isinstance(extents, tuple) else (extents, extents)))


def described(module, x, on_pixels):
    """The columns from type to extra, and the multiply-adds per output element (per input element if transposed)."""
    kind, kernel, stride, pad, groups, ceil, bias, extra, work = type(module).__name__, "", "", "", "", "", "", "", 0
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        kernel, stride, pad, groups = both(module.kernel_size), both(module.stride), both(module.padding), module.groups
        work = module.weight[0].numel()
        extra = f"output_padding={both(module.output_padding)}" if isinstance(module, nn.ConvTranspose2d) else ""
    elif isinstance(module, nn.Linear):
        work = module.in_features
        if on_pixels:
            kind, kernel, stride, pad, groups = "Conv2d", "1x1", "1x1", "0x0", 1
    elif isinstance(module, nn.MaxPool2d):
        kernel, stride, pad = both(module.kernel_size), both(module.stride), both(module.padding)
        ceil = "yes" if module.ceil_mode else "no"
    elif isinstance(module, nn.AdaptiveAvgPool2d):
        kind, kernel, stride, pad, ceil = "AvgPool2d", both(tuple(x.shape[2:])), "1x1", "0x0", "no"
    elif isinstance(module, nn.BatchNorm2d):
        extra = f"eps={module.eps:g} momentum={module.momentum:g}"
    elif isinstance(module, nn.LayerNorm):
        kind, extra = "LayerNorm", f"eps={module.eps:g}"
    elif isinstance(module, nn.LeakyReLU):
        extra = f"slope={module.negative_slope:g}"
    elif isinstance(module, nn.ReLU6):
        kind, extra = "Hardtanh", "min=0 max=6"
    elif isinstance(module, nn.Dropout):
        extra = f"p={module.p:g}"
    elif kind == "Beside":
        kind = "Concat"
    if work:
        bias = "yes" if module.bias is not None else "no"
    return [kind, kernel, stride, pad, groups, ceil, bias, extra], work


class Rows(fx.Interpreter):
    """Runs a traced network. `rows` gets a list of columns for each layer."""

    def __init__(self, name, net):
        super().__init__(fx.GraphModule(net, Tracer().trace(net)))
        self.name, self.rows, self.channels_last = name, [], set()

    def add(self, node, layer, columns, y, params=0, macs=0):
        shape = y.permute(0, 3, 1, 2).shape if node in self.channels_last else y.shape
        self.rows.append([self.name, len(self.rows), layer, *columns, both(tuple(shape[1:])), params, macs])

    def run_node(self, node):
        y = super().run_node(node)
        before = node.all_input_nodes
        if any(each in self.channels_last for each in before) and isinstance(y, torch.Tensor):
            self.channels_last.add(node)
        if node.op == "call_module":
            self.of_module(node, self.fetch_attr(node.target), self.env[before[0]], y)
        elif node.op in ("call_function", "call_method"):
            self.of_function(node, before, y)
        return y

    def of_module(self, node, module, x, y):
        if type(module).__name__ == "Permute":
            (self.channels_last.add if module.dims == [0, 2, 3, 1] else self.channels_last.discard)(node)
        if type(module).__name__ not in SKIPPED:
            columns, work = described(module, x, y.dim() == 4)
            outputs = x if isinstance(module, nn.ConvTranspose2d) else y
            params = sum(parameter.numel() for parameter in module.parameters())
            self.add(node, node.target, columns, y, params, work * outputs.numel())

    def of_function(self, node, before, y):
        block = list(node.meta.get("nn_module_stack", {"": None}))[-1]
        rest, target = [""] * 7, getattr(node.target, "__name__", node.target)
        if before[0].op == "get_attr":
            self.add(node, before[0].target, ["LayerScale", *rest], y, self.env[before[0]].numel())
        elif target in ("add", "iadd", "mul"):
            word = target.removeprefix("i")
            self.add(node, f"{block}.{word}", [word.title(), *rest], y)
        elif target in ("relu", "cat"):
            word, kind = {"relu": ("relu", "ReLU"), "cat": ("concat", "Concat")}[target]
            self.add(node, f"{block}.{word}", [kind, *rest], y)
        elif target == "flatten":
            self.add(node, "flatten", ["Flatten", *rest], y)
        elif target == "adaptive_avg_pool2d":
            x = self.env[before[0]]
            self.add(node, "avgpool", described(nn.AdaptiveAvgPool2d(1), x, False)[0], y)
        else:
            sys.exit(f"{self.name}: {target} in {block} is not known here")


def main():
    for name in sys.argv[1:]:
        if name == "--layers":
            continue
        net, image = torch_nets.build(name, softmax=False).eval(), IMAGES.get(name, (3, 224, 224))
        table = Rows(name, net)
        with torch.no_grad():
            y = table.run(torch.zeros(1, *image))
        macs = sum(row[-1] for row in table.rows)
        params = sum(parameter.numel() for parameter in net.parameters())
        shapes = (both(tuple(shape)).removesuffix("x1x1") for shape in (image, y.shape[1:]))
        extents, output = shapes
        rows = table.rows if "--layers" in sys.argv else [[name, extents, params, macs, output]]
        for row in rows:
            print(*row, sep=",")


if __name__ == "__main__":
    main()
