"""Reads safetensors files. Written from the format's description, so it is independent of Lamina's writer."""

import json
import struct

import numpy

# The file: eight bytes with the length of a JSON header, the header, the numbers.
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def read(path):
    """{name: array}. An array stays in the file until it is used."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        place = 8 + length + entry["data_offsets"][0]
        arrays[name] = numpy.memmap(path, TYPES[entry["dtype"]], "r", place, tuple(entry["shape"]))
    return arrays
