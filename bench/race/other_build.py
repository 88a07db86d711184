"""Whether another build of lamina_bench computes the same function: by the files that each writes of a network. Needs
nothing but Python."""

import array
import json
import math
import os
import struct
import sys

from worker import WorkerError


def read(folder, name):
    """An array of a folder's check.safetensors; None where the file has none of the name. Throws WorkerError."""
    path = os.path.join(folder, "check.safetensors")
    try:
        with open(path, "rb") as file:
            length = struct.unpack("<Q", file.read(8))[0]
            if length > os.path.getsize(path):
                raise ValueError("its header is cut off")
            header = json.loads(file.read(length))
            if name not in header:
                return None
            start, end = header[name]["data_offsets"]
            file.seek(8 + length + start)
            values = array.array("f", file.read(end - start))
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise WorkerError(f"it has not written its numbers as today's lamina_bench does: {error}") from error
    if sys.byteorder == "big":
        values.byteswap()
    return values


def difference(ours, theirs, mode):
    """The largest difference of two builds' logits over the largest of ours; `ours`, `theirs`: folders. Throws
    WorkerError where they cannot be compared."""
    if read(ours, "x") != read(theirs, "x"):
        raise WorkerError("it draws other images than this lamina_bench, so their results cannot be compared")
    name = "y_training" if mode == "training" and read(ours, "y_training") is not None else "y"
    expected, found = read(ours, name), read(theirs, name)
    if found is None or len(found) != len(expected):
        raise WorkerError(f"it has written {0 if found is None else len(found)} logits, not {len(expected)}")
    if not all(map(math.isfinite, found)):
        raise WorkerError("what it computes is not finite")
    furthest = max((abs(a - b) for a, b in zip(expected, found)), default=0.0)
    return furthest / max(map(abs, expected)) if furthest > 0 and any(expected) else furthest
