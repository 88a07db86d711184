#!/usr/bin/env python3
"""Checks refusals of models from both of PyTorch's exporters. Each line of a refusal must agree with the extents from
ONNX's own inference. A refusal must name every unsupported operator. A model that can be read passes.

Needs torch, torchvision, onnx, onnxscript. Without them it is skipped.
"""

import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import comparison

try:
    import onnx
    import onnxscript  # noqa: F401  the exporter dynamo needs it
    import torch
    import torchvision
    from torch import nn
except ImportError:
    torch = None

READER = pathlib.Path(__file__).resolve().parents[2] / "lib" / "onnx"
LINE = re.compile(r"^  '(.*)' \((\w+), opset \d+\): (.*)$")
MOST_LINES = 10


def models():
    """Yields names, networks and their inputs."""
    class Of(nn.Module):
        """A module that applies a function to modules and a value."""
        def __init__(self, function, *parts):
            super().__init__()
            self.function, self.parts = function, nn.ModuleList(parts)

        def forward(self, x):
            return self.function(x, *self.parts)

    def conv(i, o, **more):
        return nn.Conv2d(i, o, 3, padding=1, **more)

    def up(x, mode="nearest", **more):
        return nn.functional.interpolate(x, scale_factor=2, mode=mode, **more)

    def block(i, o, norm, act):
        return nn.Sequential(conv(i, o), norm(o), act)

    def fpn(x, a, b, lateral, head):
        a = a(x)
        return head(lateral(a) + up(b(a)))

    def attention(x, qkv, norm):
        q, k, v = qkv(norm(x)).reshape(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        return x + ((q @ k.transpose(-2, -1)).softmax(-1) @ v).transpose(1, 2).reshape(2, 5, 8)

    def non_local(x, a, b, c):
        f = torch.softmax(a(x).flatten(2).transpose(1, 2) @ b(x).flatten(2), -1)
        return x + (f @ c(x).flatten(2).transpose(1, 2)).transpose(1, 2).reshape(x.shape)

    def cbam(x, a, b):
        return x * torch.sigmoid(b(torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1))) + a(x)

    image, rows = torch.randn(2, 3, 32, 32), torch.randn(2, 5, 8)
    wide = torch.randn(2, 8, 8, 8)
    group = lambda c: nn.GroupNorm(2, c)  # noqa: E731
    yield "unet", Of(lambda x, a, b, u, c: c(torch.cat([a(x), u(b(a(x)))], 1)), conv(3, 8), conv(8, 16, stride=2),
                     nn.ConvTranspose2d(16, 8, 2, 2), conv(16, 4)), image
    yield "fpn", Of(fpn, conv(3, 8), conv(8, 8, stride=2), conv(8, 8), conv(8, 4)), image
    yield "bilinear", Of(lambda x, a, b: b(a(x) + up(up(a(x))[:, :, ::2, ::2], "bilinear")[:, :, ::2, ::2]),
                         conv(3, 4), conv(4, 4)), image
    yield "generator", nn.Sequential(nn.ConvTranspose2d(8, 4, 4, 2, 1), nn.BatchNorm2d(4), nn.LeakyReLU(0.2),
                                     nn.ConvTranspose2d(4, 3, 4, 2, 1), nn.Tanh()), wide
    yield "discriminator", nn.Sequential(conv(3, 8, stride=2), nn.LeakyReLU(0.2), conv(8, 8), nn.InstanceNorm2d(8),
                                         nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(2048, 1)), image
    yield "group_norm", nn.Sequential(*[block(8, 8, group, nn.GELU()) for _ in range(6)]), wide
    yield "layer_norm", nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)), rows
    yield "attention", Of(attention, nn.Linear(8, 24), nn.LayerNorm(8)), rows
    yield "encoder", nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 3), rows
    yield "gru", Of(lambda x, r, f: f(r(x)[0][:, -1]), nn.GRU(8, 6, batch_first=True), nn.Linear(6, 3)), rows
    yield "non_local", Of(non_local, *[nn.Conv2d(8, 8, 1) for _ in range(3)]), wide
    yield "cbam", Of(cbam, conv(8, 8), nn.Conv2d(2, 1, 7, padding=3)), wide
    yield "mish_prelu", nn.Sequential(conv(8, 8), nn.Mish(), conv(8, 8), nn.PReLU(8), conv(8, 8), nn.ELU()), wide
    yield "super_resolution", nn.Sequential(conv(8, 16), nn.PixelShuffle(2), conv(4, 4)), wide
    line = torch.linspace(0, 1, 8).expand(2, 1, 8, 8)
    yield "coordinates", Of(lambda x, a: a(torch.cat([x, line], 1)), conv(9, 4)), wide
    pool = nn.functional.adaptive_max_pool2d
    yield "spp", Of(lambda x, f: f(torch.cat([pool(x, k).flatten(1) for k in (1, 2, 4)], 1)), nn.Linear(168, 3)), wide
    yield "distance", Of(lambda x, a: (a(x) - a(x.flip(3))).pow(2).sum((1, 2, 3)).sqrt(), conv(8, 4)), wide
    yield "volumes", nn.Sequential(nn.Conv3d(2, 4, 3), nn.ReLU(), nn.MaxPool3d(2)), torch.randn(2, 2, 4, 4, 4)
    vision = torchvision.models
    stages = [vision.convnext.CNBlockConfig(8, 16, 1), vision.convnext.CNBlockConfig(16, None, 2)]
    yield "vit", vision.VisionTransformer(32, 8, 2, 2, 16, 32), image
    yield "convnext", vision.ConvNeXt(stages), image
    yield "lraspp", vision.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None), image
    yield "retina", vision.detection.backbone_utils.resnet_fpn_backbone(backbone_name="resnet18", weights=None), image


