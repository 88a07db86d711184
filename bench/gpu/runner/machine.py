"""What the machine has: a Python with PyTorch, folders of libraries, and tools."""

import glob
import os
import re
import shutil
import subprocess
import sys

CUDNN = ("libcudnn.so.9", "libcudnn.so.8")
NCCL = ("libnccl.so.2",)
SYSTEM = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib")
USUAL = (sys.executable, "python3", "/usr/bin/python3")
ENVIRONMENTS = ("/opt/*", "/opt/*/*", "/*", "/srv/*", "/usr/local/*", "~/*", "~/.*")  # where virtual ones may be
ASK_TORCH = "import sys, importlib.util as u; print('\\n'.join(sys.path) if u.find_spec('torch') else '')"


class NotThere(Exception):
    """What an option names does not exist; the message says which."""


def ask(*command):
    """What a program prints, or nothing where it does not run."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=60, check=False)
        return done.stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""


def catch_names(program, pattern):
    """The names of the test cases that a pattern picks, as Catch2 2 or 3 lists them."""
    for listing in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):
        names = [line.strip() for line in ask(program, "-#", pattern, *listing).splitlines() if line.strip()]
        if names and not any("unrecognised" in name.lower() for name in names):
            return names
    return []


def pythons():
    """The usual interpreters, then those of virtual environments that have torch."""
    yield from USUAL
    for place in ENVIRONMENTS:
        for torch in sorted(glob.glob(os.path.join(os.path.expanduser(place), "lib/python3*/site-packages/torch"))):
            yield os.path.join(torch.split("/lib/python3")[0], "bin/python3")


def find_torch(named):
    """(interpreter with PyTorch, folders that it imports from), or ("", []). Throws NotThere."""
    for python in [named] if named else pythons():
        folders = ask(python, "-c", ASK_TORCH).splitlines()
        if folders:
            return python, folders
    if named:
        raise NotThere(f"--python: '{named}' is no Python that has PyTorch")
    return "", []


def toolkits():
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return homes + sorted(glob.glob("/usr/local/cuda*"), reverse=True)


def holding(folders, names):
    """Those of the folders that have one of the files, each file once."""
    found = {}
    for folder in folders:
        for path in (os.path.join(folder, name) for name in names):
            if os.path.exists(path):
                found.setdefault(os.path.realpath(path), os.path.abspath(folder))
                break
    return list(found.values())


def tool(name):
    """A program on the path or in a toolkit; empty: there is none."""
    inside = [path for home in toolkits() for path in sorted(glob.glob(f"{home}/bin/{name}"))]
    return shutil.which(name) or next(iter(inside), "")


class Machine:
    """Throws NotThere where an option names what does not exist."""

    def __init__(self, options):
        self.torch, folders = find_torch(options.python)
        wheels = [folder for path in folders for folder in sorted(glob.glob(os.path.join(path, "nvidia/*/lib")))]
        loader = re.findall(r"=> (/\S+)/", ask("ldconfig", "-p") or ask("/sbin/ldconfig", "-p"))
        given = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
        kits = [os.path.join(home, "lib64") for home in toolkits()]
        for folder in options.cudnn:
            if not holding([folder], CUDNN):
                raise NotThere(f"--cudnn: '{folder}' has none of {', '.join(CUDNN)}")
        places = [*wheels, *given, *dict.fromkeys(loader), *kits, *SYSTEM]
        self.cudnn, self.nccl = holding(options.cudnn or places, CUDNN), holding(places, NCCL)
        # cuBLAS, and NVRTC, which cuDNN opens by its name. The wheel of cuDNN itself is named to what uses it.
        self.libraries = [folder for folder in dict.fromkeys([*wheels, *given, *kits])
                          if os.path.isdir(folder) and not folder.endswith("nvidia/cudnn/lib")]
        self.tools = {name: tool(name) for name in ("nvidia-smi", "compute-sanitizer", "ncu")}

    def lacks(self, need):
        """Why a step cannot have what it needs; empty: it can."""
        if need == "torch":
            return "" if self.torch else "no Python with PyTorch was found; name one with --python"
        if need in ("cudnn", "two cudnn"):
            found = len(self.cudnn) >= (2 if need == "two cudnn" else 1)
            return "" if found else f"{len(self.cudnn)} folders with cuDNN were found; name them with --cudnn"
        if need == "nccl":
            return "" if self.nccl else "no libnccl.so.2 was found"
        return "" if self.tools[need] else f"no {need} on the path or in a CUDA toolkit"

    def facts(self):
        return {"torch": self.torch or "no Python with PyTorch", "cudnn": self.cudnn, "libraries": self.libraries,
                "system": " ".join(os.uname()[:3]), "cores": len(os.sched_getaffinity(0)), **self.tools}
