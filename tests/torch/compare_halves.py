#!/usr/bin/env python3
"""Compares the errors of networks in bf16 with those of PyTorch's bf16 (autocast). The exact results are PyTorch's f64.

Both programs get the same weights, images and output gradients. The error of logits is the relative norm of their
difference from f64. The error of gradients is the mean of such norms over all parameters. Errors are summed over the
seeds. Our error may be at most twice PyTorch's. Batch normalisation is in training mode.
"""

import copy
import sys

import compare_nets
import comparison
from compare_nets import torch

if torch is not None:
    import numpy
    import torch_nets

NETS = ("resnet18", "inception_v1")
BOUND = 2


def autocast(net, x, dy):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = net.train()(x)
    y.backward(dy.to(y.dtype))
    return {"y": y.detach().float().numpy()} | {f"gradient.{key}": p.grad.numpy() for key, p in net.named_parameters()}


def errors(found, exact):
    """The errors of the logits and of the gradients."""
    def norm(key):
        gap = found[key].reshape(exact[key].shape) - exact[key]
        return numpy.linalg.norm(gap) / numpy.linalg.norm(exact[key])
    return numpy.array([norm("y"), numpy.mean([norm(key) for key in exact if key.startswith("gradient.")])])


def of_seed(name, seed, arguments):
    """Our errors and PyTorch's errors."""
    net = torch_nets.randomise(compare_nets.reference(name), seed)
    g = torch.Generator().manual_seed(100 + seed)
    x = torch.randn(arguments.batch, 3, arguments.image, arguments.image, generator=g)
    dy = torch.randn(arguments.batch, 1000, generator=g)
    ours = compare_nets.Ours(arguments.program, name, net, x, dy).run("training", "bf16")
    exact = compare_nets.run_torch(copy.deepcopy(net), "training", torch.float64, x, dy)
    return errors(ours, exact), errors(autocast(net, x, dy), exact)


def compare(name, arguments):
    ours, theirs = sum(numpy.array(of_seed(name, 20 + k, arguments)) for k in range(arguments.seeds))
    good = True
    for what, our, their in zip(("logits", "gradients"), ours / arguments.seeds, theirs / arguments.seeds):
        holds = our <= BOUND * their
        good = good and holds
        print(f"{name:13}{what:10} error {our:8.2e}, of PyTorch {their:8.2e}, ratio {our / their:5.2f}  bound {BOUND}  "
              f"{'ok' if holds else 'FAIL'}", flush=True)
    return good


def main():
    parser = comparison.parser(__doc__, "torch_dump")
    parser.add_argument("--nets", default=",".join(NETS), help="joined by commas")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--image", type=int, default=96)
    arguments = comparison.parse(parser, "torch, torchvision, numpy", there=torch is not None)
    return comparison.status(compare(name, arguments) for name in arguments.nets.split(","))


if __name__ == "__main__":
    sys.exit(main())
