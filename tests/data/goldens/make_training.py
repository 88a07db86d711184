#!/usr/bin/env python3
"""Losses of 100 steps of a small network under every optimiser, by PyTorch in f64, as training.safetensors beside this
script; and of a network with a table of words, whose gradient is sparse, as lazy_training.safetensors.

usage: make_training.py        (the file says which version made it)

The network: 12 -> 16, ReLU, 16 -> 5, softmax cross entropy; ten batches of eight, in turn. The cases have the names of
tests/train/goldens_test.cpp. PyTorch has no SGD and no Adam by Keras' formulas; these are here as in Keras 2.1.1.
"""

import torch

from make_goldens import HERE, Numbers, write

STEPS, BATCHES, BATCH = 100, 10, 8


class KerasSgd:
    """keras/optimizers.py, SGD.get_updates."""

    def __init__(self, params, lr, momentum=0.0, nesterov=False):
        self.params, self.lr, self.momentum, self.nesterov = params, lr, momentum, nesterov
        self.moments = [torch.zeros_like(p) for p in params]
        self.param_groups = [{"lr": lr}]

    @torch.no_grad()
    def step(self):
        lr = self.param_groups[0]["lr"]
        for p, m in zip(self.params, self.moments):
            v = self.momentum * m - lr * p.grad
            m.copy_(v)
            p.add_(self.momentum * v - lr * p.grad if self.nesterov else v)


class KerasAdam:
    """keras/optimizers.py, Adam.get_updates."""

    def __init__(self, params, lr, beta_1=0.9, beta_2=0.999, epsilon=1e-8):
        self.params, self.beta_1, self.beta_2, self.epsilon = params, beta_1, beta_2, epsilon
        self.ms = [torch.zeros_like(p) for p in params]
        self.vs = [torch.zeros_like(p) for p in params]
        self.iterations = 0
        self.param_groups = [{"lr": lr}]

    @torch.no_grad()
    def step(self):
        t = self.iterations + 1
        lr_t = self.param_groups[0]["lr"] * ((1 - self.beta_2 ** t) ** 0.5 / (1 - self.beta_1 ** t))
        for p, m, v in zip(self.params, self.ms, self.vs):
            m.copy_(self.beta_1 * m + (1 - self.beta_1) * p.grad)
            v.copy_(self.beta_2 * v + (1 - self.beta_2) * p.grad ** 2)
            p.sub_(lr_t * m / (v.sqrt() + self.epsilon))
        self.iterations += 1


optim = torch.optim
CASES = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9),
    "nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01),
    "keras_rmsprop": lambda p: optim.RMSprop(p, lr=0.01, alpha=0.9, eps=1e-8),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.02, weight_decay=0.01),
    "keras_adagrad": lambda p: optim.Adagrad(p, lr=0.1, eps=1e-8),
    "adadelta": lambda p: optim.Adadelta(p, lr=1.0),
    "keras_adadelta": lambda p: optim.Adadelta(p, lr=1.0, rho=0.95, eps=1e-8),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "adam_decayed": lambda p: optim.Adam(p, lr=0.01, weight_decay=0.05),
    "adamw": lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.05),
    "keras_sgd": lambda p: KerasSgd(p, lr=0.1),
    "keras_momentum": lambda p: KerasSgd(p, lr=0.05, momentum=0.9),
    "keras_nesterov": lambda p: KerasSgd(p, lr=0.05, momentum=0.9, nesterov=True),
    "keras_adam": lambda p: KerasAdam(p, lr=0.01),
    "clipped": lambda p: optim.Adam(p, lr=0.01),
    "decaying": lambda p: KerasSgd(p, lr=0.1, momentum=0.9),
    "cosine": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
}


def losses(name, start, x, labels):
    params = [p.clone().requires_grad_(True) for p in start]
    optimiser = CASES[name](params)
    cosine = optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=80, eta_min=0.01) if name == "cosine" else None
    out = []
    for step in range(STEPS):
        if name == "decaying":
            optimiser.param_groups[0]["lr"] = 0.1 / (1 + 0.02 * step)
        for p in params:
            p.grad = None
        w1, b1, w2, b2 = params
        logits = (x[step % BATCHES] @ w1.T + b1).relu() @ w2.T + b2
        loss = torch.nn.functional.cross_entropy(logits, labels[step % BATCHES])
        loss.backward()
        out.append(loss.item())
        if name == "clipped":
            torch.nn.utils.clip_grad_norm_(params, 0.3)
        optimiser.step()
        if cosine is not None:
            if step < 80:
                cosine.step()
    return torch.tensor(out, dtype=torch.float64)


def lazy_losses(name, table, w, b, ids, labels):
    """The optimiser of the table is PyTorch's for sparse gradients, or Keras' Adam for dense gradients."""
    table, w, b = (p.clone().requires_grad_(True) for p in (table, w, b))
    optimisers = {"sparse_adam": [optim.SparseAdam([table], lr=0.05), KerasAdam([w, b], lr=0.05)],
                  "sparse_sgd": [optim.SGD([table], lr=0.5), optim.SGD([w, b], lr=0.5)],
                  "sparse_adagrad": [optim.Adagrad([table], lr=0.1), optim.Adagrad([w, b], lr=0.1)],
                  "dense_adam": [KerasAdam([table, w, b], lr=0.05)]}[name]
    out = []
    for step in range(STEPS):
        for p in (table, w, b):
            p.grad = None
        words = torch.nn.functional.embedding(ids[step % BATCHES], table, sparse=name.startswith("sparse"))
        loss = torch.nn.functional.cross_entropy(words.mean(1) @ w.T + b, labels[step % BATCHES])
        loss.backward()
        out.append(loss.item())
        for optimiser in optimisers:
            optimiser.step()
    return torch.tensor(out, dtype=torch.float64)


def write_lazy():
    numbers = Numbers("lazy training")
    tensors = {"table.weight": numbers(40, 7), "fc.weight": numbers(5, 7) * 0.3, "fc.bias": numbers(5) * 0.1}
    # Small ids are in every batch, and large ids in few batches. Some words occur twice in a text.
    ids = (torch.rand((BATCHES, BATCH, 6), generator=numbers.generator) ** 3 * 40).long()
    labels = torch.randint(5, (BATCHES, BATCH), generator=numbers.generator)
    start = list(tensors.values())
    tensors |= {"ids": ids.double(), "labels": labels.double()}
    for name in ("sparse_adam", "sparse_sgd", "sparse_adagrad", "dense_adam"):
        tensors["losses." + name] = lazy_losses(name, *start, ids, labels)
    write(HERE / "lazy_training.safetensors", tensors)


def main():
    write_lazy()
    numbers = Numbers("training")
    start = [numbers(16, 12) * 0.3, numbers(16) * 0.1, numbers(5, 16) * 0.3, numbers(5) * 0.1]
    x = numbers(BATCHES, BATCH, 12)
    labels = torch.randint(5, (BATCHES, BATCH), generator=numbers.generator)
    tensors = dict(zip(("first.weight", "first.bias", "second.weight", "second.bias"), start))
    tensors |= {"x": x, "labels": labels.double()}
    for name in CASES:
        tensors["losses." + name] = losses(name, start, x, labels)
    write(HERE / "training.safetensors", tensors)


if __name__ == "__main__":
    main()
