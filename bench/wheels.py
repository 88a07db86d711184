"""Python wheels unpacked side by side, without installing them: pip finds, fetches, verifies and unpacks."""

import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")


class WheelError(Exception):
    """What went wrong and what to do about it."""


def default_folder():
    """Where what is fetched is kept: the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "lamina")


def numbers(version):
    return [int(number) for number in version.split(".")]


@functools.cache
def versions(package):
    """Those that the index has for this kind of machine, newest first; none for a package that it lacks."""
    done = subprocess.run([*PIP, "index", "versions", package, "--only-binary", ":all:", "--retries", "1"],
                          capture_output=True, text=True, check=False)
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if done.returncode == 0 and found:
        known = [word for word in found.group(1).split(", ") if re.fullmatch(r"\d+(\.\d+)*", word)]
        return sorted(known, key=numbers, reverse=True)
    if "No module named pip" in done.stderr:
        raise WheelError("pip is needed. On Debian and Ubuntu: sudo apt-get install python3-pip")
    if "connection broken" in done.stderr or "No matching distribution" not in done.stderr:
        lines = done.stderr.strip().splitlines() or [f"pip ended with status {done.returncode}"]
        raise WheelError(f"pip cannot ask the package index for {package}: {lines[-1]}. Is this machine online?")
    return []


def newest(package, beginning=""):
    """(package, version) of the newest wheel whose version begins with these numbers, or None."""
    wanted = numbers(beginning) if beginning else []
    return next(((package, version) for version in versions(package) if numbers(version)[:len(wanted)] == wanted), None)


def is_whole(wheels, tree, needs=False):
    """Whether the tree has these wheels, every file with its size. `needs`: and what they need; else no others."""
    found = {}
    for wheel in importlib.metadata.distributions(path=[tree]):
        found[re.sub("[-_.]+", "-", wheel.metadata["Name"]).lower()] = wheel.version
        for file in wheel.files or ():
            # pip records a script where an environment would have it, above the packages, and puts it into the tree.
            path = os.path.join(tree, *(part for part in file.parts if part != ".."))
            if not os.path.exists(path) or file.size not in (None, os.path.getsize(path)):
                return False
    return found == (found | dict(wheels) if needs else dict(wheels))


def announce(trees, needs=False):
    """Says what will be fetched; `trees` maps each tree to its wheels."""
    for tree, wheels in trees.items():
        here = "here already" if is_whole(wheels, tree, needs) else "to fetch; pip says how large each one is"
        print(f"{tree}: {here}", *(f"  {name} {version}" for name, version in wheels), sep="\n", file=sys.stderr,
              flush=True)


def bring(wheels, tree, needs=False):
    """Unpacks the wheels into one tree, as a Python environment would hold them; `needs`: with what they need, as pip
    resolves it. The tree exists under its name only once it is whole."""
    if is_whole(wheels, tree, needs):
        return
    beside = f"{tree}.{os.getpid()}.part"
    try:
        done = subprocess.run([*PIP, "install", "--target", beside, *([] if needs else ["--no-deps"]), "--no-compile",
                               "--only-binary", ":all:", *(f"{name}=={version}" for name, version in wheels)],
                              stdout=sys.stderr, check=False)
        if done.returncode != 0:
            raise WheelError("pip did not bring them; its lines above say why. Run the same command again: wheels that "
                             "were fetched whole are in pip's cache.")
        shutil.rmtree(tree, ignore_errors=True)
        os.replace(beside, tree)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def run(main, program):
    """Runs main(), and ends the process with what went wrong in one line."""
    try:
        main()
    except WheelError as error:
        sys.exit(f"{program}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"{program}: interrupted; the same command takes what was fetched whole from pip's cache.")
