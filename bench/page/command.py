"""The command line of bench/report."""

import argparse
import os
import sys

import atomic
import wheels
from page import packages, prices, results

DESCRIPTION = """Makes one HTML page of result files. lamina_bench and bench/race/race write them with --benchmark_out.
The files may come from several machines or versions. The page needs no network and no other file."""
STATUS = "Exit status: 0; 1 if a file was left out or nothing could be written; 2 for wrong use."
PRICES = "dated prices, used in place of bench/published/prices.csv, in its format; may be given several times"


def parser():
    made = argparse.ArgumentParser(prog="bench/report", description=DESCRIPTION, epilog=STATUS, allow_abbrev=False)
    made.add_argument("files", nargs="*", metavar="FILE", help="result files (JSON)")
    made.add_argument("-o", "--out", default="report.html", metavar="FILE", help="the page (default: %(default)s)")
    made.add_argument("--prices", action="append", default=[], metavar="FILE", help=PRICES)
    made.add_argument("--install-packages", action="store_true", help="install the Python packages of the page by pip")
    return made


def run(words):
    arguments = parser().parse_args(words)
    if not arguments.files and not arguments.install_packages:
        parser().error("no result file; lamina_bench run --benchmark_out=FILE writes one")
    if any(os.path.realpath(file) == os.path.realpath(arguments.out) for file in arguments.files):
        parser().error(f"-o {arguments.out} is one of the result files; give the page another name")
    try:
        packages.install()
        if not arguments.files:
            return 0
        listed = prices.read(arguments.prices)
    except (wheels.WheelError, prices.PriceError) as error:
        print(f"bench/report: {error}", file=sys.stderr)
        return 1
    return make(arguments.files, listed, arguments.out)


def make(files, listed, out):
    from page import document

    model, problems = results.read(files)
    model.prices = listed
    for problem in problems:
        print(f"bench/report: {problem['file']} is left out: {problem['what']}", file=sys.stderr)
    if not model.files:
        print("bench/report: no page: none of the files can be used", file=sys.stderr)
        return 1
    page = document.make(model, problems).encode()
    try:
        atomic.write(out, page)
    except OSError as error:
        print(f"bench/report: {out} cannot be written: {error.strerror}; give another file with -o", file=sys.stderr)
        return 1
    print(f"{out}: {len(page) / 2**20:.1f} MiB from {len(model.files)} file{'s' * (len(model.files) > 1)}")
    return 1 if problems else 0
