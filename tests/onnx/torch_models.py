#!/usr/bin/env python3
"""Networks from both of PyTorch's exporters: logits are compared with onnxruntime, gradients with PyTorch.

The networks are torchvision's, and the zoo's networks with LRN or without batch norm. Weights are random. A model is
exported with a batch, read by `onnx_cases` or `torch_dump`, and run on the same images.

Bounds are relative to the largest value. In f32, logits may differ from onnxruntime's by 1e-4. In f64, a model with its
batch norms runs a training pass: logits may differ from PyTorch's by 1e-9, and a node's gradients by 1e-8.

Needs torch, torchvision, onnx, onnxruntime and onnxscript. Without these packages it is skipped.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "torch"))
import comparison  # noqa: E402

MODULES = "torch, torchvision, onnx, onnxruntime, onnxscript, numpy"
try:
    import numpy
    import onnx
    import onnxruntime
    import onnxscript  # noqa: F401  the exporter dynamo needs it
    import torch
    import torchvision

    import program
    import safetensors_file
    import torch_nets
except ImportError:
    torch = None

TORCHVISION = {"resnet50": "resnet50", "mobilenet_v2": "mobilenet_v2", "mobilenet_v3": "mobilenet_v3_small",
               "densenet121": "densenet121", "inception_v3": "inception_v3", "efficientnet_b0": "efficientnet_b0",
               "squeezenet": "squeezenet1_1", "shufflenet_v2": "shufflenet_v2_x1_0"}
ZOO = ("alexnet", "inception_v1", "vgg16")
WITH_GRADIENTS = ("resnet50", "mobilenet_v2", "efficientnet_b0", "shufflenet_v2", "shared", "gates", "parts")
EXACT, GRADIENTS = 1e-9, 1e-8


if torch is not None:
    class Shared(torch.nn.Module):
        """Two views of an image go through the same tower, which applies one convolution twice."""

        def __init__(self):
            super().__init__()
            self.stem = torch.nn.Conv2d(3, 8, 5, stride=2, bias=False)
            self.again = torch.nn.Conv2d(8, 8, 3, padding=1)
            self.norm = torch.nn.BatchNorm2d(8)
            self.head = torch.nn.Linear(16, 1000)

        def forward(self, x):
            pools = torch.nn.functional.max_pool2d, torch.nn.functional.avg_pool2d
            towers = [self.norm(self.again(self.again(self.stem(pool(x, 2))).relu())) for pool in pools]
            return self.head(torch.cat(towers, 1).relu().mean((2, 3)))

    class Gates(torch.nn.Module):
        """Ops on two values: gates by plane, pixel, row and column, a maximum of two halves, differences, a
        quotient."""

        def __init__(self):
            super().__init__()
            self.stem = torch.nn.Conv2d(3, 8, 5, stride=2)
            self.squeeze, self.expand = torch.nn.Linear(8, 4), torch.nn.Linear(4, 8)
            self.across = torch.nn.Conv1d(1, 1, 3, padding=1, bias=False)
            self.spatial = torch.nn.Conv2d(8, 1, 7, padding=3)
            self.rows, self.columns = torch.nn.Conv2d(8, 8, 1), torch.nn.Conv2d(8, 8, 1)
            self.halves = torch.nn.Conv2d(8, 16, 3, padding=1)
            self.head = torch.nn.Linear(16, 1000)

        def forward(self, x):
            x = self.stem(x)
            factor = self.expand(self.squeeze(x.mean((2, 3))).relu()).sigmoid().view(x.size(0), -1, 1, 1)
            x = factor.expand_as(x) * x                                                    # squeeze-and-excitation
            factor = self.across(x.mean((2, 3)).unsqueeze(1)).sigmoid().view(x.size(0), -1, 1, 1)
            x = x * factor.expand_as(x)                                                    # ECA
            x = x * self.spatial(x).sigmoid()                                              # spatial attention
            rows, columns = self.rows(x.mean(3, keepdim=True)), self.columns(x.mean(2, keepdim=True))
            x = x * rows.sigmoid() * columns.sigmoid()                                     # coordinate attention
            x = torch.max(*self.halves(x).chunk(2, 1))                                     # max-feature-map
            x = x + (torch.nn.functional.avg_pool2d(x, 3, 1, 1) - x)                       # PoolFormer
            a, b = x.mean((2, 3)), torch.nn.functional.max_pool2d(x, 4).mean((2, 3))
            return self.head(torch.cat([(a - b) * (a - b), a / (b.abs() + 1)], 1))

    class Parts(torch.nn.Module):
        """Every other pixel (YOLOv5's focus), a slice padded with zero channels (ResNet's option A), a circular border,
        a crop, a negative pad, and one row."""

        def __init__(self):
            super().__init__()
            self.focus = torch.nn.Conv2d(12, 8, 3, padding=1)
            self.down = torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)
            self.ring = torch.nn.Conv2d(16, 16, 3, padding=1, padding_mode="circular")
            self.head = torch.nn.Linear(16 * 5 + 32, 1000)

        def forward(self, x):
            pad = torch.nn.functional.pad
            x = torch.cat([x[..., i::2, j::2] for j in (0, 1) for i in (0, 1)], 1)
            x = self.focus(x).relu()
            x = (self.down(x) + pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 4, 4))).relu()
            y = self.ring(x)
            row = y[:, :, -1, -5:].flatten(1)
            both = torch.cat([y[:, :, 1:-1, 2:], pad(x, (-1, -1, 0, -2))], 1)
            return self.head(torch.cat([row, both.mean((2, 3))], 1))


def network(name):
    if name in ("shared", "gates", "parts"):
        net = globals()[name.title()]()
    elif name in ZOO:
        net = torch_nets.build(name, softmax=False)
    else:
        more = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
        net = getattr(torchvision.models, TORCHVISION[name])(weights=None, **more)
    torch_nets.randomise(net, seed=20)
    for module in net.modules():
        if isinstance(module, (torch.nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return net.eval()


def images(name, batch, extent):
    size = extent or (299 if name == "inception_v3" else 224)
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(7))


def export(net, x, exporter, model, keep_norms=False):
    """Exports a network. The exporter `legacy` leaves the batch open, `dynamo` writes it as a number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            torch.onnx.export(net, (x,), str(model), dynamo=True, verbose=False)
        else:
            mode = torch.onnx.TrainingMode.PRESERVE if keep_norms else torch.onnx.TrainingMode.EVAL
            torch.onnx.export(net, (x,), str(model), dynamo=False, input_names=["x"], output_names=["y"],
                              dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, training=mode,
                              do_constant_folding=not keep_norms)


