#!/usr/bin/env python3
"""Compares trainings of the six workloads with PyTorch, with the same initial parameters and batches, in f64, without
dropout. The losses of 100 steps must agree to 1e-9, and then the parameters to 1e-7 of each tensor's largest number.

By default each workload has its own optimiser and batch. With --optimisers, narrower workloads are trained with each
named optimiser (or `all`), in batches of 16, at a learning rate that falls in every step. The optimisers are those of
make_training.py: PyTorch's own if its formula is Keras' formula.
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
    from make_training import KerasAdam, KerasSgd
    from torch_nets import trainings
except ImportError:
    torch = None

# (divisor of widths, batch, share). The steps must fit into one epoch of this share of the synthetic set. Widths are
# divided if a step would take long. Batch 0 means the workload's own batch.
WORKLOADS = {"mnist_mlp": (1, 0, 0.22), "mnist_cnn": (4, 0, 0.22), "cifar10_cnn": (4, 0, 0.065),
             "imdb_fasttext": (1, 0, 0.13), "imdb_bilstm": (2, 0, 0.13), "lstm_text": (2, 0, 0.066)}
SMALL = {"mnist_mlp": (4, 16, 0.03), "mnist_cnn": (8, 16, 0.03), "cifar10_cnn": (8, 16, 0.036),
         "imdb_fasttext": (1, 16, 0.07), "imdb_bilstm": (4, 16, 0.07), "lstm_text": (4, 16, 0.0085)}

# {name: (optimiser for torch_train, the same optimiser in PyTorch)}. Rates are set before each step.
OPTIMISERS = {} if torch is None else {
    "sgd": ("sgd,rate=0.05", lambda p: torch.optim.SGD(p, lr=1)),
    "sgd_decay": ("sgd,weight_decay=0.01,rate=0.05", lambda p: torch.optim.SGD(p, lr=1, weight_decay=0.01)),
    "momentum": ("sgd,momentum=0.9,rate=0.01", lambda p: torch.optim.SGD(p, lr=1, momentum=0.9)),
    "nesterov": ("sgd,momentum=0.9,nesterov=1,weight_decay=0.01,rate=0.01",
                 lambda p: torch.optim.SGD(p, lr=1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "keras_sgd": ("keras_sgd,rate=0.05", lambda p: KerasSgd(p, lr=1)),
    "keras_momentum": ("keras_sgd,momentum=0.9,rate=0.01", lambda p: KerasSgd(p, lr=1, momentum=0.9)),
    "keras_nesterov": ("keras_sgd,momentum=0.9,nesterov=1,rate=0.01",
                       lambda p: KerasSgd(p, lr=1, momentum=0.9, nesterov=True)),
    "rmsprop": ("rmsprop,rate=0.001", lambda p: torch.optim.RMSprop(p, lr=1)),
    "rmsprop_decay": ("rmsprop,weight_decay=0.01,rate=0.001", lambda p: torch.optim.RMSprop(p, lr=1, weight_decay=0.01)),
    "keras_rmsprop": ("keras_rmsprop,rate=0.001", lambda p: torch.optim.RMSprop(p, lr=1, alpha=0.9, eps=1e-8)),
    "adagrad": ("adagrad,rate=0.01", lambda p: torch.optim.Adagrad(p, lr=1)),
    "adagrad_decay": ("adagrad,weight_decay=0.01,rate=0.01", lambda p: torch.optim.Adagrad(p, lr=1, weight_decay=0.01)),
    "keras_adagrad": ("keras_adagrad,rate=0.01", lambda p: torch.optim.Adagrad(p, lr=1, eps=1e-8)),
    "adadelta": ("adadelta,rate=1", lambda p: torch.optim.Adadelta(p, lr=1)),
    "adadelta_decay": ("adadelta,weight_decay=0.01,rate=1", lambda p: torch.optim.Adadelta(p, lr=1, weight_decay=0.01)),
    "keras_adadelta": ("keras_adadelta,rate=1", lambda p: torch.optim.Adadelta(p, lr=1, rho=0.95, eps=1e-8)),
    "adam": ("adam,rate=0.001", lambda p: torch.optim.Adam(p, lr=1)),
    "adam_decay": ("adam,weight_decay=0.01,rate=0.001", lambda p: torch.optim.Adam(p, lr=1, weight_decay=0.01)),
    "adamw": ("adamw,weight_decay=0.05,rate=0.001", lambda p: torch.optim.AdamW(p, lr=1, weight_decay=0.05)),
    "keras_adam": ("keras_adam,rate=0.001", lambda p: KerasAdam(p, lr=1)),
}
# the other workloads have keras_rmsprop
OWN = {"mnist_cnn": "keras_adadelta", "imdb_fasttext": "keras_adam", "imdb_bilstm": "keras_adam"}
FALLING = ",decay=0.02"


def torch_losses(name, optimiser, file):
    """PyTorch's losses of the steps, and the parameters after the steps."""
    params = trainings.parameters({key[len("initial."):]: file[key] for key in file if key.startswith("initial.")},
                                  torch.float64)
    x = [trainings.inputs(name, step, torch.float64) for step in file["x"]]
    labels = torch.tensor(file["labels"]).long()
    opt = OPTIMISERS[optimiser][1](list(params.values()))
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


def compare(name, optimiser, arguments):
    own = optimiser == "own"
    divisor, batch, share = (WORKLOADS if own else SMALL)[name]
    ours_by = "own" if own else OPTIMISERS[optimiser][0] + FALLING
    with tempfile.TemporaryDirectory(prefix="lamina-train-") as folder:
        out = os.path.join(folder, "run.safetensors")
        subprocess.run([arguments.program, name, str(arguments.steps), str(divisor), str(batch), str(share), ours_by, out],
                       check=True)
        file = safetensors_file.read(out)
        losses, params = torch_losses(name, OWN.get(name, "keras_rmsprop") if own else optimiser, file)
        ours = numpy.array(file["losses"])
        gap = float(numpy.abs(ours - losses).max())
        worst = max(comparison.difference(numpy.array(file["final." + key]), p) for key, p in params.items())
        moved = max(float(numpy.abs(numpy.array(file["initial." + key]).reshape(p.shape) - p).max())
                    for key, p in params.items())
    learned = ours[-10:].mean() < ours[0] or not own
    good = gap <= 1e-9 and worst <= 1e-7 and moved > 1e-3 and learned
    print(f"{name:14} {optimiser:14} {len(ours)} steps of {file['labels'].shape[1]}  loss {ours[0]:.6f} to {ours[-1]:.6f}  "
          f"worst loss {gap:.1e}  worst parameter {worst:.1e}  {'ok' if good else 'FAIL'}", flush=True)
    return good


def main():
    parser = comparison.parser(__doc__, "torch_train")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="joined by commas")
    parser.add_argument("--optimisers", default="own",
                        help="joined by commas: own (each workload's), all, or of " + ", ".join(OPTIMISERS))
    parser.add_argument("--steps", type=int, default=100)
    arguments = comparison.parse(parser, "torch, numpy", there=torch is not None)
    print(f"torch {torch.__version__}", flush=True)
    optimisers = list(OPTIMISERS) if arguments.optimisers == "all" else arguments.optimisers.split(",")
    if unknown := set(optimisers) - {"own", *OPTIMISERS}:
        parser.error(f"--optimisers: there is no {', '.join(sorted(unknown))}, but own, all, {', '.join(OPTIMISERS)}")
    return comparison.status(compare(name, optimiser, arguments) for name in arguments.workloads.split(",")
                             for optimiser in optimisers)


if __name__ == "__main__":
    sys.exit(main())
