"""Runs a script in a virtual environment that has the needed packages. The environment is made once."""

import argparse
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]


def parser(description):
    """A parser for scripts that run in such an environment and call onnx_cases."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "onnx")
    found.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/tests/onnx/onnx_cases")
    return found


def enter(folder, *requirements):
    """Starts the script again with the interpreter of the environment in `folder`, unless it already runs there. If
    pip cannot install the requirements, the script ends with status 77 (skipped)."""
    home = folder.resolve() / "venv"
    if pathlib.Path(sys.prefix).resolve() == home:
        return
    if not (home / "bin" / "python").exists():
        venv.create(home, with_pip=True)
    if subprocess.run([home / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements]).returncode != 0:
        print("skipped: pip could not install " + ", ".join(requirements))
        sys.exit(77)
    sys.exit(subprocess.run([home / "bin" / "python", "-B", *sys.argv]).returncode)
