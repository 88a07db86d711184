"""Compares the networks of torch_nets with the table of layers: names, geometry, shapes, parameters, multiply-adds.

usage: python3 check_nets.py network_layers.csv
"""

import collections
import csv
import os
import sys

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import networks
import pythons

try:
    import torch
    import torch_nets
    from torch import nn
    from torch_nets.layers import Narrow
except ImportError:
    pythons.start_again(None, "torch")

LEFT_OUT = {"googlenet_caffe", "resnet50_v1"}  # neighbours of two networks, in the table for orientation only
NAMES = {"AdaptiveAvgPool2d": "AvgPool2d"}


def pair(value):
    return f"{value}x{value}" if isinstance(value, int) else "x".join(map(str, value))


def describe(name, module, y):
    """A module's call as a row of the table."""
    kind = type(module).__name__
    out = "x".join(map(str, y.shape[1:]))
    weighted = isinstance(module, (nn.Conv2d, nn.Linear))
    params = sum(p.numel() for p in module.parameters())
    macs = module.weight[0].numel() * y[0].numel() if weighted else 0
    geometry = ()
    if isinstance(module, nn.Conv2d):
        geometry = (pair(module.kernel_size), pair(module.stride), pair(module.padding), str(module.groups))
    elif isinstance(module, nn.MaxPool2d):
        geometry = (pair(module.kernel_size), pair(module.stride), pair(module.padding), module.ceil_mode)
    bias = module.bias is not None if weighted else None
    return (name, NAMES.get(kind, kind), geometry, bias, extra(module), out, params, macs)


def extra(module):
    if isinstance(module, nn.BatchNorm2d):
        return (module.eps, module.momentum)
    if isinstance(module, nn.LocalResponseNorm):
        return (module.size, round(module.alpha, 6), module.beta, float(module.k))
    if isinstance(module, nn.Dropout):
        return (module.p,)
    return (module.start, module.length) if isinstance(module, Narrow) else ()


def expected(row):
    """A row of the table in the form of `describe`."""
    kind = row["type"]
    geometry = ()
    if kind == "Conv2d":
        geometry = (row["kernel"], row["stride"], row["pad"], row["groups"])
    elif kind == "MaxPool2d":
        geometry = (row["kernel"], row["stride"], row["pad"], row["ceil"] == "yes")
    bias = row["bias"] == "yes" if kind in ("Conv2d", "Linear") else None
    numbers = tuple(float(part.split("=")[1]) for part in row["extra"].split())
    return (row["layer"], kind, geometry, bias, numbers, row["out"], int(row["params"]), int(row["macs"]))


def calls(name):
    """Every leaf module's call of one forward pass, as rows."""
    net, rows = torch_nets.build(name).eval(), []
    for path, module in net.named_modules():
        if not list(module.children()) and not isinstance(module, nn.Flatten):
            module.register_forward_hook(lambda m, _, y, path=path: rows.append(describe(path, m, y)))
    its = networks.protocol_of(name)
    with torch.no_grad():
        net(torch.zeros(1, its.channels, its.image, its.image))
    return rows


def main():
    with open(sys.argv[1], newline="") as file:
        table = collections.defaultdict(list)
        for row in csv.DictReader(file):
            if not row["type"].startswith("Flatten"):
                table[row["network"]].append(expected(row))
    wrong = 0
    missing = set(table) - LEFT_OUT - set(networks.NAMES)
    for name in [n for n in networks.NAMES if n in table]:
        ours = collections.Counter(calls(name))
        theirs = collections.Counter(table[name])
        surplus, lacking = ours - theirs, theirs - ours
        params = sum(row[6] for row in table[name])
        state = "agrees" if not surplus and not lacking else "DIFFERS"
        print(f"{name:14} {sum(ours.values()):4} layers {params:12,} parameters {sum(r[7] for r in table[name]):15,} "
              f"multiply-adds  {state}")
        for text, rows in (("only in torch_nets", surplus), ("only in the table", lacking)):
            for row in list(rows)[:5]:
                print(f"    {text}: {row}")
        wrong += state == "DIFFERS"
    for name in sorted(missing):
        print(f"{name:14} is in the table and not in torch_nets")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
