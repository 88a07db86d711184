"""lamina_bench under mpirun: rank 0 prints and writes the rows of all ranks, and a refusal is one line.

usage: program_test.py LAMINA_BENCH MPIEXEC
"""

import csv
import io
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

BENCH, MPIEXEC = sys.argv[1:3]
NET = ["--benchmark_filter=^net/alexnet/", "--backend=eigen", "--threads=1", "--width_divisor=16", "--image=67"]


def start(ranks, *words):
    return subprocess.Popen([MPIEXEC, "-n", str(ranks), BENCH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def run(ranks, *words, status=0):
    """The program's output and its error output."""
    process = start(ranks, *words)
    said, errors = process.communicate(timeout=60)
    if process.returncode != status:
        sys.exit(f"{words}: status {process.returncode}, not {status}\n{said}{errors}")
    return said, errors


def wants(true, *what):
    if not true:
        sys.exit("\n".join(map(str, what)))


def rows_of(file):
    """The first pass of each row."""
    rows = json.loads(file.read_text())["benchmarks"]
    return {row["key"]["part"]: row for row in rows if row.get("repetition_index") == 0}


def rows(folder):
    """Two ranks measure the same rows as one rank, each rank with half of the batch."""
    files = {ranks: folder / f"{ranks}.json" for ranks in (1, 2)}
    for ranks, file in files.items():
        said, errors = run(ranks, *NET, "--batch=4", "--passes=3", f"--benchmark_out={file}")
        wants(said.count("UserCounters...") == 1 and errors.count("after one pass to warm up") == 1, said, errors)
    one, two = rows_of(files[1]), rows_of(files[2])
    wants(set(one) == {"forward", "backward", "total", "inference"} and set(two) == set(one) - {"inference"}, one, two)
    for part, row in two.items():
        wants(row["name"] == f"net/alexnet/{part}/eigen/f32/nchw/batch:4/image:67/width_divisor:16/ranks:2", row)
        wants(row["key"]["differs"]["ranks"] == "2" and row["rerun"].startswith("mpirun -n 2 lamina_bench run "), row)
        seconds = 1e-3 * row["real_time"]
        for rate in ("images_per_second", "flops_per_second"):
            work, of_one = row[rate] * seconds, one[part][rate] * 1e-3 * one[part]["real_time"]
            wants(abs(work / of_one - 1) < 0.01, part, rate, work, of_one)
    table, _ = run(1, "describe", "alexnet", "--width_divisor=16", "--image=67", "--format=csv")
    parameters = sum(int(line["parameters"]) for line in csv.DictReader(io.StringIO(table)) if line["op"])
    for part in ("backward", "total"):
        row = two[part]
        wants(1 <= row["summed_bytes"] / (4 * parameters) < 1.1, row["summed_bytes"], parameters)
        wants(row["summed_bytes_per_second"] > 0 and 0 <= row["hidden_share"] <= 1, row)
    wants("summed_bytes" not in two["forward"] and "summed_bytes" not in one["total"], two, one)


def trace(folder):
    """A trace has the two passes of each rank in turn, and its sums begin within a backward pass."""
    file = folder / "trace.json"
    run(2, *NET, "--batch=8", "--passes=2", f"--trace={file}")
    events = json.loads(file.read_text())["traceEvents"]
    names = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    wants(names == {0: "rank 0", 1: "rank 0: sums", 2: "rank 1", 3: "rank 1: sums"}, names)
    for lane in 0, 2:
        mine = [one for one in events if one["ph"] == "X" and one["tid"] == lane]
        spans = [(one["name"], one["ts"], one["ts"] + one["dur"]) for one in mine if "waits" not in one["name"]]
        wants([span[0] for span in spans] == 2 * ["forward", "backward"], spans)
        wants(all(a[2] <= b[1] for a, b in zip(spans, spans[1:])), spans)
        sums = [one for one in events if one["ph"] == "X" and one["tid"] == lane + 1]
        wants(len(sums) >= 2 and all(re.fullmatch(r"\d+ bytes", one["name"]) for one in sums), sums)
        for one in sums:
            wants(any(name == "backward" and begin <= one["ts"] <= end for name, begin, end in spans), one, spans)


def training():
    said, _ = run(2, "train", "mnist_mlp", "--epochs=1", "--share=0.01")
    wants(said.count(", 2 ranks  (") == 1 and said.count("epoch 1/1") == 1, said)


def refusals():
    for words, pattern in (
            ([*NET, "--batch=3"], "2 ranks cannot share a batch of 3 evenly"),
            ([*NET, "--noise=3%"], "--noise is for one process"),
            ([*NET, "--benchmark_min_time=1"], "--benchmark_min_time is for one process"),
            ([*NET, "--cuda_graph"], "--cuda_graph is for one process"),
            (["alexnet", "--backend=eigen,cuda-host"], "--backend with several names is for one process"),
            (["--benchmark_filter=^layer/alexnet/"], "several ranks run rows net/"),
            (["run", "--nosuch"], "unknown option --nosuch"),
            (["ledger", "alexnet"], "ledger is for one process, and mpirun started 2; run and train take several")):
        said, errors = run(2, *words, status=2)
        wants(re.search(pattern, errors) and not said, words, said, errors)
        spoken = re.findall("lamina_bench: (?!interrupted)", errors)  # mpirun may end a slow rank with a signal
        wants(len(spoken) == 1, "more than one rank speaks", errors)
    _, errors = run(2, *NET, "--batch=4", "--memory_limit=4KiB", status=1)  # no row fits; no rank may wait
    wants(re.search(r"rank \d of 2: .*bytes", errors), errors)


def pids(mpiexec, ranks):
    """The process ids of the ranks in order. Waits until all ranks catch signals."""
    while True:
        time.sleep(0.05)
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                status = (folder / "status").read_text()
                rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", (folder / "environ").read_bytes())
                caught = int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (signal.SIGTERM - 1) & 1
                if rank and caught and re.search(rf"PPid:\s*{mpiexec}\n", status):
                    found[int(rank[1])] = int(folder.name)
            except (OSError, TypeError):
                continue
        if len(found) == ranks:
            return [found[rank] for rank in range(ranks)]


def interrupt(folder):
    """Interrupted ranks end after the same pass, and the rows are in the file. Only rank 0 prints this."""
    file = folder / "interrupted.json"
    process = start(2, *NET, "--batch=2", "--passes=100000", f"--benchmark_out={file}")
    rank0, rank1 = pids(process.pid, 2)
    time.sleep(3)
    subprocess.run(["kill", "-TERM", str(rank1)], check=True)
    time.sleep(1)
    wants(process.poll() is None, "a signal of rank 1 ended rank 0")
    subprocess.run(["kill", "-TERM", str(rank0)], check=True)
    begun = time.monotonic()
    said, errors = process.communicate(timeout=30)
    wants(process.returncode == 143 and time.monotonic() - begun < 10, process.returncode, said, errors)
    wants("waited" not in errors and errors.count("interrupted; finishing") == 1, errors)
    wants(json.loads(file.read_text())["context"]["interrupted"], errors)


with tempfile.TemporaryDirectory() as name:
    rows(pathlib.Path(name))
    trace(pathlib.Path(name))
    training()
    refusals()
    interrupt(pathlib.Path(name))
print("rows of two ranks, refusals and an interrupt are as they should be")
