"""The Python packages that the page is made with, in fixed versions; pip installs them into the user's cache."""

import hashlib
import os
import shutil
import subprocess
import sys

PACKAGES = ("jsonschema==4.26.0", "vl-convert-python==1.9.0.post1")


class PackageError(Exception):
    """Why the packages are not here, and what to do."""


def folder():
    """The folder of these versions for this version of Python."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    versions = hashlib.sha256(repr(PACKAGES).encode()).hexdigest()[:8]
    return os.path.join(cache, "lamina", f"report-{versions}-py{sys.version_info[0]}.{sys.version_info[1]}")


def install():
    """Makes the packages importable; pip fetches them if need be. The folder appears only when it is whole."""
    if not os.path.isdir(folder()):
        print(f"bench/report: installing {' and '.join(PACKAGES)} into {folder()}", file=sys.stderr, flush=True)
        beside = f"{folder()}.{os.getpid()}.part"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        wanted = ["--retries", "1", "--only-binary", ":all:", "--target", beside, *PACKAGES]
        try:
            done = subprocess.run([*pip, *wanted], capture_output=True, text=True, check=False)
            if done.returncode:
                raise PackageError(reason(done.stderr))
            os.rename(beside, folder())
        except OSError:
            if not os.path.isdir(folder()):  # another process was not faster
                raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    if folder() not in sys.path:
        sys.path.insert(0, folder())


def reason(said):
    if "No module named pip" in said:
        return "pip is missing. On Debian and Ubuntu: sudo apt-get install python3-pip"
    last = (said.strip().splitlines() or ["pip gave no reason"])[-1]
    return f"pip could not install {', '.join(PACKAGES)}: {last}. Is this machine online?"


def chart_library():
    """The scripts of Vega, Vega-Lite and Vega-Embed; putting them together takes two seconds, once."""
    path = os.path.join(folder(), "charts.js")
    if not os.path.exists(path):
        import vl_convert

        write(path, vl_convert.javascript_bundle().replace("</script", "<\\/script").encode())
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def write(path, content):
    """The file appears whole, or not at all."""
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)
