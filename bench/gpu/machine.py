"""The machine: its Python with PyTorch, folders of libraries, and tools."""

import glob
import os
import re
import shutil
import subprocess
import sys

PYTHONS = (sys.executable, shutil.which("python3") or "", "/usr/bin/python3", "/opt/*/bin/python3",
           "/opt/*/.venv/bin/python3", "/*/bin/python3", "~/*/bin/python3", "~/.*/bin/python3")
PROBE_SECONDS = 30  # time limit of `lamina_bench devices`
ASK_TORCH = "import sys, importlib.util as u; u.find_spec('torchvision') and print('\\n'.join(filter(None, sys.path)))"


def ask(*command, seconds=60, errors=subprocess.DEVNULL):
    """The output of a program; empty if it does not run, or has not ended after `seconds`."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                              timeout=seconds, check=False)
        return done.stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""


def find_torch():
    """(interpreter with PyTorch and torchvision, folders that it imports from), or ("", [])."""
    for pattern in PYTHONS:
        for python in sorted(glob.glob(os.path.expanduser(pattern))):
            if folders := ask(python, "-c", ASK_TORCH).splitlines():
                return python, folders
    return "", []


class Machine:
    def __init__(self, rehearses):
        self.rehearses, (self.torch, folders) = rehearses, find_torch()
        homes = [*filter(None, map(os.environ.get, ("CUDA_HOME", "CUDA_PATH"))),
                 *sorted(glob.glob("/usr/local/cuda*"), reverse=True)]
        wheels = [folder for path in folders for folder in sorted(glob.glob(os.path.join(path, "nvidia/*/lib")))]
        given = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
        kits = [os.path.join(home, "lib64") for home in homes]
        loader = re.findall(r"=> (/\S+)/", ask("ldconfig", "-p") or ask("/sbin/ldconfig", "-p"))
        self.cudnn = next((folder for folder in [*wheels, *given, *loader, *kits]
                           if glob.glob(os.path.join(folder, "libcudnn.so.[89]"))), "")
        # Folders with cuBLAS, or with NVRTC, which cuDNN opens by name. cuDNN's own wheel is left out, because commands
        # name it.
        self.libraries = [folder for folder in dict.fromkeys([*wheels, *given, *kits])
                          if os.path.isdir(folder) and not folder.endswith("nvidia/cudnn/lib")]
        self.read_ahead = [*self.libraries, self.cudnn or "/no", *(path + "/torch/lib" for path in folders)]
        path = os.pathsep.join([os.environ.get("PATH", ""), *(os.path.join(home, "bin") for home in homes)])
        self.tools = {name: shutil.which(name, path=path) or "" for name in ("nvidia-smi", "compute-sanitizer", "ncu")}

    def lacks(self, need):
        """The reason why this machine lacks a thing that a step needs; empty: the machine has it."""
        if {"gpu": not self.rehearses, "torch": self.torch, "cudnn": self.cudnn or self.rehearses, **self.tools}[need]:
            return ""
        return {"gpu": "a rehearsal has no GPU", "torch": "no Python with torchvision; put one first on the path",
                "cudnn": "no folder with cuDNN was found; put it into LD_LIBRARY_PATH"}.get(
                    need, f"no {need} on the path or in a CUDA toolkit")

    def facts(self):
        return {"torch": self.torch, "cudnn": self.cudnn, "system": " ".join(os.uname()[:3]), "cores": os.cpu_count()}
