"""Writes files whole, or not at all. Needs only the standard library, because the pack of bench/gpu has this file."""

import contextlib
import os


def write(path, content):
    """Writes bytes or text to a second file, and renames it. After a fault or a power cut, the file is old or new."""
    # The target of a link is replaced. A file that is not regular, such as a pipe, is written to directly.
    content = content.encode() if isinstance(content, str) else content
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.write(content)
        return
    path = os.path.realpath(path)
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(beside)
