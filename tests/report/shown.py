"""What a section shows of made-up files: the data of its charts, and the texts of its tables."""

import os
import sys
import tempfile
import unittest

import made
from page import packages, prices, result_files


def model_of(*documents, names=None):
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            made.write(folder, (names or [f"file{i}.json" for i in range(len(documents))])[i], one)
            for i, one in enumerate(documents)
        ]
        model, problems = result_files.read(paths)
    assert not problems, problems
    model.prices = prices.read([])
    return model


def values(section, of=0):
    """All data of a chart."""
    return [value for its in section.charts[of].spec["datasets"].values() for value in its]


def texts(table):
    return [[str(cell) for cell in row.cells] for row in table.rows]


def main():
    """Runs the tests of a file, or says aloud that they are skipped."""
    if not os.path.isdir(packages.tree()):
        print("SKIPPED: the page's packages are not here; `bench/report --bring` brings them")
        sys.exit(77)
    packages.bring()
    unittest.main()
