"""Models that PyTorch exports, with onnxruntime's logits, as cases for onnx_cases --logits.

  python export_torch.py FOLDER [--exporter legacy|dynamo] [NAME ...]

Needs torch, onnx and onnxruntime (the exporter dynamo also onnxscript). Networks of torch's own modules; prints the
folder of each case.
"""

import argparse
import pathlib
import sys

import numpy
import onnx
import onnxruntime
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "race"), str(ROOT / "bench" / "race" / "peers")]
import torch_nets  # noqa: E402


class Fire(nn.Module):
    def __init__(self, inputs, squeeze, expand):
        super().__init__()
        self.squeeze, self.one = nn.Conv2d(inputs, squeeze, 1), nn.Conv2d(squeeze, expand, 1)
        self.three = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x):
        x = self.squeeze(x).relu()
        return torch.cat([self.one(x).relu(), self.three(x).relu()], 1)


def squeezenet():
    pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)  # noqa: E731
    return nn.Sequential(nn.Conv2d(3, 64, 3, 2), nn.ReLU(), pool(), Fire(64, 16, 64), Fire(128, 16, 64), pool(),
                         Fire(128, 32, 128), Fire(256, 32, 128), pool(), Fire(256, 48, 192), Fire(384, 48, 192),
                         Fire(384, 64, 256), Fire(512, 64, 256), nn.Dropout(), nn.Conv2d(512, 1000, 1), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten())


class DenseLayer(nn.Module):
    def __init__(self, inputs, growth):
        super().__init__()
        self.make = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, 4 * growth, 1, bias=False),
                                  nn.BatchNorm2d(4 * growth), nn.ReLU(),
                                  nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat([x, self.make(x)], 1)


def densenet121():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for block, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            layers.append(DenseLayer(channels, 32))
            channels += 32
        if block < 3:
            layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1, bias=False),
                       nn.AvgPool2d(2, 2)]
            channels //= 2
    return nn.Sequential(*layers, nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, 1000))


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        hidden = inputs * expand
        first = [] if expand == 1 else [nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()]
        self.make = nn.Sequential(*first, nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
                                  nn.BatchNorm2d(hidden), nn.ReLU6(), nn.Conv2d(hidden, outputs, 1, bias=False),
                                  nn.BatchNorm2d(outputs))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.make(x) if self.adds else self.make(x)


def mobilenet_v2():
    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    inputs = 32
    for expand, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                           (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            layers.append(Inverted(inputs, outputs, stride if i == 0 else 1, expand))
            inputs = outputs
    return nn.Sequential(*layers, nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000))


OWN = {"squeezenet": squeezenet, "densenet121": densenet121, "mobilenet_v2": mobilenet_v2}
ZOO = ("alexnet", "inception_v1", "resnet50", "vgg16")


def save(path, array, name):
    path.write_bytes(onnx.numpy_helper.from_array(array, name).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--exporter", choices=("legacy", "dynamo"), default="legacy")
    parser.add_argument("names", nargs="*", default=[*OWN, *ZOO])
    options = parser.parse_args()
    for name in options.names or [*OWN, *ZOO]:
        net = OWN[name]() if name in OWN else torch_nets.build(name, softmax=False)
        torch_nets.randomise(net, seed=20)
        net.eval()
        x = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(7))
        case = options.folder / f"{name}-{options.exporter}"
        (case / "test_data_set_0").mkdir(parents=True, exist_ok=True)
        model = str(case / "model.onnx")
        if options.exporter == "dynamo":
            torch.onnx.export(net, (x,), model, dynamo=True)
        else:
            torch.onnx.export(net, (x,), model, dynamo=False, input_names=["x"], output_names=["y"],
                              dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        logits = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
        save(case / "test_data_set_0" / "input_0.pb", x.numpy(), "x")
        save(case / "test_data_set_0" / "output_0.pb", numpy.asarray(logits), "y")
        print(case, flush=True)


if __name__ == "__main__":
    main()
