#!/usr/bin/env python3
"""The six workloads against PyTorch: the same initial parameters and batches, in f64, without dropout. The losses of
100 steps agree to 1e-9, and so do the parameters after them, relative to the largest of each tensor to 1e-7.

The optimisers are those of make_training.py: PyTorch's own where its formula is Keras'.
"""

import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../bench/race"), os.path.join(HERE, "../data/goldens")]
import pythons

try:
    import numpy
    import torch
    import torch.nn.functional as F

    import safetensors_file
    from make_training import KerasAdam
except ImportError:
    torch = None

CLIP = 1e-7
# Steps fit into one epoch of so large a share of the synthetic set; widths are divided where a step would take long.
WORKLOADS = {"mnist_mlp": (1, 0.22), "mnist_cnn": (4, 0.22), "cifar10_cnn": (4, 0.065), "imdb_fasttext": (1, 0.13),
             "imdb_bilstm": (2, 0.13), "lstm_text": (2, 0.066)}


def softmax_loss(logits, labels):
    p = F.softmax(logits, 1).gather(1, labels[:, None]).clamp(CLIP, 1 - CLIP)
    return -p.log().mean()


def sigmoid_loss(logits, labels):
    limit = numpy.log((1 - CLIP) / CLIP)
    return F.binary_cross_entropy_with_logits(logits[:, 0].clamp(-limit, limit), labels.double())


def lstm_last(x, p, name, reverse=False):
    """x is batch, steps, features; gates are in the order i, f, g, o."""
    w_ih, w_hh, bias = (p[f"{name}.{part}_l0"] for part in ("weight_ih", "weight_hh", "bias"))
    hidden = w_hh.shape[1]
    net = torch.nn.LSTM(w_ih.shape[1], hidden, batch_first=True).double()
    given = {"weight_ih_l0": w_ih, "weight_hh_l0": w_hh, "bias_ih_l0": bias, "bias_hh_l0": torch.zeros_like(bias)}
    y, _ = torch.func.functional_call(net, given, (x.flip(1) if reverse else x,))
    return y[:, -1]


def dense(x, p, name):
    return F.linear(x.flatten(1), p[name + ".weight"].flatten(1), p[name + ".bias"])


def conv(x, p, name, pad=0):
    return F.conv2d(x, p[name + ".weight"], p[name + ".bias"], padding=pad).relu()


def mnist_mlp(x, p):
    return dense(dense(dense(x, p, "dense_1").relu(), p, "dense_2").relu(), p, "dense_3")


def mnist_cnn(x, p):
    x = F.max_pool2d(conv(conv(x, p, "conv2d_1"), p, "conv2d_2"), 2)
    return dense(dense(x, p, "dense_1").relu(), p, "dense_2")


def cifar10_cnn(x, p):
    x = F.max_pool2d(conv(conv(x, p, "conv2d_1", 1), p, "conv2d_2"), 2)
    x = F.max_pool2d(conv(conv(x, p, "conv2d_3", 1), p, "conv2d_4"), 2)
    return dense(dense(x, p, "dense_1").relu(), p, "dense_2")


def embedded(x, p):
    return F.embedding(x[:, 0, :, 0].long(), p["embedding_1.weight"].flatten(1))


def imdb_fasttext(x, p):
    return dense(embedded(x, p).mean(1), p, "dense_1")


def imdb_bilstm(x, p):
    x = embedded(x, p)
    return dense(torch.cat([lstm_last(x, p, "lstm_1"), lstm_last(x, p, "lstm_1_reverse", True)], 1), p, "dense_1")


def lstm_text(x, p):
    one_hot = F.one_hot(x[:, 0, :, 0].long(), p["dense_1.bias"].numel()).double()
    return dense(lstm_last(one_hot, p, "lstm_1"), p, "dense_1")


def optimiser(name, params):
    if name == "mnist_cnn":
        return torch.optim.Adadelta(params, lr=1.0, rho=0.95, eps=1e-8)
    if name.startswith("imdb"):
        return KerasAdam(params, lr=1e-3)
    return torch.optim.RMSprop(params, lr=1e-3, alpha=0.9, eps=1e-8)


def torch_losses(name, file):
    """Losses of the steps, and the parameters after them."""
    params = {}
    for key in file:
        if key.startswith("initial."):
            value = torch.from_numpy(numpy.array(file[key], dtype=numpy.float64))
            vector = value.numel() == max(value.shape)
            params[key[len("initial."):]] = (value.flatten() if "bias" in key and vector else
                                             value.flatten(1) if "weight_" in key else value).requires_grad_(True)
    x = torch.from_numpy(numpy.array(file["x"])).double()
    labels = torch.from_numpy(numpy.array(file["labels"])).long()
    opt = optimiser(name, list(params.values()))
    losses = []
    for step, rate in enumerate(file["rates"]):
        opt.param_groups[0]["lr"] = float(rate)
        for p in params.values():
            p.grad = None
        logits = globals()[name](x[step], params)
        loss = (sigmoid_loss if name.startswith("imdb") else softmax_loss)(logits, labels[step])
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
        worst = max(float(numpy.abs(numpy.array(file["final." + key]).reshape(p.shape) - p).max() / numpy.abs(p).max())
                    for key, p in params.items())
        moved = max(float(numpy.abs(numpy.array(file["initial." + key]).reshape(p.shape) - p).max())
                    for key, p in params.items())
    good = gap <= 1e-9 and worst <= 1e-7 and moved > 1e-3 and ours[-10:].mean() < ours[0]
    print(f"{name:14} {len(ours)} steps  loss {ours[0]:.6f} to {ours[-1]:.6f}  worst loss {gap:.1e}  "
          f"worst parameter {worst:.1e}  {'ok' if good else 'FAIL'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="torch_train")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="joined by commas")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--python", help="where this one lacks torch: an interpreter with torch")
    arguments = parser.parse_args()
    if torch is None:
        pythons.start_again(arguments.python, "torch, numpy")
    print(f"torch {torch.__version__}", flush=True)
    good = True
    for name in arguments.workloads.split(","):
        good = compare(name, arguments) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
