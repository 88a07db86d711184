"""A Python that has packages, in a virtual environment that is made once."""

import argparse
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]


def parser(description):
    """A parser with the arguments of a script that enters an environment, and runs onnx_cases."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "onnx")
    found.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/tests/onnx/onnx_cases")
    return found


def enter(folder, *requirements):
    """Starts the script again under the interpreter below the folder, unless it runs there. If pip cannot
    install the requirements, the script ends with status 77 (skipped)."""
    home = folder.resolve() / "venv"
    if pathlib.Path(sys.prefix).resolve() == home:
        return
    if not (home / "bin" / "python").exists():
        venv.create(home, with_pip=True)
    if subprocess.run([home / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements]).returncode != 0:
        print("skipped: pip could not install " + ", ".join(requirements))
        sys.exit(77)
    sys.exit(subprocess.run([home / "bin" / "python", "-B", *sys.argv]).returncode)
