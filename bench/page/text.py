"""Numbers as texts for people."""

import math
import re


def digits(value, figures=3):
    """Three figures, without an exponent: 0.0123, 1.23, 12.3, 123, 12345."""
    if value == 0:
        return "0"
    places = max(0, figures - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}"


def milliseconds(seconds):
    return digits(1e3 * seconds)


def between(interval, scale=1e3):
    """The interval's ends, in milliseconds."""
    return f"{digits(scale * interval.low)} – {digits(scale * interval.high)}"


def number(text):
    """Of a fact like "103.2"; None of any other text."""
    return float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) else None


def mebibytes(count):
    return digits(count / 2**20)


def size(count):
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} bytes" if unit == "bytes" else f"{digits(count)} {unit}"
        count /= 1024
    return ""
