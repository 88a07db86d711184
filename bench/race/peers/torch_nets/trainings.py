"""The six workloads of lamina/workloads.h in PyTorch: functions of parameters, which have Lamina's names."""

import functools
import math

import torch
import torch.nn.functional as F

CLIP = 1e-7  # limit of probabilities in losses, as in Keras


def parameters(arrays, dtype, device="cpu"):
    """A file's arrays as tensors to train. Biases become vectors. Weights become matrices, except of convolutions."""
    def shaped(key, value):
        if "bias" in key:
            return value.flatten()
        return value if key.startswith("conv") else value.flatten(1)
    return {key: shaped(key, torch.tensor(array, dtype=dtype, device=device)).contiguous().requires_grad_(True)
            for key, array in arrays.items()}


def softmax_loss(logits, labels):
    p = F.softmax(logits, 1).gather(1, labels[:, None]).clamp(CLIP, 1 - CLIP)
    return -p.log().mean()


def sigmoid_loss(logits, labels):
    limit = math.log((1 - CLIP) / CLIP)
    return F.binary_cross_entropy_with_logits(logits[:, 0].clamp(-limit, limit), labels.to(logits.dtype))


def lstm_last(x, p, *names):
    """The last states of an LSTM, or of two LSTMs in both directions. `names`: one name, or two."""
    # x is batch, steps, features; gates are in the order i, f, g, o. PyTorch adds a second bias, which is zero.
    params = []
    for name in names:
        w_ih, w_hh, bias = (p[f"{name}.{part}_l0"] for part in ("weight_ih", "weight_hh", "bias"))
        params += [w_ih, w_hh, bias, torch.zeros_like(bias)]
    start = x.new_zeros(len(names), x.shape[0], params[1].shape[1])
    _, last, _ = torch.lstm(x, (start, start), params, True, 1, 0.0, True, len(names) == 2, True)
    return last.transpose(0, 1).flatten(1)


def dense(x, p, name):
    return F.linear(x.flatten(1), p[name + ".weight"], p[name + ".bias"])


def conv(x, p, name, pad=0):
    return F.conv2d(x, p[name + ".weight"], p[name + ".bias"], padding=pad).relu()


def mnist_mlp(x, p, dropout):
    x = dropout(dense(x, p, "dense_1").relu(), 0.2)
    return dense(dropout(dense(x, p, "dense_2").relu(), 0.2), p, "dense_3")


def mnist_cnn(x, p, dropout):
    x = dropout(F.max_pool2d(conv(conv(x, p, "conv2d_1"), p, "conv2d_2"), 2), 0.25)
    return dense(dropout(dense(x, p, "dense_1").relu(), 0.5), p, "dense_2")


def cifar10_cnn(x, p, dropout):
    x = dropout(F.max_pool2d(conv(conv(x, p, "conv2d_1", 1), p, "conv2d_2"), 2), 0.25)
    x = dropout(F.max_pool2d(conv(conv(x, p, "conv2d_3", 1), p, "conv2d_4"), 2), 0.25)
    return dense(dropout(dense(x, p, "dense_1").relu(), 0.5), p, "dense_2")


def embedded(ids, p):
    return F.embedding(ids, p["embedding_1.weight"])


def imdb_fasttext(ids, p, _dropout):
    return dense(embedded(ids, p).mean(1), p, "dense_1")


def imdb_bilstm(ids, p, dropout):
    return dense(dropout(lstm_last(embedded(ids, p), p, "lstm_1", "lstm_1_reverse"), 0.5), p, "dense_1")


def lstm_text(ids, p, _dropout):
    one_hot = F.one_hot(ids, p["dense_1.bias"].numel()).to(p["dense_1.bias"].dtype)
    return dense(lstm_last(one_hot, p, "lstm_1"), p, "dense_1")


IMAGES, REVIEWS, TEXT = ("mnist_mlp", "mnist_cnn", "cifar10_cnn"), ("imdb_fasttext", "imdb_bilstm"), ("lstm_text",)
NAMES = IMAGES + REVIEWS + TEXT


def inputs(name, x, dtype):
    """Samples in the form that a workload takes: images in the type, ids as whole numbers of shape {batch, steps}."""
    x = torch.tensor(x)
    return x.to(dtype) if name in IMAGES else x.flatten(1).long()


def loss(name, x, labels, p, train=True):
    """The mean loss of a batch. `train`: whether dropout is on."""
    dropout = functools.partial(F.dropout, training=train)
    return (sigmoid_loss if name in REVIEWS else softmax_loss)(globals()[name](x, p, dropout), labels)