def check_logits(name, exporter, onnx_cases, folder):
    """Checks the logits of a model. `dynamo` exports it for one image; it is read for two images."""
    net, x = network(name), images(name, 2, None)
    folder.mkdir()
    export(net, x if exporter == "legacy" else x[:1], exporter, folder / "model.onnx")
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    its = session.get_inputs()[0].name
    run = lambda part: session.run(None, {its: part.numpy()})[0]  # noqa: E731
    logits = run(x) if exporter == "legacy" else numpy.concatenate([run(x[:1]), run(x[1:])])
    return program.check_logits(f"{name:16}{exporter}", onnx_cases, folder / "model.onnx", {its: x.numpy()}, logits)


def parameters_by_node(model):
    """The file's names of parameters, by our names. A shared parameter has the name of its first node."""
    names = {}
    for node in onnx.load(model).graph.node:
        if node.op_type in ("Conv", "Gemm", "BatchNormalization"):
            names |= {f"{node.name}.{ours}": its for ours, its in zip(("weight", "bias"), node.input[1:3])
                      if its not in names.values()}
    return names


def check_gradients(name, dump, folder, batch=4, extent=96):
    net, x = network(name), images(name, batch, extent)
    model = folder / "model.onnx"
    folder.mkdir(parents=True)
    export(net, x, "legacy", model, keep_norms=True)
    net = net.double().train()
    dy = torch.randn(batch, 1000, generator=torch.Generator().manual_seed(8)).double()
    y = net(x.double())
    y.backward(dy)
    theirs = {its: p.grad.numpy() for its, p in net.named_parameters()}

    comparison.write_safetensors(folder / "data", {"x": x.numpy(), "dy": dy.numpy()})
    subprocess.run([dump, model, "training", "f64", model, folder / "data", folder / "result"], check=True)
    ours = safetensors_file.read(folder / "result")
    names = parameters_by_node(str(model))
    if sorted(names.values()) != sorted(theirs):
        print(f"{name:16}the file's parameters are not PyTorch's: FAIL")
        return False
    # The gradient of a shift before a batch norm is 0, so its computed numbers are only rounding errors. Therefore a
    # difference is relative to the largest gradient of the node.
    by_node = {}
    for parameter, its in names.items():
        by_node.setdefault(parameter.rpartition(".")[0], []).append((f"gradient.{parameter}", its))
    joined = {node: [numpy.concatenate([numpy.asarray(part).ravel() for part in parts])
                     for parts in ([ours[mine] for mine, _ in pairs], [theirs[its] for _, its in pairs])]
              for node, pairs in by_node.items()}
    worst, where = max((comparison.difference(*both), node) for node, both in joined.items())
    logits = comparison.difference(ours["y"], y.detach().numpy())
    good = worst <= GRADIENTS and logits <= EXACT
    print(f"{name:16}f64     gradients  {worst:8.1e}  bound {GRADIENTS:.1e}  {len(names)} tensors, worst of {where}; "
          f"logits {logits:.1e}  {'ok' if good else 'FAIL'}", flush=True)
    return good


def check(name, options):
    """All checks of one network."""
    good = True
    with tempfile.TemporaryDirectory(prefix="lamina-onnx-") as folder:
        for exporter in ("legacy", "dynamo"):
            good = check_logits(name, exporter, options.program, pathlib.Path(folder) / exporter) and good
        if options.dump and name in WITH_GRADIENTS:
            good = check_gradients(name, options.dump, pathlib.Path(folder) / "gradients") and good
    return good


def main():
    parser = comparison.parser(__doc__, "onnx_cases")
    parser.add_argument("--dump", help="torch_dump: also gradients")
    parser.add_argument("--nets", default=",".join([*TORCHVISION, *ZOO, "shared", "gates", "parts"]),
                        help="joined by commas")
    options = comparison.parse(parser, MODULES, there=torch is not None)
    os.environ["TORCH_LOGS"] = "-all"
    print(f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}", flush=True)
    return comparison.status(check(name, options) for name in options.nets.split(","))


if __name__ == "__main__":
    sys.exit(main())
