"""Finds Python interpreters that can import a peer's modules. This module needs only the standard library."""

import functools
import subprocess

SKIPPED = 77  # the exit status that ctest takes for "skipped"
USUAL = ("python3", "/usr/bin/python3")


class NoPython(Exception):
    """No interpreter has the modules. The message says which interpreters were tried, and how to get the modules."""


@functools.lru_cache
def can_import(python, modules):
    try:
        done = subprocess.run([python, "-c", f"import {modules}"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def version(python, engine):
    """The version of an engine in an interpreter."""
    done = subprocess.run([python, "-c", f"import {engine}; print({engine}.__version__)"], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip().split("+")[0]


def find(modules, named=()):
    """The named interpreters that can import the modules. If none can: the first usual interpreter. Raises NoPython."""
    found = [python for python in named if can_import(python, modules)]
    found = found or [python for python in USUAL if can_import(python, modules)][:1]
    if not found:
        tried = f"none of {', '.join((*named, *USUAL))} can import {modules}"
        raise NoPython(f"{tried}. docs/peers.md says how to install them; --python names an interpreter that has them")
    return found
