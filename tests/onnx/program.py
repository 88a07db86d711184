"""Calls the program onnx_cases with numpy arrays."""

import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "torch"))
import comparison  # noqa: E402
import safetensors_file  # noqa: E402

REFUSED = 3


class Failed(Exception):
    """A failed run: its text, and whether the model was refused."""
    def __init__(self, text, refused):
        super().__init__(text)
        self.refused = refused


def call(program, *words):
    """Runs the program, and returns its output."""
    ran = subprocess.run([program, *map(str, words)], capture_output=True, text=True, errors="replace")
    if ran.returncode != 0:
        raise Failed(ran.stderr.rstrip("\n"), ran.returncode == REFUSED)
    return ran.stdout


def run(program, model, inputs, dtype="f32", batch=0, output=""):
    """The output of a model, in f64."""
    with tempfile.TemporaryDirectory(prefix="lamina-onnx-") as folder:
        before, after = pathlib.Path(folder) / "in", pathlib.Path(folder) / "out"
        comparison.write_safetensors(before, {name: array.astype("float64") for name, array in inputs.items()})
        call(program, "run", model, before, after, dtype, batch, output)
        return safetensors_file.read(after)["y"].copy()


def check_logits(label, program, model, inputs, logits, bound=1e-4):
    """Whether the model gives these logits. The model is read for the batch of its one input."""
    y = run(program, model, inputs, batch=len(next(iter(inputs.values()))))
    difference = comparison.difference(y, logits) if y.shape == logits.shape else math.inf
    good = difference <= bound
    print(f"{label:24}logits     {difference:8.1e}  bound {bound:.1e}  {'ok' if good else 'FAIL'}", flush=True)
    return good
