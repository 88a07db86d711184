"""The Python packages that make the page, in fixed versions. pip installs them into the user's cache."""

import hashlib
import os
import sys

import atomic
import wheels

PACKAGES = ("jsonschema==4.26.0", "vl-convert-python==1.9.0.post1")


def folder():
    """The folder of these versions of the packages, for this version of Python."""
    versions = hashlib.sha256(repr(PACKAGES).encode()).hexdigest()[:8]
    return os.path.join(wheels.default_folder(), f"report-{versions}-py{sys.version_info[0]}.{sys.version_info[1]}")


def install():
    """Makes the packages importable. pip fetches missing packages. Raises WheelError."""
    wheels.make_importable(PACKAGES, folder())


def chart_library():
    """The scripts of Vega, Vega-Lite and Vega-Embed. The first call joins them into a file, which takes two seconds."""
    path = os.path.join(folder(), "charts.js")
    if not os.path.exists(path):
        import vl_convert

        atomic.write(path, vl_convert.javascript_bundle().replace("</script", "<\\/script").encode())
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()
