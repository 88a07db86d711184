#!/usr/bin/env python3
"""Writes tiny.safetensors beside this script: a state_dict of PyTorch, by the format's description and nothing else.

A convolution (F32, F16), a batch norm with its integer counter, and a fully connected layer (F64, BF16), with numbers
that tests/io/safetensors_test.cpp computes again.
"""
import json
import pathlib
import struct

import torch


def numbers(*extents):
    count = 1
    for extent in extents:
        count *= extent
    return ((torch.arange(count, dtype=torch.float64) - 3) / 8).reshape(extents)


tensors = {
    "conv1.weight": numbers(2, 1, 3, 3).to(torch.float32),
    "conv1.bias": numbers(2).to(torch.float16),
    "bn1.weight": numbers(2).to(torch.float32),
    "bn1.bias": numbers(2).to(torch.float32),
    "bn1.running_mean": numbers(2).to(torch.float32),
    "bn1.running_var": numbers(2).abs().to(torch.float32),
    "bn1.num_batches_tracked": torch.tensor(7),
    "fc.weight": numbers(3, 4),
    "fc.bias": numbers(3).to(torch.bfloat16),
    "empty": torch.zeros(0, 5),
    "scalar": torch.tensor(2.5),
}
names = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}

header, data = {"__metadata__": {"format": "pt", "made by": "a script, für Lamina"}}, b""
for name, tensor in tensors.items():
    if tensor.dtype == torch.bfloat16:  # numpy has no bfloat16: the upper halves of float32
        raw = tensor.float().numpy().tobytes()
        raw = b"".join(raw[i + 2:i + 4] for i in range(0, len(raw), 4))
    else:
        raw = tensor.numpy().tobytes()
    header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape),
                    "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw

text = json.dumps(header, ensure_ascii=False).encode()
text += b" " * (-len(text) % 8)
pathlib.Path(__file__).with_name("tiny.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
