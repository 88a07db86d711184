"""Installs Python wheels in separate folders. pip fetches, verifies and unpacks them; it installs nothing elsewhere."""

import json
import os
import shutil
import subprocess
import sys

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--only-binary", ":all:",
       "--retries", "1")
DONE = "wheels.json"  # list of a folder's wheels; only a complete folder has it


class WheelError(Exception):
    """An error. The message says what to do."""


class NotFound(WheelError):
    """The package index does not have the wheels."""


def default_folder():
    """The folder for everything that is fetched. It is in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "lamina")


def resolve(requirements, needs=False):
    """{package: version} of the newest wheels that meet pip's requirements. `needs`: with their dependencies."""
    command = [*PIP, "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    done = subprocess.run([*command, *([] if needs else ["--no-deps"]), *requirements], capture_output=True, text=True,
                          check=False)
    if done.returncode == 0:
        found = [one["metadata"] for one in json.loads(done.stdout)["install"]]
        return {one["name"].lower().replace("_", "-"): one["version"] for one in found}
    if "No module named pip" in done.stderr:
        raise WheelError("pip is needed. On Debian and Ubuntu: sudo apt-get install python3-pip")
    last = (done.stderr.strip().splitlines() or [f"pip ended with status {done.returncode}"])[-1]
    if "connection broken" in done.stderr or "No matching distribution" not in done.stderr:
        raise WheelError(f"pip cannot ask the package index for {' '.join(requirements)}: {last}. Is it online?")
    raise NotFound(f"the package index has no {' '.join(requirements)} for this machine and Python: {last}")


def is_here(wheels, tree):
    """Whether a folder is complete and has these wheels."""
    try:
        with open(os.path.join(tree, DONE), encoding="utf-8") as file:
            return json.load(file) == wheels
    except (OSError, ValueError):
        return False


def install(wheels, tree, needs=False):
    """Unpacks the wheels of resolve() into one folder. The folder gets its name only when it is complete."""
    listed, here = [f"{name}=={version}" for name, version in wheels.items()], is_here(wheels, tree)
    print(f"{tree}: {'here already' if here else 'to fetch'}", *listed, sep="\n  ", file=sys.stderr, flush=True)
    if here:
        return
    beside = f"{tree}.{os.getpid()}.part"
    try:
        if subprocess.run([*PIP, "--no-compile", "--target", beside, *([] if needs else ["--no-deps"]), *listed],
                          stdout=sys.stderr, check=False).returncode != 0:
            raise WheelError("pip failed; its lines above say why. Run the same command again: pip's cache keeps "
                             "complete wheels.")
        with open(os.path.join(beside, DONE), "w", encoding="utf-8") as file:
            json.dump(wheels, file)
        if not is_here(wheels, tree):  # or another process was faster
            shutil.rmtree(tree, ignore_errors=True)
            os.replace(beside, tree)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def make_importable(requirements, tree):
    """Makes requirements importable from a folder. Asks the package index only if the folder does not exist."""
    if not os.path.isdir(tree):
        install(resolve(requirements, needs=True), tree, needs=True)
    sys.path.insert(0, tree)


def run(main, program):
    """Runs main(). Ends the process with one line if it fails."""
    try:
        main()
    except WheelError as error:
        sys.exit(f"{program}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"{program}: interrupted; run the same command again: pip's cache keeps complete wheels.")
