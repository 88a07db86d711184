#!/usr/bin/env python3
"""Compares logits, gradients and statistics of whole networks with PyTorch, on the same weights, images and dy.

The networks are those of a race: torchvision's, or our own modules. Weights, scaled by fan-in, and batch-norm
statistics are random. `torch_dump` loads them strictly from a safetensors file. Dropout is off, the softmax left out.

Bounds are relative to the tensor's largest value. In both modes, logits may differ by 1e-4 in f32 and 1e-9 in f64, and
so may running statistics after a training pass. In f64, gradients of parameters and of the image may differ by 1e-8. If
PyTorch's f32 differs from its own f64 by more than 0.5e-4, the f32 bound is twice this difference, because two f32
programs cannot agree better. f32 gradients of whole networks are not compared, because a ReLU or a maximum may decide
differently in any correct program.
"""

import copy
import os
import subprocess
import sys
import tempfile

import comparison

try:
    import torch
    import torchvision

    import safetensors_file
    import torch_nets
except ImportError:
    torch = None

VALUES = {"f32": 1e-4, "f64": 1e-9}
GRADIENT = 1e-8
NETS = ("resnet50", "vgg16", "googlenet_tv", "alexnet", "inception_v1", "resnet200", "resnext50_32x4d", "mobilenet_v2",
        "efficientnet_b0", "convnext_tiny", "darknet53", "unet", "dcgan_generator", "dcgan_discriminator")
INPUTS = {"dcgan_generator": (100, 1), "dcgan_discriminator": (3, 64)}  # channels and extent of the image


def reference(name):
    """The network in PyTorch, in f32, with random weights and statistics and without dropout."""
    net = torch_nets.randomise(torch_nets.build(name, softmax=False), seed=20)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return net


def run_torch(net, mode, dtype, x, dy):
    """PyTorch's results, with torch_dump's names. `net` must be a private copy."""
    net = net.to(dtype).train(mode == "training")
    x = x.to(dtype, copy=True).requires_grad_(mode == "training")
    with torch.set_grad_enabled(mode == "training"):
        y = net(x)
    out = {"y": y.detach()}
    if mode == "training":
        y.backward(dy.to(dtype))
        out["dx"] = x.grad
        out |= {f"gradient.{name}": p.grad for name, p in net.named_parameters()}
        out |= {f"state.{name}": b for name, b in net.named_buffers() if not name.endswith("num_batches_tracked")}
    return {name: tensor.numpy() for name, tensor in out.items()}


def worst(ours, theirs, prefixes):
    """(difference, name) of the tensor that differs most, among names that begin with a prefix."""
    names = [name for name in theirs if name.startswith(prefixes)]
    lacking = [name for name in names if name not in ours]
    surplus = [name for name in ours if name.startswith(prefixes) and name not in theirs]
    if lacking or surplus:
        return float("inf"), f"names differ: {', '.join((lacking + surplus)[:3])}"
    # The gradient of a bias before a batch norm is 0, so its numbers are only noise, far below other gradients.
    noise = 1e-12 * max((abs(theirs[name]).max() for name in names), default=0.0)
    names = [name for name in names if max(abs(theirs[name]).max(), abs(ours[name]).max()) > noise] or names
    return max(((comparison.difference(ours[name], theirs[name]), name) for name in names), default=(0.0, "-"))


def checks(mode, dtype, ours, theirs, exact):
    """The comparisons: (group, tensors, largest difference, its tensor, bound). `exact` is PyTorch's f64."""
    groups = [("logits", ("y",), VALUES[dtype])]
    if mode == "training" and any(name.startswith("state.") for name in theirs):
        groups.append(("statistics", ("state.",), VALUES[dtype]))
    if mode == "training" and dtype == "f64":
        groups.append(("gradients", ("gradient.", "dx"), GRADIENT))
    for what, prefixes, bound in groups:
        count = sum(name.startswith(prefixes) for name in theirs)
        own = worst(theirs, {name: exact[name] for name in theirs if name.startswith(prefixes)}, prefixes)[0]
        yield what, count, *worst(ours, theirs, prefixes), max(bound, 2 * own)


class Ours:
    """Runs our program on a network's weights, images and output gradients."""

    def __init__(self, program, name, net, x, dy):
        self.program, self.name, self.folder = program, name, tempfile.TemporaryDirectory(prefix="lamina-torch-")
        self.files = [os.path.join(self.folder.name, file) for file in ("weights", "data", "result")]
        comparison.write_safetensors(self.files[0], {key: tensor.numpy() for key, tensor in net.state_dict().items()})
        comparison.write_safetensors(self.files[1], {"x": x.numpy(), "dy": dy.numpy()})

    def run(self, mode, dtype):
        subprocess.run([self.program, self.name, mode, dtype, *self.files], check=True)
        return safetensors_file.read(self.files[2])


def compare(name, arguments):
    """Prints the lines of one network. Returns whether all differences are within their bounds."""
    net = reference(name)
    g = torch.Generator().manual_seed(21)
    channels, image = INPUTS.get(name, (3, arguments.image))
    x = torch.randn(arguments.batch, channels, image, image, generator=g)
    with torch.no_grad():
        dy = torch.randn(copy.deepcopy(net)(x).shape, generator=g)
    program, good = Ours(arguments.program, name, net, x, dy), True
    for mode in ("inference", "training"):
        exact = run_torch(copy.deepcopy(net), mode, torch.float64, x, dy)
        for dtype in ("f64", "f32"):
            # A layer scale is a node with a scale in our graph, but a parameter of its block in PyTorch.
            ours = {key.removesuffix(".scale"): tensor for key, tensor in program.run(mode, dtype).items()}
            theirs = exact if dtype == "f64" else run_torch(copy.deepcopy(net), mode, torch.float32, x, dy)
            for what, count, gap, tensor, bound in checks(mode, dtype, ours, theirs, exact):
                good = good and gap <= bound
                print(f"{name:20}{mode:10}{dtype:4}{what:11}{count:4} tensors  worst {gap:8.1e}  bound {bound:7.1e}  "
                      f"{'ok  ' if gap <= bound else 'FAIL'}  {tensor}", flush=True)
    return good


def main():
    parser = comparison.parser(__doc__, "torch_dump")
    parser.add_argument("--nets", default=",".join(NETS), help="joined by commas")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--image", type=int, default=224)
    arguments = comparison.parse(parser, "torch, torchvision, numpy", there=torch is not None)
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, batch {arguments.batch}, "
          f"image {arguments.image}", flush=True)
    return comparison.status(compare(name, arguments) for name in arguments.nets.split(","))


if __name__ == "__main__":
    sys.exit(main())
