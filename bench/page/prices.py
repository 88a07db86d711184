"""Dated prices of machines by the hour: files as bench/published/prices.csv."""

import csv
import dataclasses
import os
import re

from page import published

HEAD = ["source", "date", "configuration", "usd_per_hour", "note"]
NO_MODEL = re.compile(r"nvidia|amd|intel|geforce|tesla|gpu|cpu|processor|r|tm|pcie|sxm\d?|hbm\d?e?|\d+gb|[\d.]+ghz")
DEFAULT = os.path.join(published.FOLDER, "prices.csv")


class PriceError(Exception):
    """What is wrong in a file of prices."""


@dataclasses.dataclass(frozen=True)
class Price:
    source: str
    date: str
    configuration: str
    usd_per_hour: float
    note: str
    file: str

    @property
    def preemptible(self):
        return bool(re.search(r"(?<!non-)(?<!not )preemptible", self.note.lower()))

    @property
    def label(self):
        return f"{self.configuration}, {self.usd_per_hour:g} USD/h, {self.date}" + (
            f", {self.note}" if self.note else ""
        )


def read(paths):
    """The prices of these files; of none, the published ones."""
    paths = paths or [DEFAULT]
    names = [os.path.basename(path) for path in paths]
    names = names if len(set(names)) == len(names) else paths
    return [price for path, name in zip(paths, names) for price in read_one(path, name)]


def read_one(path, name):
    """`name`: what the file is called where its prices are shown."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # programs of tables begin theirs with a mark
            lines = list(csv.reader(file))
    except OSError as error:
        raise PriceError(f"--prices: {path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise PriceError(f"--prices: {path} is not a table of prices: {error}") from None
    if not lines or [word.strip() for word in lines[0]][:4] != HEAD[:4]:
        raise PriceError(f"--prices: {path}: the first line is not {','.join(HEAD)}")
    found = []
    for number, line in enumerate(lines[1:], 2):
        if not line:
            continue
        cells = [word.strip() for word in line] + [""] * (len(HEAD) - len(line))
        try:
            usd = float(cells[3])
        except ValueError:
            usd = -1
        if not 0 < usd < 1e6:
            raise PriceError(f'--prices: {path}, line {number}: "{cells[3]}" is no price by the hour; 0.085 is one')
        if not re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", cells[1]):
            raise PriceError(f'--prices: {path}, line {number}: "{cells[1]}" is no date; 2026-11 or 2026-11-22 is one')
        found.append(Price(cells[0], cells[1], cells[2], usd, cells[4], name))
    if not found:
        raise PriceError(f"--prices: {path} has no prices")
    return found


def words(name):
    """Those that distinguish models: without its maker, its kind and its memory."""
    return {word for word in re.findall(r"[a-z0-9.]+", name.lower()) if not NO_MODEL.fullmatch(word)}


def fits(price, machine):
    """Whether a price is for this machine: its configuration, up to a "+", names the same model."""
    model = words(price.configuration.split("+")[0])
    return bool(model) and model == words(machine)
