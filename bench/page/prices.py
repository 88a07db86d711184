"""Dated prices of machines by the hour: files in the form of bench/published/prices.csv."""

import csv
import os
import re

from page import published

HEAD = ["source", "date", "configuration", "usd_per_hour", "note"]
# Words of a machine's name that do not belong to the model: maker, kind, memory and clock.
NO_MODEL = re.compile(r"nvidia|amd|intel|geforce|tesla|gpu|cpu|processor|r|tm|pcie|sxm\d?|hbm\d?e?|\d+gb|[\d.]+ghz")


def number(text):
    """The value of a text that is a decimal number; None for any other text."""
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) else None


class PriceError(Exception):
    """An error in a file of prices."""


def read(paths):
    """The prices of all files; if no file is given, the published prices."""
    return [price for path in paths or [os.path.join(published.FOLDER, "prices.csv")] for price in read_one(path)]


def read_one(path):
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # files of spreadsheets begin with a byte order mark
            lines = list(csv.reader(file))
    except OSError as error:
        raise PriceError(f"--prices: {path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise PriceError(f"--prices: {path} is not a table of prices: {error}") from None
    if not lines or [word.strip() for word in lines[0]][:4] != HEAD[:4]:
        raise PriceError(f"--prices: {path}: the first line is not {','.join(HEAD)}")
    found = []
    for place, line in enumerate(lines[1:], 2):
        if not line:
            continue
        source, date, configuration, usd, note = ([word.strip() for word in line] + [""] * 5)[:5]
        if not number(usd):
            raise PriceError(f'--prices: {path}, line {place}: "{usd}" is no price by the hour; 0.085 is one')
        if not re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", date):
            raise PriceError(f'--prices: {path}, line {place}: "{date}" is no date; 2026-11 or 2026-11-22 is one')
        found.append({"label": f"{configuration}, {number(usd):g} USD/h, {date}" + (f", {note}" if note else ""),
                      "date": date, "configuration": configuration, "usd": number(usd),
                      "preemptible": bool(re.search(r"(?<!non-)(?<!not )preemptible", note.lower()))})
    if not found:
        raise PriceError(f"--prices: {path} has no prices")
    return found


def model_words(name):
    return {word for word in re.findall(r"[a-z0-9.]+", name.lower()) if not NO_MODEL.fullmatch(word)}


def fits(price, machine):
    """Whether a price is for this machine: the price's configuration, up to a "+", names the machine's model."""
    model = model_words(price["configuration"].split("+")[0])
    return bool(model) and model == model_words(machine.split(",")[0])
