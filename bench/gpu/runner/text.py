"""Reads what programs print: the line that says what went wrong, the counts of Catch2, long logs made short."""

import os
import re

LINE = 300  # characters that a line of a table may have
WRONG = re.compile(r"\berror\b|\bfail(s|ed|ure)?\b|exception|terminate called|\bcannot\b|no CUDA|not found|"
                   r"out of memory|^lamina_bench: |^compare: |^skipped: |Traceback|Unsupported|refused", re.IGNORECASE)
NOTHING_WRONG = re.compile(r"\b0 (errors?|failures?|failed)\b", re.IGNORECASE)

OTHER_FORM = (KeyError, IndexError, TypeError, ValueError, AttributeError)  # of JSON that is not as it is expected


def one_line(text, most=LINE):
    """Text with its white space made single, cut at `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most - 3] + "..."


def read(path, most):
    """A file's bytes, with the middle left out where they are more than `most`: a quarter from the beginning, the rest
    from the end. A missing file is empty."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            if size <= most:
                return file.read()
            head = file.read(most // 4)
            file.seek(size - (most - most // 4))
            return head + f"\n[... {size - most} bytes left out ...]\n".encode() + file.read(most)
    except OSError:
        return b""


def first_error(log):
    """The first line of a log that says what went wrong; of a failed Catch2 assertion with its expansion. Where no line
    looks like one, the last."""
    lines = log.splitlines()
    for i, line in enumerate(lines):
        if re.search(r"\bFAILED:?", line) and re.match(r"\S+:\d+", line):
            block = []
            for more in lines[i:i + 12]:
                if not more.strip():
                    break
                block.append(more)
            return one_line(" ".join(block))
    for line in lines:
        if WRONG.search(line) and not NOTHING_WRONG.search(line):
            return one_line(line)
    return one_line(next((line for line in reversed(lines) if line.strip()), ""))


def catch_counts(log):
    """{"passed", "failed", "skipped"}: the cases that Catch2's closing lines count, or None where there are none."""
    found = None
    for match in re.finditer(r"^All tests passed \(\d+ assertions? in (\d+) test cases?\)", log, re.MULTILINE):
        found = {"passed": int(match.group(1)), "failed": 0, "skipped": 0}
    for match in re.finditer(r"^test cases:(.*)$", log, re.MULTILINE):
        words = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped)", match.group(1))}
        found = {word: words.get(word, 0) for word in ("passed", "failed", "skipped")}
    return found


def cases_ended(log):
    """How many cases of Catch2 had ended, and the last of them, by the durations that it prints; else nothing."""
    names = re.findall(r"^\d+\.\d+ s: (.*)$", log, re.MULTILINE)
    return f"{len(names)} cases had ended, the last: {names[-1]}" if names else ""


def seconds_text(seconds):
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