def export(net, x, exporter, path):
    """Writes the network with only its first output. Returns the model with the extents that ONNX infers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net.eval(), (x,), str(path), dynamo=exporter == "dynamo", verbose=False)
    model = onnx.load(path)
    del model.graph.output[1:]
    onnx.save(model, path)
    return onnx.shape_inference.infer_shapes(model)


class File:
    """A model: extents, the values that are computed at run time, the nodes that the output needs."""

    def __init__(self, model):
        graph = model.graph
        self.extents = {t.name: list(t.dims) for t in graph.initializer}
        for value in [*graph.input, *graph.value_info, *graph.output]:
            self.extents[value.name] = [d.dim_value for d in value.type.tensor_type.shape.dim]
        self.computed, wanted, self.nodes = {v.name for v in graph.input}, {graph.output[0].name}, []
        for node in graph.node:
            if node.op_type not in ("Shape", "Size") and self.computed & set(node.input):
                self.computed |= set(node.output)
        for node in reversed(graph.node):
            if wanted & set(node.output):
                wanted |= set(node.input)
                self.nodes.append(node)

    def its(self, node):
        def text(v):  # ONNX's inference does not find some extents
            return "x".join(map(str, self.extents.get(v) or ["?"] * (v in self.computed)))
        return [text(v) for v in [*node.input, *node.output]]

    def count(self, value):
        return math.prod(self.extents.get(value, []))

    def is_step(self, node):
        """Whether a Gather selects some of many steps, which is refused. A Gather is read if it selects channels: along
        axis 1, or one of at most three parts, as in qkv.unbind(0)."""
        axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
        return (self.count(node.input[0]) != self.count(node.output[0]) and axis != 1
                and self.extents[node.input[0]][axis] > 3)

    def refused(self, supported):
        """The nodes that the refusal must name."""
        for node in self.nodes:
            computed = [v in self.computed for v in node.input]
            shapes = [self.extents.get(v, [0]) for v, c in zip(node.input, computed) if c]
            if (node.op_type not in supported or (node.op_type == "MatMul" and all(computed))
                    or (node.op_type == "Gather" and computed[0] and self.is_step(node))
                    or (node.op_type == "Conv" and len(shapes[0]) > 4)
                    or (node.op_type == "Add" and len(shapes) == 2 and 0 not in sum(shapes, [])
                        and not fit(*shapes))):
                yield node


def fit(a, b):
    """Whether two shapes can be broadcast: equal first extents, and other extents equal or 1 in one of them."""
    return (len(a) == len(b) and a[0] == b[0] and all(m == n or 1 in (m, n) for m, n in zip(a, b)))


def is_so(file, node, why):
    """Whether the reason is true for the node."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    computed = [v in file.computed for v in node.input]
    stated = re.findall(r"\d+(?:x\d+)+", re.sub(r"(kept as|axis of|of the) \d+(x\d+)+", "", why))
    its = file.its(node)
    if "?" not in its and not set(stated) <= set(its):
        return False
    if why.startswith("it joins"):
        return not fit(*(list(map(int, s.split("x"))) for s in stated))
    for start, holds in {"both": all(computed), "its inputs are constants": not any(computed),
                         "dilations": set(attributes.get("dilations", [])) != {1},
                         "its first factor is a constant": not computed[0] if computed else False}.items():
        if why.startswith(start):
            return holds
    named = re.search(r"its input '(.*)' is a constant", why)
    return named is None or named[1] not in file.computed


