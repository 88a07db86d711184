"""What the machine has: a Python with PyTorch, folders of libraries, and tools."""

import glob
import os
import re
import shutil
import subprocess
import sys

CUDNN, NCCL = ("libcudnn.so.9", "libcudnn.so.8"), ("libnccl.so.2",)
PYTHONS = (sys.executable, "/usr/bin/python3", "/opt/*/bin/python3", "/opt/*/.venv/bin/python3", "/*/bin/python3",
           "~/*/bin/python3", "~/.*/bin/python3")
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


def find_torch(named):
    """(interpreter with PyTorch, folders that it imports from), or ("", []). Throws NotThere."""
    for pattern in [named] if named else PYTHONS:
        for python in sorted(glob.glob(os.path.expanduser(pattern))):
            if folders := ask(python, "-c", ASK_TORCH).splitlines():
                return python, folders
    if named:
        raise NotThere(f"--python: '{named}' is no Python that has PyTorch")
    return "", []


def holding(folders, names):
    """Those of the folders that have one of the files."""
    return [folder for folder in dict.fromkeys(folders)
            if any(os.path.exists(os.path.join(folder, name)) for name in names)]


class Machine:
    """Throws NotThere where an option names what does not exist."""

    def __init__(self, options):
        self.rehearses = options.rehearse
        self.torch, folders = find_torch(options.python)
        if options.cudnn and not holding([options.cudnn], CUDNN):
            raise NotThere(f"--cudnn: '{options.cudnn}' has none of {', '.join(CUDNN)}")
        homes = [*filter(None, map(os.environ.get, ("CUDA_HOME", "CUDA_PATH"))),
                 *sorted(glob.glob("/usr/local/cuda*"), reverse=True)]
        wheels = [folder for path in folders for folder in sorted(glob.glob(os.path.join(path, "nvidia/*/lib")))]
        given = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
        kits = [os.path.join(home, "lib64") for home in homes]
        loader = re.findall(r"=> (/\S+)/", ask("ldconfig", "-p") or ask("/sbin/ldconfig", "-p"))
        places = [*wheels, *given, *loader, *kits]
        self.cudnn = options.cudnn or next(iter(holding(places, CUDNN)), "")
        self.nccl = next(iter(holding(places, NCCL)), "")
        # cuBLAS, and NVRTC, which cuDNN opens by its name. The wheel of cuDNN itself is named to what uses it.
        self.libraries = [folder for folder in dict.fromkeys([*wheels, *given, *kits])
                          if os.path.isdir(folder) and not folder.endswith("nvidia/cudnn/lib")]
        self.read_ahead = [*self.libraries, *filter(None, [self.cudnn]), *(os.path.join(path, "torch/lib") for path in folders)]
        path = os.pathsep.join([os.environ.get("PATH", ""), *(os.path.join(home, "bin") for home in homes)])
        self.tools = {name: shutil.which(name, path=path) or "" for name in ("nvidia-smi", "compute-sanitizer", "ncu")}

    def lacks(self, need):
        """Why a step cannot have what it needs; empty: it can."""
        has = {"gpu": not self.rehearses, "torch": self.torch, "cudnn": self.cudnn or self.rehearses, "nccl": self.nccl}
        why = {"gpu": "a rehearsal has no GPU", "torch": "no Python with PyTorch was found; name one with --python",
               "cudnn": "no folder with cuDNN was found; name it with --cudnn", "nccl": "no libnccl.so.2 was found"}
        return "" if has.get(need, self.tools.get(need)) else why.get(need, f"no {need} on the path or in a CUDA toolkit")

    def facts(self):
        return {"torch": self.torch or "no Python with PyTorch", "cudnn": self.cudnn, "libraries": self.libraries,
                "system": " ".join(os.uname()[:3]), "cores": len(os.sched_getaffinity(0)), **self.tools}
