#!/usr/bin/env python3
"""Times PyTorch's passes over the networks as cnn-benchmarks did, as rows in the form of Google Benchmark.

A pass: draw x; time the forward; draw dy; time the backward, which adds to the parameter gradients. Training mode,
dropout on, softmax and image gradient as the published tables had them. The first pass is thrown away. (For Keras'
networks the backward overwrites instead.)
"""

import argparse
import contextlib
import itertools
import os
import statistics
import sys

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import options
import rows
import torch
import torch_device
from protocol import NAMES, PUBLISHED
from timers import WallTimer
from torch_subject import FORMATS, Subject


def versions(threads):
    """What ran: the library, its convolutions, its instruction set."""
    config = torch.__config__.show()
    return {
        "torch": torch.__version__, "python": sys.version.split()[0], "threads": threads,
        "onednn": torch.backends.mkldnn.is_available(),
        "onednn_version": next((line.split(" v")[1].split()[0] for line in config.splitlines() if "MKL-DNN v" in line),
                               "none"),
        "product_gflops": product_gflops(), "config": config.splitlines(),
    }


def product_gflops():
    """Speed of a matrix product: far below that of its convolutions where PyTorch was built on a reference BLAS. By
    processor time, so that other programs do not count."""
    a = torch.randn(1024, 1024)
    return max(2e-9 * 1024**3 * torch.get_num_threads() / WallTimer().time("product", lambda: a @ a)[1]["product_cpu"]
               for _ in range(3))


def profile(subject):
    """Where one pass spends its time: PyTorch's own table, operators by their own time."""
    subject.run()  # warm-up
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        subject.run()
    print(recorded.key_averages().table(sort_by="self_cpu_time_total", row_limit=15, max_name_column_width=40))


def run(arguments, file):
    """Times or profiles every network, in each mode and layout."""
    context, found = rows.context(sys.argv[0], torch=versions(arguments.threads)), []
    for name in arguments.nets.split(","):
        for mode in arguments.modes.split(","):
            for layout in arguments.layouts.split(","):
                subject = Subject(name, mode, layout, arguments.batch)
                if arguments.profile:
                    print(f"{name}, {mode}, {layout}, batch {arguments.batch}")
                    profile(subject)
                    continue
                samples = [subject.run() for _ in range(arguments.passes + 1)][1:]
                new = rows.rows_of(mode, samples, what="net", network=name, backend="torch", type="f32", layout=layout,
                                   batch=arguments.batch)
                for full, its in itertools.groupby(new, key=lambda row: row["name"]):
                    print(f"{full:58} {statistics.median(row['real_time'] for row in its):10.2f} ms", flush=True)
                found += new
                if file:
                    file.write(context, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", type=options.words(NAMES), default=",".join(PUBLISHED),
                        help="by name, joined by commas")
    parser.add_argument("--batch", type=options.whole(1), default=16)
    parser.add_argument("--passes", type=options.whole(1), default=10, help="timed passes; one more is thrown away")
    parser.add_argument("--modes", type=options.words(rows.PASSES), default="training,inference")
    parser.add_argument("--layouts", type=options.words(FORMATS), default="nchw,nhwc")
    parser.add_argument("--threads", type=options.whole(1), default=rows.cores())
    parser.add_argument("--out", help="JSON file to write")
    parser.add_argument("--profile", action="store_true", help="print where a pass spends its time, and time nothing")
    parser.add_argument("--worker", action="store_true", help="serve single passes to `compare`")
    parser.add_argument("--device", help="with --worker: cuda:N, or cpu for a rehearsal; serves one variant")
    parser.add_argument("--variant", default="eager",
                        help="with --device: as `compare --torch` has it; else as `--peers`: compiled+frozen, ...")
    parser.add_argument("--files", help="with --worker: the folder where Lamina wrote the network's numbers")
    parser.add_argument("--precision", default="f32", help="with --device: as `compare --precision` has it")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.worker:
        return torch_device.worker(arguments, versions)
    try:
        file = rows.File(arguments.out) if arguments.out else None
    except rows.Unwritable as error:
        sys.exit(f"torch_rows.py: --out: {error}")
    with file or contextlib.nullcontext():
        run(arguments, file)


if __name__ == "__main__":
    main()