def check(name, exporter, net, x, program, supported):
    with tempfile.TemporaryDirectory(prefix="lamina-onnx-") as folder:
        path = pathlib.Path(folder) / f"{name}.onnx"
        file = File(export(net, x, exporter, path))
        ran = [subprocess.run([program, "refusal", path, *more], capture_output=True, text=True) for more in ([], ["all"])]
    if any(its.returncode not in (0, 3) for its in ran):
        sys.exit(f"{name} by {exporter}: {ran[0].stderr}")
    told = [its.stderr.rstrip("\n") for its in ran]
    if not told[0]:
        print(f"{name:18}{exporter:8}is read", flush=True)
        return True
    nodes = {node.name or node.output[0]: node for node in file.nodes}
    lines = [LINE.match(line).groups() for line in told[1].splitlines() if line.startswith("  ")]
    wrong = [f"{node}: {why}" for node, op, why in lines
             if nodes[node].op_type != op or not is_so(file, nodes[node], why)]
    listed, unjudged = {node for node, _, _ in lines}, re.search("\nnot judged.*", told[1])
    for node in file.refused(supported):
        its = node.name or node.output[0]
        if its not in listed and (node.op_type in supported and f" {node.op_type}, first" not in (unjudged or [""])[0]):
            wrong.append(f"{its} ({node.op_type}) is not named")
        if node.op_type not in told[0]:
            wrong.append(f"{node.op_type} is not in the short text")
    if not lines or len(told[0].splitlines()) > MOST_LINES:
        wrong.append("no line, or too many: " + told[0])
    print(f"{name:18}{exporter:8}{len(lines):4} lines  {'FAIL' if wrong else 'ok'}", *wrong, sep="\n    ", flush=True)
    return not wrong


def main():
    parser = comparison.parser(__doc__, "onnx_cases")
    options = comparison.parse(parser, "torch, torchvision, onnx, onnxscript", there=torch is not None)
    os.environ["TORCH_LOGS"] = "-all"
    tables = [(READER / "fold.cpp").read_text()]
    tables += [file.read_text().partition("_operators() {")[2] for file in (READER / "ops").glob("*.cpp")]
    supported = set(re.findall(r'"([A-Z]\w+)"', "".join(tables)))
    torch.manual_seed(0)
    return comparison.status(check(name, exporter, net, x, options.program, supported)
                             for name, net, x in models() for exporter in ("legacy", "dynamo"))


if __name__ == "__main__":
    sys.exit(main())
