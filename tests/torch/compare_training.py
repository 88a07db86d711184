#!/usr/bin/env python3
"""The six workloads against PyTorch: the same initial parameters and batches, in f64, without dropout. The losses of
100 steps agree to 1e-9, and so do the parameters after them, relative to the largest of each tensor to 1e-7.

The optimisers are those of make_training.py: PyTorch's own where its formula is Keras'.
"""

import os
import subprocess
import sys
import tempfile

import comparison

try:
    import numpy
    import torch

    import safetensors_file
    from make_training import KerasAdam
    from torch_nets import trainings
except ImportError:
    torch = None

# Steps fit into one epoch of so large a share of the synthetic set; widths are divided where a step would take long.
WORKLOADS = {"mnist_mlp": (1, 0.22), "mnist_cnn": (4, 0.22), "cifar10_cnn": (4, 0.065), "imdb_fasttext": (1, 0.13),
             "imdb_bilstm": (2, 0.13), "lstm_text": (2, 0.066)}


def optimiser(name, params):
    if name == "mnist_cnn":
        return torch.optim.Adadelta(params, lr=1.0, rho=0.95, eps=1e-8)
    if name.startswith("imdb"):
        return KerasAdam(params, lr=1e-3)
    return torch.optim.RMSprop(params, lr=1e-3, alpha=0.9, eps=1e-8)


def torch_losses(name, file):
    """Losses of the steps, and the parameters after them."""
    params = trainings.parameters({key[len("initial."):]: file[key] for key in file if key.startswith("initial.")},
                                  torch.float64)
    x = [trainings.inputs(name, step, torch.float64) for step in file["x"]]
    labels = torch.tensor(file["labels"]).long()
    opt = optimiser(name, list(params.values()))
    losses = []
    for step, rate in enumerate(file["rates"]):
        opt.param_groups[0]["lr"] = float(rate)
        for p in params.values():
            p.grad = None
        loss = trainings.loss(name, x[step], labels[step], params, train=False)
        loss.backward()
        losses.append(loss.item())
        opt.step()
    return numpy.array(losses), {key: p.detach().numpy() for key, p in params.items()}


def compare(name, arguments):
    divisor, share = WORKLOADS[name]
    with tempfile.TemporaryDirectory(prefix="lamina-train-") as folder:
        out = os.path.join(folder, "run.safetensors")
        subprocess.run([arguments.program, name, str(arguments.steps), str(divisor), str(share), out], check=True)
        file = safetensors_file.read(out)
        losses, params = torch_losses(name, file)
        ours = numpy.array(file["losses"])
        gap = float(numpy.abs(ours - losses).max())
        worst = max(comparison.difference(numpy.array(file["final." + key]), p) for key, p in params.items())
        moved = max(float(numpy.abs(numpy.array(file["initial." + key]).reshape(p.shape) - p).max())
                    for key, p in params.items())
    good = gap <= 1e-9 and worst <= 1e-7 and moved > 1e-3 and ours[-10:].mean() < ours[0]
    print(f"{name:14} {len(ours)} steps  loss {ours[0]:.6f} to {ours[-1]:.6f}  worst loss {gap:.1e}  "
          f"worst parameter {worst:.1e}  {'ok' if good else 'FAIL'}", flush=True)
    return good


def main():
    parser = comparison.parser(__doc__, "torch_train")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="joined by commas")
    parser.add_argument("--steps", type=int, default=100)
    arguments = comparison.parse(parser, "torch, numpy", there=torch is not None)
    print(f"torch {torch.__version__}", flush=True)
    return comparison.status(compare(name, arguments) for name in arguments.workloads.split(","))


if __name__ == "__main__":
    sys.exit(main())
