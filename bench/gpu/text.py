"""Reads what programs print: the line that says what went wrong."""

import re
import signal

LINE = 300  # characters of a line of the summary
WRONG = re.compile(r"\berror\b|\bfail(s|ed|ure)?\b|exception|terminate called|\bcannot\b|not found|^lamina_bench: |"
                   r"^race: |^skipped: |Unsupported|No tests? ran|^=+ Invalid", re.IGNORECASE)


def one_line(text):
    """Text with single spaces, cut to the length of a line."""
    text = " ".join(text.split())
    return text if len(text) <= LINE else text[:LINE - 3] + "..."


def ended(status):
    return f"exit status {status}" if status >= 0 else f"ended by {signal.Signals(-status).name}"


def first_error(log):
    """The summary of failed cases, a failed assertion, the first line with an error, or the last line."""
    if "\nsuite: " in log:
        return one_line(log.rpartition("\nsuite: ")[2])
    if failed := re.search(r"^\S+:\d+: FAILED(.*\n)*?\n", log, re.MULTILINE):
        return one_line(failed[0])
    lines = [line for line in log.splitlines() if line.strip()]
    wrong = [line for line in lines if WRONG.search(line) and not re.search(r"\b0 (errors|failed)", line)]
    return one_line((wrong or lines[-1:] or [""])[0])
