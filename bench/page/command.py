"""bench/report: from words to a page."""

import argparse
import os
import sys

import wheels
from page import packages, prices, result_files, small, written

DESCRIPTION = """Makes one HTML page of result files: those that lamina_bench writes with --benchmark_out, and those of
bench/race. Of several machines or versions, if you like. The page needs no network and no other file."""


def parser():
    made = argparse.ArgumentParser(
        prog="bench/report",
        description=DESCRIPTION,
        allow_abbrev=False,
        epilog="Exit status: 0; 1 where a file was left out, or nothing could be written; 2 for wrong use.",
    )
    made.add_argument(
        "files", nargs="*", metavar="FILE", help="result files (JSON); the first is what others are compared with"
    )
    made.add_argument("-o", "--out", default="report.html", metavar="FILE", help="the page (default: %(default)s)")
    made.add_argument(
        "--prices",
        action="append",
        default=[],
        metavar="FILE",
        help="dated prices, as bench/published/prices.csv, in its place; may be given several times",
    )
    made.add_argument("--text", action="store_true", help="print the ranking of costs instead; makes no page")
    made.add_argument(
        "--small",
        metavar="FOLDER",
        help="write the files into this folder, as small as pages and comparisons can have them; makes no page",
    )
    made.add_argument("--bring", action="store_true", help="only bring the packages that a page is made with")
    return made


def run(words):
    arguments = parser().parse_args(words)
    if not arguments.files and not arguments.bring:
        parser().error("no result file; lamina_bench run --benchmark_out=FILE writes one")
    if any(os.path.realpath(file) == os.path.realpath(arguments.out) for file in arguments.files):
        parser().error(f"-o {arguments.out} is one of the result files; give the page another name")
    try:
        if arguments.bring:
            packages.bring()
        if not arguments.files:
            return 0
        if arguments.small:
            return make_small(arguments.files, arguments.small)
        listed = prices.read(arguments.prices)
    except (wheels.WheelError, prices.PriceError) as error:
        print(f"bench/report: {error}", file=sys.stderr)
        return 1
    model, problems = result_files.read(arguments.files)
    model.prices = listed
    complain(problems)
    if not model.sources:
        print("bench/report: no page: none of the files can be used", file=sys.stderr)
        return 1
    if arguments.text:
        from page import cost

        print(cost.texts(model), end="")
        return 1 if problems else 0
    return make(model, problems, arguments.out)


def complain(problems):
    for problem in problems:
        print(f"bench/report: {problem.file} is left out: {problem.what}", file=sys.stderr)


def make_small(files, folder):
    try:
        said, problems = small.write(files, folder)
    except OSError as error:
        print(f"bench/report: {folder} cannot be made: {error.strerror}; give another folder", file=sys.stderr)
        return 1
    print("\n".join(said))
    complain(problems)
    return 1 if problems else 0


def make(model, problems, out):
    try:
        packages.bring()
        from page import document  # what it imports has just been brought

        page = document.make(model, problems)
        written.write(out, page)
    except wheels.WheelError as error:
        print(f"bench/report: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"bench/report: {out} cannot be written: {error.strerror}; give another file with -o", file=sys.stderr)
        return 1
    size = len(page.encode())
    files = f"{len(model.sources)} file{'s' * (len(model.sources) > 1)}"
    print(f"{out}: {size / 2**20:.1f} MiB from {files}")
    if size > document.LARGEST:
        print("bench/report: larger than 6 MiB; fewer files make a page that opens faster", file=sys.stderr)
    return 1 if problems else 0
