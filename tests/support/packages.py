"""Imports Python packages that a test needs. The machine may lack them."""

import importlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
import wheels


def need(package):
    """The module. If needed, pip installs it into the user's cache. If pip fails, the test ends as skipped."""
    try:
        return importlib.import_module(package)
    except ImportError:
        pass
    version = f"py{sys.version_info[0]}.{sys.version_info[1]}"
    try:
        wheels.make_importable([package], os.path.join(wheels.default_folder(), "tests", f"{package}-{version}"))
    except wheels.WheelError as error:
        print(f"skipped: {error}")
        sys.exit(77)
    return importlib.import_module(package)
