"""Reads what programs print: the line that says what went wrong, and long output made short."""

import os
import re

LINE = 300  # characters of a line of the summary
WRONG = re.compile(r"\berror\b|\bfail(s|ed|ure)?\b|exception|terminate called|\bcannot\b|not found|out of memory|"
                   r"^lamina_bench: |^race: |^skipped: |Traceback|Unsupported|refused|No tests? ran|"
                   r"^=+ (Invalid|Error)", re.IGNORECASE)
NOTHING_WRONG = re.compile(r"\b0 (errors?|failures?|failed)\b", re.IGNORECASE)


def one_line(text):
    """Text with single spaces, cut to the length of a line."""
    text = " ".join(text.split())
    return text if len(text) <= LINE else text[:LINE - 3] + "..."


def read(path, most):
    """A file's bytes, without the middle where they are more than `most`. A missing file is empty."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            if size <= most:
                return file.read()
            head = file.read(most // 4)
            file.seek(size - (most - most // 4))
            return head + f"\n[... {size - most} bytes left out ...]\n".encode() + file.read()
    except OSError:
        return b""


def first_error(log):
    """The first line of a log that says what went wrong; a failed assertion with its expansion. Where no line looks
    like one, the last."""
    lines = log.splitlines()
    for i, line in enumerate(lines):
        if re.match(r"\S+:\d+: FAILED", line):
            block = lines[i:i + 12]
            return one_line(" ".join(block[:block.index("")] if "" in block else block))
    found = [line for line in lines if WRONG.search(line) and not NOTHING_WRONG.search(line)]
    return one_line((found or [line for line in reversed(lines) if line.strip()] or [""])[0])
