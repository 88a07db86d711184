"""Files that are written whole, or not at all. The standard library suffices: the pack of bench/gpu has it, too."""

import contextlib
import os


def write(path, content):
    """Writes bytes or text beside the file first: after a fault or a power cut there is the old file or the new one."""
    # A link stays one. What is no regular file, such as a pipe, is written to.
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
