"""Reading and writing the safetensors format: eight bytes of header length, a JSON header, the numbers.

Written from the format's description rather than taken from its library, so that Lamina's reader and writer face a
second implementation.
"""

import json
import struct

import numpy

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
NAMES = {numpy.dtype(code): name for name, code in TYPES.items()}


def write(path, arrays):
    """`arrays`: names to numpy arrays."""
    header, offset = {}, 0
    for name, array in arrays.items():
        size = array.nbytes
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(numpy.ascontiguousarray(array).tobytes())


def read(path):
    """Names to arrays that stay in the file until they are looked at."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        dtype = numpy.dtype(TYPES[entry["dtype"]])
        count = (end - start) // dtype.itemsize
        if count:
            flat = numpy.memmap(path, dtype, "r", 8 + length + start, (count,))
        else:
            flat = numpy.empty(0, dtype)
        arrays[name] = flat.reshape(entry["shape"])
    return arrays
