"""Finds an interpreter that can import torch; the scripts themselves need nothing but the standard library."""

import os
import subprocess
import sys

SKIPPED = 77  # the exit status that ctest takes for "skipped"
USUAL = ("python3", "/usr/bin/python3")


class NoTorch(Exception):
    """The message says which interpreters were tried and how to get torch."""


def can_import(python, modules):
    try:
        done = subprocess.run([python, "-c", f"import {modules}"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def version(python):
    """Which torch an interpreter has."""
    done = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip()


def find(wanted=(), modules="torch"):
    """Those of `wanted`, every one of which must do, or the first that does of the usual ones."""
    if wanted:
        for python in wanted:
            if not can_import(python, modules):
                raise NoTorch(f"'{python}' cannot import {modules}. Name one that can, or install it there.")
        return list(wanted)
    found = next((python for python in USUAL if can_import(python, modules)), None)
    if found is None:
        packages = " ".join(f"python3-{module.strip()}" for module in modules.split(","))
        raise NoTorch(f"no Python here can import {modules}. On Debian and Ubuntu: sudo apt-get install {packages}; or "
                      "name an interpreter that can with --python.")
    return [found]


def start_again(wanted, modules):
    """Replaces this process by the same script under an interpreter that has the modules, or ends it: as skipped if none
    was wanted by name."""
    try:
        python = find([wanted] if wanted else (), modules)[0]
    except NoTorch as error:
        if wanted:
            sys.exit(str(error))
        print(f"skipped: {error}")
        sys.exit(SKIPPED)
    os.execvp(python, [python, *sys.argv])
