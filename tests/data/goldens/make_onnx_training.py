#!/usr/bin/env python3
"""Writes nine networks beside this script, as both exporters of PyTorch write them:
{onnx,siamese,recursive,tied,tied_rows,unet,generator,recurrent,reductions}_training_{torchscript,dynamo}.onnx.
Also writes their parameters after 100 steps of SGD in f64: onnx_training.safetensors and so on. onnx has constants;
siamese, recursive, tied and tied_rows use parameters more than once; the maps of unet and generator grow; recurrent has
a GRU and an LSTM; reductions has means, maxima and softmaxes.

usage: make_onnx_training.py [NETWORK...]        (needs onnx and onnxscript; without arguments all networks)
"""

import sys

import onnx
import torch
from torch.nn import functional

from make_goldens import HERE, write

STEPS = 100


class Constants(torch.nn.Module):
    """Mean and deviation of the image, a hard swish by hand, one factor for all channels, one for each."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.deviation = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64).view(3, 1, 1)
        self.register_buffer("gains", torch.linspace(0.5, 2, 6))
        self.conv1 = torch.nn.Conv2d(3, 5, 3, bias=False)
        self.norm = torch.nn.BatchNorm2d(5)
        self.conv2 = torch.nn.Conv2d(5, 6, 3)
        self.head = torch.nn.Linear(6, 4)

    def forward(self, x):
        x = self.conv1((x - self.mean) / self.deviation)
        x = self.norm(x * functional.relu6(x + 3) / 6)
        x = self.conv2(x * 0.7).clamp(min=0).amax((2, 3))
        return self.head((1 - x * self.gains).unsqueeze(1)).squeeze(1)  # a product of rows, and a sum with the bias


class Siamese(torch.nn.Module):
    """Two images through one tower with a batch norm, which keeps one set of statistics. Then another batch norm."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 5, 3)
        self.norm = torch.nn.BatchNorm2d(5)
        self.other = torch.nn.BatchNorm2d(10)
        self.head = torch.nn.Linear(10, 4)

    def forward(self, x, second):
        x = torch.cat([self.norm(self.conv(each).relu()) for each in (x, second)], 1)
        return self.head(self.other(x).relu().mean((2, 3)))


class Recursive(torch.nn.Module):
    """A convolution that is applied three times."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 5, 3)
        self.again = torch.nn.Conv2d(5, 5, 3, padding=1)
        self.head = torch.nn.Linear(5, 4)

    def forward(self, x):
        x = self.stem(x).relu()
        for _ in range(3):
            x = self.again(x).relu()
        return self.head(x.mean((2, 3)))


class Tied(torch.nn.Module):
    """A table of embeddings that is also the matrix of the output. With `rows` the output takes every word,
    otherwise the maxima over the words."""

    def __init__(self, rows):
        super().__init__()
        self.rows = rows
        self.table = torch.nn.Embedding(9, 5)
        self.conv = torch.nn.Conv1d(5, 5, 3, padding=1)
        self.head = torch.nn.Linear(5, 9)
        self.head.weight = self.table.weight

    def forward(self, ids):
        x = self.conv(self.table(ids).transpose(1, 2)).relu()
        return self.head(x.transpose(1, 2)) if self.rows else self.head(x.amax(2))


class UNet(torch.nn.Module):
    """A U-Net of three levels. Its maps grow by a transposed convolution and by both kinds of interpolation. The output
    is a row of logits for each pixel."""

    def __init__(self):
        super().__init__()
        self.down1 = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.down2 = torch.nn.Conv2d(4, 5, 3, padding=1)
        self.down3 = torch.nn.Conv2d(5, 6, 3, padding=1)
        self.up2 = torch.nn.ConvTranspose2d(6, 5, 2, stride=2)
        self.up1 = torch.nn.Conv2d(10, 4, 3, padding=1)
        self.head = torch.nn.Conv2d(12, 3, 1)

    def forward(self, x):
        fine = self.down1(x).relu()
        middle = self.down2(functional.max_pool2d(fine, 2)).relu()
        coarse = self.down3(functional.max_pool2d(middle, 2)).relu()
        up = self.up1(torch.cat([middle, self.up2(coarse)], 1)).relu()
        nearest = functional.interpolate(up, scale_factor=2)
        linear = functional.interpolate(up, size=(8, 12), mode="bilinear")
        return self.head(torch.cat([fine, nearest, linear], 1)).permute(0, 2, 3, 1)


class Generator(torch.nn.Module):
    """A DCGAN generator; batch norms follow ReLUs, since exporters fold them into convolutions."""

    def __init__(self):
        super().__init__()
        up = torch.nn.ConvTranspose2d
        self.main = torch.nn.Sequential(
            up(7, 6, 4, bias=False), torch.nn.ReLU(), torch.nn.BatchNorm2d(6),
            up(6, 4, 4, stride=2, padding=1, bias=False), torch.nn.ReLU(), torch.nn.BatchNorm2d(4),
            up(4, 3, 3, stride=2, padding=1, output_padding=1), torch.nn.Tanh())

    def forward(self, x):
        return self.main(x).permute(0, 2, 3, 1)


class Recurrent(torch.nn.Module):
    """A GRU of two layers and two directions, and both results of an LSTM. Without biases, because PyTorch trains two
    biases, and Lamina their sum."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(3, 5, 3, padding=1)
        self.gru = torch.nn.GRU(5, 4, 2, bias=False, batch_first=True, bidirectional=True)
        self.lstm = torch.nn.LSTM(8, 3, bias=False, batch_first=True)
        self.head = torch.nn.Linear(6, 4)

    def forward(self, x):
        steps, (last, _) = self.lstm(self.gru(self.conv(x).relu().transpose(1, 2))[0])
        return self.head(torch.cat([steps.mean(1), last[-1]], 1))


