"""The parts of a section, as plain data without markup. assets/page.js draws them."""

import math


def digits(value, figures=3):
    """A number with three significant digits and no exponent: 0.0123, 1.23, 12.3, 123, 12345."""
    if value == 0:
        return "0"
    places = max(0, figures - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}"


def size(count):
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} bytes" if unit == "bytes" else f"{digits(count)} {unit}"
        count /= 1024


def cell(text, number=None, note="", title="", mark=""):
    """A cell. number: key for sorting the column. note: small text after the text. title: shown below the pointer."""
    more = {"number": number, "note": note, "title": title, "mark": mark}
    return {"text": text} | {name: value for name, value in more.items() if value not in (None, "")}


def figure(value, note="", scale=1):
    """A cell with a number of three significant digits; an empty cell for None."""
    return "" if value is None else cell(digits(scale * value), value, note)


def percent(share, places=0):
    return "" if share is None else cell(f"{100 * share:.{places}f}", share)


def row(cells, rerun="", mark=""):
    """A row of a table. rerun: the command that measures the row again."""
    return {"cells": cells} | ({"rerun": rerun} if rerun else {}) | ({"mark": mark} if mark else {})


def table(caption, head, rows, numeric=1):
    """A table. numeric: the first column of numbers; all later columns are numbers, too."""
    return {"caption": caption, "head": head, "rows": rows, "numeric": numeric}


def section(name, title, short, lead="", fill="", tables=(), folded=(), **parts):
    """A section. parts: charts, folded_title, notes, data (for its own script). folded: tables that a click shows."""
    shown = {"tables": [one for one in tables if one["rows"]], "folded": [one for one in folded if one["rows"]]}
    # `fill` is the command that measures the section's results. It is kept only if the section has no results.
    fill = "" if any([*shown.values(), parts.get("charts"), parts.get("notes")]) else fill
    return {"name": name, "title": title, "short": short, "lead": lead, "fill": fill} | parts | shown
