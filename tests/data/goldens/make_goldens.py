#!/usr/bin/env python3
"""Results and gradients of every op by PyTorch, on odd shapes, as safetensors files beside this script.

usage: make_goldens.py [OP...]        (with the distribution's python3-torch; the files say which version made them)

Each op has a file. With arguments, only the files of these ops are made. The tensors of a file are named
<case>.<f64|f32>.<tensor>: x0, x1, ..., the parameters weight and bias, the state before (running_mean, running_var) and
after (running_mean_after, ...), dy, y, dx0, dx1, ..., dweight, dbias. The geometry of a case stands here and, under the
same name, in tests/ops/goldens_test.cpp.
"""

import json
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {torch.float64: "F64", torch.float32: "F32"}


def write(path, tensors):
    """Writes a safetensors file: length of the header, the header as JSON, the numbers."""
    header = {"__metadata__": {"made_by": "torch " + torch.__version__}}
    data = b""
    for name, tensor in sorted(tensors.items()):
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Numbers:
    """Normal numbers that are exact in f32, the same on every run."""

    def __init__(self, name):
        self.generator = torch.Generator().manual_seed(sum((i + 1) * b for i, b in enumerate(name.encode())))

    def __call__(self, *extents):
        return torch.randn(*extents, generator=self.generator, dtype=torch.float32).double()

    def whole(self, first, end, *extents):
        return torch.randint(first, end, extents, generator=self.generator).double()


class Golden:
    """One case: inputs, parameters and state in f64, and a function that makes y."""

    def __init__(self, op, name, x, function, weight=None, bias=None, state=None, whole=None, above_0=False):
        """`whole`: {number of an input: range (first, end) of its whole numbers}. Such an input has no gradient."""
        self.op, self.name, self.function = op, name, function
        self.whole = whole or {}
        numbers = Numbers(op + name)
        self.x = [numbers.whole(*self.whole[i], *extents) if i in self.whole else numbers(*extents)
                  for i, extents in enumerate(x)]
        if above_0:
            self.x = [t.abs() + 0.125 for t in self.x]
        self.params = {}
        if weight:
            self.params["weight"] = numbers(*weight)
        if bias:
            self.params["bias"] = numbers(bias)
        self.state = {}
        if state:
            self.state = {"running_mean": numbers(state), "running_var": numbers(state).abs() + 0.5}
        self.numbers = numbers

    def tensors(self):
        out = {}
        dy64 = None
        for dtype, label in ((torch.float64, "f64"), (torch.float32, "f32")):
            x = [t.to(dtype, copy=True).requires_grad_(i not in self.whole) for i, t in enumerate(self.x)]
            params = {k: t.to(dtype, copy=True).requires_grad_() for k, t in self.params.items()}
            state = {k: t.to(dtype, copy=True) for k, t in self.state.items()}
            before = {k: t.clone() for k, t in state.items()}
            y = self.function(*x, **params, **state)
            if dy64 is None:
                dy64 = self.numbers(*y.shape)
            dy = dy64.to(dtype)
            y.backward(dy)
            put = lambda name, tensor: out.__setitem__(f"{self.name}.{label}.{name}", tensor)
            for i, t in enumerate(x):
                put(f"x{i}", t)
                if i not in self.whole:
                    put(f"dx{i}", t.grad)
            for k, t in params.items():
                put(k, t)
                put("d" + k, t.grad)
            for k, t in before.items():
                put(k, t)
                put(k + "_after", state[k])
            put("dy", dy)
            put("y", y)
        return out


