"""A Python that has packages, in a virtual environment that is made once."""

import subprocess
import sys
import venv


def python_with(folder, *requirements):
    """The interpreter below the folder; the program ends as skipped where pip cannot install what it lacks."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        folder.mkdir(parents=True, exist_ok=True)
        venv.create(folder / "venv", with_pip=True)
    if subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements]).returncode != 0:
        print("skipped: pip could not install " + ", ".join(requirements))
        sys.exit(77)
    return python