class Reductions(torch.nn.Module):
    """Means, maxima and norms over rows, columns, channels and parts of channels; softmaxes along four axes."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3)
        self.rows = torch.nn.Conv2d(8, 4, (1, 3))
        self.columns = torch.nn.Conv2d(8, 4, (3, 1))
        self.plane = torch.nn.Conv2d(3, 4, 3)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, x):
        x = self.stem(x)
        rows = self.rows(x.mean(2, keepdim=True)).amax((2, 3))
        columns = self.columns(x.max(3, keepdim=True).values).softmax(2).amax((2, 3))
        parts = x.view(x.shape[0], 2, 4, 7, 6).softmax(1).amax(1).mean((2, 3))
        plane = torch.cat([x.mean(1, True), x.amax(1, True), x.norm(dim=1, keepdim=True)], 1)
        plane = self.plane(plane).softmax(-1).amax((2, 3))
        return self.head(torch.cat([rows, columns, parts, plane], 1)).log_softmax(1)


def export(network, inputs, name, dynamo):
    path = HERE / f"{name}.onnx"
    torch.onnx.export(network, inputs, path, dynamo=dynamo, external_data=False)
    model = onnx.load(path)
    # These entries are read: the names of modules, the tensors that are parameters, and the origins of other tensors.
    keys = ("pkg.torch.onnx.fx_node", "pkg.torch.export.ExportedProgram.graph_signature",
            "pkg.onnxscript.optimizer.folded_from")
    for part in [model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input]:
        part.doc_string = ""
        kept = [entry for entry in part.metadata_props if entry.key in keys]
        del part.metadata_props[:]
        part.metadata_props.extend(kept)
    computed = [value for value in model.graph.value_info if value.metadata_props]
    del model.graph.value_info[:]
    model.graph.value_info.extend(computed)
    onnx.save(model, path)


def make(name, network, inputs, labels):
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    network = network.double()
    for exporter, dynamo in (("torchscript", False), ("dynamo", True)):
        export(network.eval(), inputs, f"{name}_training_{exporter}", dynamo)
    network.train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
    tensors = {"x": inputs[0].double(), "labels": labels.double()} | {"second": x for x in inputs[1:]}
    for _ in range(STEPS):
        optimiser.zero_grad()
        logits = network(*inputs)
        functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels).backward()
        optimiser.step()
    for i, parameter in enumerate(network.parameters()):
        tensors[f"parameter{i}"] = parameter.detach()
    statistics = [buffer for buffer_name, buffer in network.named_buffers() if "running" in buffer_name]
    tensors |= {f"state{i}": buffer for i, buffer in enumerate(statistics)}
    write(HERE / f"{name}_training.safetensors", tensors)


def main():
    torch.manual_seed(1)
    network = Constants()
    x, labels = torch.randn(6, 3, 9, 8, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 0, 1])
    make("onnx", network, (x,), labels)
    make("siamese", Siamese(), (x, torch.randn_like(x)), labels)
    make("recursive", Recursive(), (x,), labels)
    ids = torch.randint(9, (6, 7))
    make("tied", Tied(False), (ids,), labels)
    make("tied_rows", Tied(True), (ids,), torch.randint(9, (42,)))
    make("unet", UNet(), (torch.randn(2, 3, 8, 12, dtype=torch.float64),), torch.randint(3, (192,)))
    make("generator", Generator(), (torch.randn(6, 7, 1, 1, dtype=torch.float64),), torch.randint(3, (6 * 256,)))
    make("recurrent", Recurrent(), (torch.randn(6, 3, 7, dtype=torch.float64),), labels)
    make("reductions", Reductions(), (x,), labels)


if __name__ == "__main__":
    main()
