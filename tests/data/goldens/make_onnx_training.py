#!/usr/bin/env python3
"""A network with constants as both exporters of PyTorch write it, onnx_training_{torchscript,dynamo}.onnx beside this
script, and what 100 steps of SGD make of it in f64, onnx_training.safetensors.

usage: make_onnx_training.py        (needs onnx and onnxscript)
"""

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


def export(network, x, name, dynamo):
    path = HERE / f"onnx_training_{name}.onnx"
    torch.onnx.export(network, (x,), path, dynamo=dynamo, external_data=False)
    model = onnx.load(path)
    for part in [model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input]:
        part.doc_string = ""
        del part.metadata_props[:]
    del model.graph.value_info[:]
    onnx.save(model, path)


def main():
    torch.manual_seed(1)
    network = Constants().double()
    x, labels = torch.randn(6, 3, 9, 8, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 0, 1])
    for name, dynamo in (("torchscript", False), ("dynamo", True)):
        export(network.eval(), x, name, dynamo)
    network.train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
    tensors = {"x": x, "labels": labels.double()}
    for _ in range(STEPS):
        optimiser.zero_grad()
        functional.cross_entropy(network(x), labels).backward()
        optimiser.step()
    for i, parameter in enumerate(network.parameters()):
        tensors[f"parameter{i}"] = parameter.detach()
    tensors["running_mean"], tensors["running_var"] = network.norm.running_mean, network.norm.running_var
    write(HERE / "onnx_training.safetensors", tensors)


if __name__ == "__main__":
    main()
