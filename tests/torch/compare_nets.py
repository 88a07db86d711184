#!/usr/bin/env python3
"""Whole networks against PyTorch: the same weights, images and output gradients; logits, gradients and statistics.

The networks are those of a race: torchvision's, or our own modules. The weights are random, scaled by fan-in, the
batch-norm statistics random as well; they travel as a safetensors file that `torch_dump` loads strictly. Dropout is off,
the softmax left out.

Bounds, relative to the tensor's largest value: logits 1e-4 in f32 and 1e-9 in f64, in both modes; running statistics
after a training pass the same; gradients of parameters and of the image 1e-8 in f64. If PyTorch's own f32 is
further than half of 1e-4 from its f64, the bound is twice that distance: two f32 programs cannot agree better than each
agrees with f64. f32 gradients of whole networks are not compared: a ReLU or a maximum that decides otherwise
changes them for any correct program.
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
INPUTS = {"dcgan_generator": (100, 1), "dcgan_discriminator": (3, 64)}  # channels and the image that they are made for


def reference(name):
    """The network in PyTorch, in f32, with random weights and statistics, dropout off."""
    net = torch_nets.randomise(torch_nets.build(name, softmax=False), seed=20)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return net


def run_torch(net, mode, dtype, x, dy):
    """PyTorch's results, under the names that torch_dump uses. `net` is a private copy."""
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
    """The tensor that differs most among those whose names start so: (difference, name)."""
    names = [name for name in theirs if name.startswith(prefixes)]
    lacking = [name for name in names if name not in ours]
    surplus = [name for name in ours if name.startswith(prefixes) and name not in theirs]
    if lacking or surplus:
        return float("inf"), f"names differ: {', '.join((lacking + surplus)[:3])}"
    # A bias before a batch norm that sees only its sum has a gradient of 0: noise, far below the others.
    noise = 1e-12 * max((abs(theirs[name]).max() for name in names), default=0.0)
    names = [name for name in names if max(abs(theirs[name]).max(), abs(ours[name]).max()) > noise] or names
    return max(((comparison.difference(ours[name], theirs[name]), name) for name in names), default=(0.0, "-"))


def checks(mode, dtype, ours, theirs, exact):
    """The comparisons: (what, tensors, difference, its tensor, bound). `exact` is PyTorch's f64."""
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
    """Our program on the weights of a network, on images and on output gradients."""

    def __init__(self, program, name, net, x, dy):
        self.program, self.name, self.folder = program, name, tempfile.TemporaryDirectory(prefix="lamina-torch-")
        self.files = [os.path.join(self.folder.name, file) for file in ("weights", "data", "result")]
        comparison.write_safetensors(self.files[0], {key: tensor.numpy() for key, tensor in net.state_dict().items()})
        comparison.write_safetensors(self.files[1], {"x": x.numpy(), "dy": dy.numpy()})

    def run(self, mode, dtype):
        subprocess.run([self.program, self.name, mode, dtype, *self.files], check=True)
        return safetensors_file.read(self.files[2])


def compare(name, arguments):
    """Prints lines of the table. Returns whether all of them hold."""
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
            # A layer scale is a node's scale here, and a parameter of its block there.
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
