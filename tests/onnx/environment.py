"""A Python that has packages, in a virtual environment that is made once."""

import pathlib
import subprocess
import sys
import venv


def enter(folder, *requirements):
    """Starts the script again under the interpreter below the folder, unless it runs there. It ends as skipped where pip
    cannot install what that lacks."""
    home = folder.resolve() / "venv"
    if pathlib.Path(sys.prefix).resolve() == home:
        return
    if not (home / "bin" / "python").exists():
        venv.create(home, with_pip=True)
    if subprocess.run([home / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements]).returncode != 0:
        print("skipped: pip could not install " + ", ".join(requirements))
        sys.exit(77)
    sys.exit(subprocess.run([home / "bin" / "python", "-B", *sys.argv]).returncode)
