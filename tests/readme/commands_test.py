#!/usr/bin/env python3
"""Runs every command of README and docs/ in a clone of the last commit, as a reader would: lines of `sh` blocks, and
the first command of each row in README's table of questions. A command passes if its status is 0, or if it still runs
after some time and ends correctly when it is interrupted. usage: commands_test.py SOURCE"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

BUSY_SECONDS = 20
BUILD_SECONDS = 1800
TOO_FEW = 4  # status of compare with one process of each side; a reader has eight
INTERRUPTED = (130, -signal.SIGINT)
ELSEWHERE = (  # commands that cannot run here; why, and the test that covers them
    (r"tests/run", "it runs this test"),
    (r"cmake .*(<folder>|BUILD_TESTS=OFF)|cmake -S app", "tests/install"),
    (r"scp|lamina-gpu/|bench/gpu/pack", "a machine with a GPU; tests/gpu"),
    (r"bench/get-|.*--(cudnn=DIR1|backend=cudnn)", "the network, and a GPU; tests/bench/fetch, tests/peers"),
    (r"bench/race/race|mkdir f|echo '", "other programs; tests/peers"),
    (r"bench/imdb-to-ids|.*--data ", "data to download; tests/data_sets"),
    (r"mpirun|sudo apt-get", "MPI; tests/ranks"),
    (r"git worktree|ln -s|for ", "two builds; tests/bench/compare_test.cpp"),
)
MODEL = """
#include <lamina/lamina.h>
int main() {
  using namespace lamina;
  const auto backend = make_backend("eigen");
  const Graph graph = nets::build("mnist_cnn", {.batch = 1});
  write_onnx("model.onnx", graph, save_weights(Plan(graph, *backend, {.mode = Mode::inference})));
}
"""


def commands(page):
    """The commands of a page. A command is one line, or several lines if the shell needs more."""
    for block in re.findall(r"^```sh\n(.*?)^```", page, re.S | re.M):
        lines = ""
        for line in block.splitlines(keepends=True):
            lines += line
            whole = subprocess.run(["bash", "-n"], input=lines, text=True, capture_output=True).returncode == 0
            if whole and not lines.endswith("\\\n"):
                yield re.sub(r" +# .*", "", lines).strip()
                lines = ""
    for question in re.findall(r"^\| [^|]*\? \| `([^`]+)`", page, re.M):
        yield question.replace("BEFORE AFTER", "results/before results/after").replace(r"\|", "|")


def run(command, folder, seconds):
    """The status and output of a command. After `seconds` the command is interrupted."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(["bash", "-c", command], cwd=folder, stdout=said, stderr=said, text=True,
                                   start_new_session=True, env=os.environ | {
                                       "PATH": f"{folder}/build/release/bench:{os.environ['PATH']}"})
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(120)
            if process.returncode in INTERRUPTED:
                process.returncode = 0
        if "lamina_bench compare" in command and process.returncode == TOO_FEW:
            process.returncode = 0
        said.seek(0)
        return process.returncode, said.read()


def write_files_of_a_reader(folder):
    """Writes the files that the pages tell the reader to save, and an ONNX model."""
    first = folder / "first"
    first.mkdir()
    start = (folder / "docs/start.md").read_text()
    (first / "first.cpp").write_text(re.search(r"```cpp\n(.*?)```", start, re.S)[1])
    build = re.search(r"```cmake\n(.*?)```", start, re.S)[1]
    (first / "CMakeLists.txt").write_text(
        build + "add_executable(model model.cpp)\ntarget_link_libraries(model lamina::lamina)\n")
    (first / "model.cpp").write_text(MODEL)
    status, said = run("cmake -S first -B first/build -Dlamina_DIR=$PWD/build/release && cmake --build first/build && "
                       "first/build/model", folder, BUILD_SECONDS)
    assert status == 0, said
    for side in ("before", "after"):
        status, said = run("lamina_bench --benchmark_filter=net/mnist_mlp/ --backend=eigen --passes=9 "
                           f"--benchmark_out=results/{side}/1.json", folder, BUILD_SECONDS)
        assert status == 0, said


def main():
    source, failed, ran = pathlib.Path(sys.argv[1]), [], 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "lamina"
        subprocess.run(["git", "clone", "-q", source, folder], check=True)
        status, said = run("bench/run --quick", folder, BUILD_SECONDS)
        assert status == 0, said
        write_files_of_a_reader(folder)
        pages = [folder / "README.md", *sorted((folder / "docs").rglob("*.md"))]
        for command in dict.fromkeys(c for page in pages for c in commands(page.read_text())):
            elsewhere = next((why for pattern, why in ELSEWHERE if re.match(pattern, command)), None)
            if elsewhere:
                print(f"not here ({elsewhere}): {command}")
                continue
            status, said = run(command, folder, BUSY_SECONDS)
            ran += 1
            print(f"{'failed' if status else 'ran'}: {command}", flush=True)
            if status:
                failed.append(command)
                print(f"  status {status}\n{said[-2000:]}")
    assert ran > 20, f"only {ran} commands were found"
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
