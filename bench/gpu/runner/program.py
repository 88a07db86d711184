"""The program run-all from its arguments to its exit status."""

import argparse
import os
import signal
import sys

from . import loop, machine, steps, summary, text
from .results import Results, ResultsError, replace

DESCRIPTION = """Runs the tests and measurements of Lamina on this machine's GPU, in the order of their value, and ends
with a page that says what passed, what failed and how fast it is. Needs the driver, Python 3.8, a cuDNN and a cuBLAS,
and for the races a Python with PyTorch. Every step is a separate process under a time limit; results are kept after
each, and the same command goes on where the last one stopped.

Exit status: 0 where no step failed, 1 where one did, 2 for wrong use, 130 and 143 after SIGINT and SIGTERM."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


def minutes(word):
    try:
        value = float(word)
    except ValueError:
        value = 0
    if not 0 < value <= 1440:
        raise argparse.ArgumentTypeError(f"'{word}' is not a number of minutes above 0, and at most 1440")
    return value


def parts(word):
    found = [part for part in word.upper().split(",") if part]
    if not found or any(part not in steps.PARTS for part in found):
        raise argparse.ArgumentTypeError(f"'{word}' is not some of A, B and C joined by commas")
    return "".join(found)


def parse(words, root):
    parser = argparse.ArgumentParser(prog="run-all", description=DESCRIPTION,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=minutes, default=30,
                        help="for the whole run; steps that do not fit are left out and named (default: %(default)s)")
    parser.add_argument("--parts", type=parts, default="A,B,C",
                        help="A correctness, B speed, C causes (default: A,B,C)")
    parser.add_argument("--out", default=os.path.join(root, "results"),
                        help="folder of at most eight files (default: results, beside run-all)")
    parser.add_argument("--cudnn", action="append", default=[], metavar="DIR",
                        help="folder with libcudnn.so; given twice, both versions are compared (default: found)")
    parser.add_argument("--cuda-libs", action="append", default=[], metavar="DIR",
                        help="folder with libcublas.so (default: found)")
    parser.add_argument("--python", metavar="PATH", help="an interpreter with PyTorch (default: found)")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true",
                       help="go on where the last run in the folder stopped (the default)")
    again.add_argument("--fresh", action="store_true", help="remove the results in the folder and start anew")
    parser.add_argument("--retry", action="store_true",
                        help="run the steps that failed or crashed before once more, after all others")
    parser.add_argument("--list", action="store_true", help="print the steps with their estimates, and run nothing")
    parser.add_argument("--rehearse", nargs="?", choices=("quick", "whole"), const="whole",
                        help="without a GPU: every part on the processor, with small networks; whole: our kernels as "
                             "the host runs them, minutes; quick: backend eigen alone, and no race")
    return parser.parse_args(words)


def manifest(root):
    """{key: value} of the pack's MANIFEST, as far as its lines have that form."""
    try:
        with open(os.path.join(root, "MANIFEST"), encoding="utf-8") as file:
            return dict(line.rstrip("\n").split(": ", 1) for line in file if ": " in line)
    except OSError:
        return {}


def make_runnable(root):
    """Some ways of copying a folder lose who may run a file. Throws NotThere where that cannot be mended."""
    folder = os.path.join(root, "bin")
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        if not os.access(path, os.X_OK):
            try:
                os.chmod(path, 0o755)
            except OSError as error:
                raise machine.NotThere(f"{path} may not be run, and cannot be made to ({error.strerror}): copy the "
                                       "folder to a place that can be written, and run that") from error


def target_of(root, found, rehearse):
    target = steps.Target(root=root, python=sys.executable, torch=found.torch.executable if found.torch else "python3",
                          cudnn_folders=tuple(found.cudnn), sanitizer=found.sanitizer or "compute-sanitizer",
                          ncu=found.ncu or "ncu", smi=found.smi or "nvidia-smi")
    return steps.rehearsal(target, rehearse) if rehearse else target


def print_list(chosen):
    for step in chosen:
        print(f"{step.part} rank {step.rank} {step.seconds:5} s  {step.name}"
              + (f"  (needs {', '.join(step.needs)})" if step.needs else ""))
    for rank in sorted({step.rank for step in chosen}):
        print(f"rank {rank}: about {text.seconds_text(sum(step.seconds for step in chosen if step.rank == rank))}")


def write_summary(chosen, results):
    page = "\n".join(summary.page(chosen, results)) + "\n"
    replace(os.path.join(results.folder, "summary.md"), page)
    print("\n" + page, end="", flush=True)


def run(options, root):
    facts = manifest(root)
    found = machine.Machine(options, facts.get("CUDA", "").split(".")[0])
    target = target_of(root, found, options.rehearse)
    chosen = steps.all_steps(target, options.parts)
    if options.list:
        print_list(chosen)
        return 0
    make_runnable(root)
    results = Results(os.path.abspath(options.out), {"commit": facts.get("commit", "unknown"),
                                                     "rehearsal": options.rehearse or ""})
    results.start(options.fresh)
    results.data["runs"].append({"words": sys.argv[1:], "manifest": facts})
    status = 0
    try:
        loop.Loop(target, found, results, chosen, options.minutes, lambda line: print(line, flush=True),
                  options.retry).run()
    except Interrupted as interrupt:
        status = 128 + interrupt.number
        print(f"run-all: interrupted by {signal.Signals(interrupt.number).name}; what is done is kept", file=sys.stderr)
    results.save()
    write_summary([step for step in steps.all_steps(target) if step.part in options.parts or results.of(step.name)],
                  results)
    states = [results.of(step.name).get("state") for step in chosen]
    return status or (1 if any(state in ("failed", "crashed") for state in states) else 0)


def raise_interrupt(number, _frame):
    """The first of them ends the run; while results are kept and the page is made no other is heard."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(number)


def main(words, root):
    options = parse(words, root)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, raise_interrupt)
    try:
        return run(options, root)
    except (ResultsError, machine.NotThere) as error:
        print(f"run-all: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"run-all: {error}", file=sys.stderr)
        return 2
    except Interrupted as interrupt:
        return 128 + interrupt.number