def conv(name, x, channels, kernel, bias=True, groups=1, **geometry):
    weight = (channels, x[1] // groups) + kernel
    return Golden("conv", name, [x], lambda x0, weight, bias=None: F.conv2d(x0, weight, bias, groups=groups, **geometry),
                  weight=weight, bias=channels if bias else None)


def conv_transpose(name, x, channels, kernel, bias=True, groups=1, **geometry):
    weight = (x[1], channels // groups) + kernel
    return Golden("conv_transpose", name, [x],
                  lambda x0, weight, bias=None: F.conv_transpose2d(x0, weight, bias, groups=groups, **geometry),
                  weight=weight, bias=channels if bias else None)


def max_pool(name, x, **geometry):
    return Golden("max_pool", name, [x], lambda x0: F.max_pool2d(x0, **geometry))


def resize(name, x, **geometry):
    return Golden("resize", name, [x], lambda x0: F.interpolate(x0, **geometry))


def average_pool(name, x, **geometry):
    return Golden("average_pool", name, [x], lambda x0: F.avg_pool2d(x0, **geometry))


def batch_norm(name, x, training=True, eps=1e-5, momentum=0.1):
    def function(x0, weight, bias, running_mean, running_var):
        return F.batch_norm(x0, running_mean, running_var, weight, bias, training=training,
                            eps=eps, momentum=momentum)
    return Golden("batch_norm", name, [x], function, weight=(x[1],), bias=x[1], state=x[1])


def group_norm(name, x, groups, eps=1e-5):
    return Golden("group_norm", name, [x], lambda x0, weight, bias: F.group_norm(x0, groups, weight, bias, eps),
                  weight=(x[1],), bias=x[1])


def layer_norm(name, x, eps=1e-5):
    def function(x0, weight, bias):
        return F.layer_norm(x0.permute(0, 2, 3, 1), (x[1],), weight, bias, eps).permute(0, 3, 1, 2)
    return Golden("layer_norm", name, [x], function, weight=(x[1],), bias=x[1])


def lrn(name, x, size, alpha, beta, k):
    return Golden("lrn", name, [x], lambda x0: F.local_response_norm(x0, size, alpha, beta, k))


def fully_connected(name, x, outputs, bias=True):
    inputs = x[1] * x[2] * x[3]
    return Golden("fully_connected", name, [x], lambda x0, weight, bias=None: F.linear(x0.flatten(1), weight, bias),
                  weight=(outputs, inputs), bias=outputs if bias else None)


def loss_and_accuracy(loss, right):
    """Loss and accuracy in one tensor, as our losses give them; the accuracy has no gradient."""
    return torch.stack([loss, right.to(loss.dtype).mean()]).reshape(1, 2, 1, 1)


def softmax_cross_entropy(name, x, clip=0, ignored=False):
    def function(x0, x1):
        labels = x1.detach()[:, 0].long()
        counted = labels >= 0
        right = (x0.argmax(1) == labels)[counted]
        if clip == 0:
            return loss_and_accuracy(F.cross_entropy(x0, labels, ignore_index=-1), right)
        p = F.softmax(x0, 1).gather(1, labels.unsqueeze(1)).clamp(clip, 1 - clip)  # as Keras 2.1.1
        return loss_and_accuracy(-p.log().mean(), right)
    return Golden("softmax_cross_entropy", name, [x, (x[0], 1) + x[2:]], function,
                  whole={1: (-1 if ignored else 0, x[1])})


def sigmoid_cross_entropy(name, x, clip=0):
    def function(x0, x1):
        right = (x0 > 0) == (x1 == 1)
        if clip == 0:
            return loss_and_accuracy(F.binary_cross_entropy_with_logits(x0, x1), right)
        p = torch.sigmoid(x0).clamp(clip, 1 - clip)  # as Keras 2.1.1: back to a logit, then the same loss
        return loss_and_accuracy(F.binary_cross_entropy_with_logits((p / (1 - p)).log(), x1), right)
    return Golden("sigmoid_cross_entropy", name, [x, x], function, whole={1: (0, 2)})


def embedding(name, x, vocabulary, features):
    return Golden("embedding", name, [x],
                  lambda x0, weight: F.embedding(x0[:, 0].long(), weight[:, :, 0, 0]).permute(0, 3, 1, 2),
                  weight=(vocabulary, features, 1, 1), whole={0: (0, vocabulary)})


def hard_sigmoid_lstm(steps, weight_ih, weight_hh, bias):
    """An LSTM by the formula, because PyTorch's LSTM has only logistic gates."""
    h = c = steps.new_zeros(steps.shape[1], weight_hh.shape[1])
    gate = lambda a: (0.2 * a + 0.5).clamp(0, 1)
    y = []
    for x in steps:
        i, f, g, o = (x @ weight_ih.T + h @ weight_hh.T + bias).chunk(4, 1)
        c = gate(f) * c + gate(i) * torch.tanh(g)
        h = gate(o) * torch.tanh(c)
        y.append(h)
    return torch.stack(y)


def recurrent(op, name, x, hidden, reverse=False, last=False, hard=False):
    def function(x0, weight_ih_l0, weight_hh_l0, bias_l0):
        steps = x0[..., 0].permute(2, 0, 1)
        if reverse:
            steps = steps.flip(0)
        if op == "gru":  # the two biases: of x for r, z and n; of h only for n (m)
            both = [bias_l0[:3 * hidden], F.pad(bias_l0[3 * hidden:], (2 * hidden, 0))]
            zeros = x0.new_zeros(1, x0.shape[0], hidden)
            y = torch.gru(steps, zeros, [weight_ih_l0, weight_hh_l0, *both], True, 1, 0.0, True, False, False)[0]
        elif hard:
            y = hard_sigmoid_lstm(steps, weight_ih_l0, weight_hh_l0, bias_l0)
        else:
            zeros = x0.new_zeros(1, x0.shape[0], hidden)
            weights = [weight_ih_l0, weight_hh_l0, bias_l0, torch.zeros_like(bias_l0)]
            y = torch.lstm(steps, (zeros, zeros), weights, True, 1, 0.0, True, False, False)[0]
        if last:
            return y[-1][:, :, None, None]
        return (y.flip(0) if reverse else y).permute(1, 2, 0)[..., None]
    golden = Golden(op, name, [x], function)
    rows = (3 if op == "gru" else 4) * hidden
    golden.params = {"weight_ih_l0": golden.numbers(rows, x[1]), "weight_hh_l0": golden.numbers(rows, hidden),
                     "bias_l0": golden.numbers(4 * hidden)}
    return golden


GOLDENS = [
    conv("plain", (2, 3, 7, 5), 4, (3, 3), padding=1),
    conv("strided", (2, 3, 9, 7), 4, (3, 3), bias=False, stride=2, padding=1),
    conv("rectangular", (1, 2, 7, 9), 3, (1, 5), stride=(2, 1), padding=(0, 2)),
    conv("dilated", (1, 3, 9, 8), 2, (3, 2), stride=(1, 2), padding=(2, 1), dilation=(2, 3)),
    conv("grouped", (2, 4, 5, 7), 6, (3, 3), groups=2, padding=1),
    conv("grouped_dilated", (1, 6, 9, 7), 3, (3, 3), bias=False, groups=3, padding=2, dilation=2, stride=2),
    conv("depthwise", (2, 5, 5, 5), 10, (3, 3), groups=5),
    conv("pixelwise", (3, 5, 3, 5), 7, (1, 1)),
    conv("pixelwise_strided", (2, 3, 5, 7), 4, (1, 1), bias=False, stride=2),
    conv("first", (1, 3, 21, 19), 3, (11, 11), stride=4, padding=2),
    max_pool("plain", (2, 3, 7, 9), kernel_size=2, stride=2),
    max_pool("padded", (2, 3, 7, 6), kernel_size=3, stride=2, padding=1),
    max_pool("ceil", (2, 3, 6, 8), kernel_size=3, stride=2, ceil_mode=True),
    max_pool("ceil_padded", (1, 3, 6, 9), kernel_size=3, stride=2, padding=1, ceil_mode=True),
    max_pool("ceil_dropped", (1, 2, 4, 7), kernel_size=2, stride=3, padding=1, ceil_mode=True),
    max_pool("rectangular", (2, 2, 5, 7), kernel_size=(3, 2), stride=(1, 3), padding=(1, 0)),
    average_pool("plain", (2, 3, 7, 9), kernel_size=2, stride=2),
    average_pool("padded_counted", (2, 2, 7, 6), kernel_size=3, stride=2, padding=1, count_include_pad=True),
    average_pool("padded_uncounted", (2, 2, 7, 6), kernel_size=3, stride=2, padding=1, count_include_pad=False),
    average_pool("ceil_counted", (1, 3, 6, 8), kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=True),
    average_pool("ceil_uncounted", (1, 3, 6, 8), kernel_size=3, stride=2, padding=1, ceil_mode=True,
                 count_include_pad=False),
    average_pool("ceil_unpadded", (1, 3, 5, 8), kernel_size=(2, 3), stride=2, ceil_mode=True),
    Golden("global_average_pool", "map", [(2, 3, 7, 5)], lambda x0: F.adaptive_avg_pool2d(x0, 1)),
    batch_norm("training", (3, 4, 5, 3)),
    batch_norm("training_vectors", (7, 5, 1, 1), eps=1e-3, momentum=0.25),
    batch_norm("inference", (2, 4, 3, 5), training=False),
    group_norm("groups", (3, 6, 5, 3), 2),
    group_norm("one_group", (2, 5, 3, 7), 1, eps=1e-3),
    Golden("group_norm", "instances", [(2, 3, 5, 7)], F.instance_norm),
    layer_norm("pixels", (3, 7, 5, 3), eps=1e-6),
    layer_norm("vectors", (5, 11, 1, 1)),
    lrn("alexnet", (2, 7, 3, 5), size=5, alpha=1e-4, beta=0.75, k=1.0),
    lrn("alexnet_paper", (2, 7, 3, 5), size=5, alpha=5e-4, beta=0.75, k=2.0),
    lrn("even", (2, 7, 3, 3), size=4, alpha=1.5, beta=0.75, k=1.0),
    conv_transpose("plain", (2, 3, 4, 5), 4, (3, 3)),
    conv_transpose("dcgan", (2, 5, 4, 3), 3, (4, 4), stride=2, padding=1, bias=False),
    conv_transpose("output_padded", (2, 4, 3, 5), 3, (3, 3), stride=2, padding=1, output_padding=1),
    conv_transpose("rectangular", (1, 6, 3, 4), 4, (3, 2), stride=(3, 1), padding=(1, 0), output_padding=(2, 0),
                   dilation=(2, 1), groups=2),
    conv_transpose("depthwise", (2, 5, 3, 4), 5, (2, 2), stride=2, groups=5),
    Golden("relu", "map", [(2, 3, 5, 3)], F.relu),
    fully_connected("vector", (3, 11, 1, 1), 5),
    fully_connected("map", (3, 3, 2, 5), 4),
    fully_connected("no_bias", (2, 2, 3, 3), 7, bias=False),
    Golden("softmax", "vector", [(3, 11, 1, 1)], lambda x0: F.softmax(x0, 1)),
    Golden("softmax", "map", [(2, 5, 3, 4)], lambda x0: F.softmax(x0, 1)),
    Golden("softmax", "rows", [(2, 5, 3, 4)], lambda x0: F.softmax(x0, 2)),
    Golden("softmax", "log", [(2, 5, 3, 4)], lambda x0: F.log_softmax(x0, 1)),
    Golden("softmax", "log_columns", [(2, 5, 3, 4)], lambda x0: F.log_softmax(x0, 3)),
    Golden("sigmoid", "map", [(2, 3, 5, 3)], torch.sigmoid),
    Golden("tanh", "map", [(2, 3, 5, 3)], torch.tanh),
    Golden("clip", "relu6", [(2, 3, 5, 3)], F.relu6),
    Golden("clip", "two_sides", [(2, 3, 5, 3)], lambda x0: F.hardtanh(x0, -0.5, 0.75)),
    # hard_sigmoid is computed by the formula: in F.hardsigmoid's gradient in f64, 1/6 is rounded to f32.
    Golden("hard_sigmoid", "map", [(2, 3, 5, 3)], lambda x0: F.hardtanh(x0 / 6 + 0.5, 0, 1)),
    Golden("hard_sigmoid", "keras", [(2, 3, 5, 3)], lambda x0: F.hardtanh(0.2 * x0 + 0.5, 0, 1)),
    Golden("hard_swish", "map", [(2, 3, 5, 3)], F.hardswish),
    Golden("silu", "map", [(2, 3, 5, 3)], F.silu),
    Golden("prelu", "channels", [(2, 3, 5, 3)], F.prelu, weight=(3,)),
    Golden("prelu", "one", [(2, 3, 5, 3)], F.prelu, weight=(1,)),
    Golden("leaky_relu", "map", [(2, 3, 5, 3)], lambda x0: F.leaky_relu(x0, 0.1)),
    Golden("elu", "map", [(2, 3, 5, 3)], F.elu),
    Golden("elu", "selu", [(2, 3, 5, 3)], F.selu),
    Golden("celu", "map", [(2, 3, 5, 3)], lambda x0: F.celu(x0, 0.5)),
    Golden("gelu", "map", [(2, 3, 5, 3)], F.gelu),
    Golden("gelu_tanh", "map", [(2, 3, 5, 3)], lambda x0: F.gelu(x0, approximate="tanh")),
    Golden("softplus", "map", [(2, 3, 5, 3)], F.softplus),
    Golden("mish", "map", [(2, 3, 5, 3)], F.mish),
    Golden("exp", "map", [(2, 3, 5, 3)], torch.exp),
    Golden("log", "map", [(2, 3, 5, 3)], torch.log, above_0=True),
    Golden("sqrt", "map", [(2, 3, 5, 3)], torch.sqrt, above_0=True),
    Golden("abs", "map", [(2, 3, 5, 3)], torch.abs),
    Golden("pow", "cube", [(2, 3, 5, 3)], lambda x0: x0 ** 3),
    Golden("pow", "root", [(2, 3, 5, 3)], lambda x0: x0 ** -0.75, above_0=True),
    softmax_cross_entropy("vector", (7, 11, 1, 1)),
    softmax_cross_entropy("map", (2, 5, 3, 4), ignored=True),
    softmax_cross_entropy("clipped", (9, 4, 1, 1), clip=0.2),
    sigmoid_cross_entropy("vector", (13, 1, 1, 1)),
    sigmoid_cross_entropy("clipped", (3, 5, 1, 1), clip=0.3),
    embedding("sequence", (3, 1, 7, 1), 9, 5),
    embedding("vector", (11, 1, 1, 1), 6, 3),
    Golden("add", "two", [(2, 3, 5, 3)] * 2, torch.add),
    Golden("multiply", "equal", [(2, 3, 5, 3)] * 2, torch.mul),
    Golden("multiply", "planes", [(2, 3, 5, 3), (2, 3, 1, 1)], torch.mul),
    Golden("multiply", "pixels", [(2, 1, 5, 3), (2, 7, 5, 3)], torch.mul),
    Golden("broadcast_add", "rows_and_columns", [(2, 3, 5, 1), (2, 3, 1, 7)], torch.add),
    Golden("subtract", "rows", [(2, 3, 5, 3), (2, 1, 5, 1)], torch.sub),
    Golden("divide", "equal", [(2, 3, 5, 3)] * 2, torch.div, above_0=True),
    Golden("divide", "pixels", [(2, 7, 5, 3), (2, 1, 5, 3)], torch.div, above_0=True),
    Golden("maximum", "equal", [(2, 3, 5, 3)] * 2, torch.maximum),
    Golden("maximum", "channels", [(2, 3, 1, 1), (2, 3, 5, 3)], torch.maximum),
    Golden("minimum", "all", [(2, 3, 1, 1), (2, 1, 5, 3)], torch.minimum),
    Golden("pad", "four_sides", [(2, 3, 4, 3)], lambda x0: F.pad(x0, (2, 3, 1, 0), value=0.25)),
    Golden("pad", "edge", [(2, 3, 4, 3)], lambda x0: F.pad(x0, (2, 3, 1, 0), mode="replicate")),
    Golden("pad", "reflect", [(2, 3, 4, 3)], lambda x0: F.pad(x0, (2, 2, 1, 0), mode="reflect")),
    Golden("pad", "wrap", [(2, 3, 4, 3)], lambda x0: F.pad(x0, (2, 3, 1, 0), mode="circular")),
    Golden("pad", "channels", [(2, 3, 4, 3)], lambda x0: F.pad(x0, (1, 0, 0, 0, 1, 2), value=-2)),
    resize("nearest", (2, 3, 4, 5), size=(7, 9)),
    resize("nearest_factor", (2, 3, 4, 5), scale_factor=1.5),
    resize("nearest_less", (2, 3, 4, 5), size=(3, 2)),
    resize("nearest_exact", (2, 3, 4, 5), size=(7, 3), mode="nearest-exact"),
    resize("linear", (2, 3, 4, 5), size=(8, 3), mode="bilinear"),
    resize("linear_double", (2, 3, 4, 5), scale_factor=2, mode="bilinear"),
    resize("linear_factor", (2, 3, 4, 5), scale_factor=1.5, mode="bilinear"),
    resize("linear_aligned", (2, 3, 4, 5), size=(9, 3), mode="bilinear", align_corners=True),
    resize("linear_aligned_one", (2, 3, 4, 5), size=(1, 7), mode="bilinear", align_corners=True),
    Golden("channel_shuffle", "two_groups", [(2, 6, 3, 2)], lambda x0: F.channel_shuffle(x0, 2)),
    Golden("channel_shuffle", "three_groups", [(2, 6, 3, 2)], lambda x0: F.channel_shuffle(x0, 3)),
    Golden("reorder", "to_space", [(2, 12, 3, 5)], lambda x0: F.pixel_shuffle(x0, 2)),
    Golden("reorder", "to_depth", [(2, 2, 6, 9)], lambda x0: F.pixel_unshuffle(x0, 3)),
    Golden("reorder", "permuted", [(2, 5, 3, 7)], lambda x0: x0.permute(0, 3, 1, 2)),
    Golden("reduce", "mean_channels", [(2, 5, 3, 7)], lambda x0: x0.mean(1, True)),
    Golden("reduce", "mean_rows_and_channels", [(2, 5, 3, 7)], lambda x0: x0.mean((1, 2), True)),
    Golden("reduce", "sum_columns", [(2, 5, 3, 7)], lambda x0: x0.sum(3, True)),
    Golden("reduce", "sum_around_rows", [(2, 5, 3, 7)], lambda x0: x0.sum((1, 3), True)),
    Golden("reduce", "max_channels", [(2, 5, 3, 7)], lambda x0: x0.max(1, True).values),
    Golden("reduce", "max_image", [(2, 5, 3, 7)], lambda x0: x0.amax((1, 2, 3), True)),
    Golden("concat", "three", [(2, 3, 3, 5), (2, 1, 3, 5), (2, 4, 3, 5)], lambda *x: torch.cat(x, 1)),
    Golden("concat", "rows", [(2, 3, 1, 5), (2, 3, 4, 5)], lambda *x: torch.cat(x, 2)),
    Golden("slice", "middle", [(2, 7, 3, 3)], lambda x0: x0[:, 2:5]),
    Golden("slice", "rows", [(2, 3, 6, 5)], lambda x0: x0[:, :, 1::3]),
    Golden("slice", "columns", [(2, 3, 4, 7)], lambda x0: x0[..., ::2]),
    recurrent("lstm", "all", (3, 4, 7, 1), 5),
    recurrent("lstm", "all_reverse", (2, 5, 6, 1), 3, reverse=True),
    recurrent("lstm", "last", (5, 3, 4, 1), 17, last=True),
    recurrent("lstm", "last_reverse", (2, 3, 5, 1), 4, reverse=True, last=True),
    recurrent("lstm", "hard", (3, 4, 5, 1), 5, hard=True),
    recurrent("lstm", "hard_last_reverse", (2, 3, 6, 1), 4, reverse=True, last=True, hard=True),
    recurrent("gru", "all", (3, 4, 7, 1), 5),
    recurrent("gru", "last_reverse", (5, 3, 4, 1), 17, reverse=True, last=True),
]


def main():
    torch.set_num_threads(1)
    files = {}
    for golden in GOLDENS:
        if sys.argv[1:] and golden.op not in sys.argv[1:]:
            continue
        files.setdefault(golden.op, {}).update(golden.tensors())
    for op, tensors in files.items():
        write(HERE / f"{op}.safetensors", tensors)


if __name__ == "__main__":
    main()
