"""What the machine has: libraries, tools and interpreters, found without asking a package manager."""

import glob
import os
import re
import shutil
import subprocess
import sys

CUDNN = ("libcudnn.so.9", "libcudnn.so.8", "libcudnn.so.7")
CUBLAS = ("libcublas.so.13", "libcublas.so.12", "libcublas.so.11")
SYSTEM = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
TOOLKITS = "/usr/local/cuda*"
ENVIRONMENTS = ("/opt/*", "/opt/*/*", "/*", "/srv/*", "/usr/local/*", "~/*", "~/.*")  # places of virtual environments
ASK_PYTHON = ("import sys, json, importlib.util as u; print(json.dumps([sys.executable, sys.version.split()[0], "
              "[p for p in sys.path if p], bool(u.find_spec('torch'))]))")


class NotThere(Exception):
    """What an option names does not exist; the message says which."""


def ask(command, seconds=60):
    """What a program prints, or nothing where it does not run."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=seconds, check=False).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""


class Python:
    """An interpreter: its path, version, the folders that it imports from, and whether it has torch."""

    def __init__(self, path):
        import json
        self.path = path
        try:
            self.executable, self.version, self.folders, self.has_torch = json.loads(ask([path, "-c", ASK_PYTHON]))
        except ValueError:
            raise NotThere(f"'{path}' is not a Python 3 that runs") from None


def environments():
    """Interpreters of virtual environments with torch in them, in the places where one may be."""
    for place in ENVIRONMENTS:
        for torch in sorted(glob.glob(os.path.join(os.path.expanduser(place), "lib/python3*/site-packages/torch"))):
            yield os.path.join(torch.split("/lib/python3")[0], "bin/python3")


def pythons(named):
    """The interpreter that is named, or those that are usual, the one of this process first."""
    if named:
        return [Python(named)]
    found = []
    active = [os.path.join(os.environ[name], "bin/python3") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")
              if os.environ.get(name)]
    for path in (sys.executable, *active, shutil.which("python3"), "/usr/bin/python3", *environments()):
        if path and os.path.exists(path):
            try:
                python = Python(path)
            except NotThere:
                continue
            if all(python.folders != other.folders for other in found):
                found.append(python)
    return found


def holding(folder, names):
    """The first of the files that a folder has, or nothing."""
    return next((name for name in names if os.path.exists(os.path.join(folder, name))), None)


def wheel_folders(interpreters):
    """Where NVIDIA's wheels have their libraries."""
    return [folder for python in interpreters for path in python.folders
            for folder in sorted(glob.glob(os.path.join(path, "nvidia/*/lib")))]


def loader_folders():
    """Folders that the system's loader knows."""
    lines = ask(["ldconfig", "-p"]).splitlines() or ask(["/sbin/ldconfig", "-p"]).splitlines()
    known = [os.path.dirname(line.split("=>")[1].strip()) for line in lines if "=>" in line]
    given = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    return given + list(dict.fromkeys(known))


def toolkits():
    """Folders of CUDA toolkits: those that variables name, that of the nvcc on the path, the usual ones."""
    roots = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    nvcc = shutil.which("nvcc")
    roots += [os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))] if nvcc else []
    return roots + sorted(glob.glob(TOOLKITS), reverse=True)


def toolkit_folders():
    return [os.path.join(root, below) for root in toolkits() for below in ("lib64", "lib", "targets/x86_64-linux/lib")]


def libraries(names, named, interpreters):
    """Folders with one of the files, each file once: those that are named, or those of wheels (which PyTorch uses), of
    the loader, of toolkits and of the system, in this order."""
    if named:
        for folder in named:
            if not holding(folder, names):
                raise NotThere(f"'{folder}' has none of {', '.join(names)}")
        return [os.path.abspath(folder) for folder in named]
    found = {}
    for folder in [*wheel_folders(interpreters), *loader_folders(), *toolkit_folders(), *SYSTEM]:
        name = holding(folder, names)
        if name:
            found.setdefault(os.path.realpath(os.path.join(folder, name)), os.path.abspath(folder))
    return list(found.values())


def beside(folder):
    """The folder, and where it is a wheel's those of the other wheels: cuDNN opens NVRTC by its name alone. Without
    those of cuDNN, each of which is named to what uses it."""
    wheels = re.match(r"(.*/nvidia)/[^/]+/lib$", folder)
    others = sorted(glob.glob(glob.escape(wheels.group(1)) + "/*/lib")) if wheels else []
    return [folder] + [other for other in others if other != folder and not holding(other, CUDNN)]


def of_major(folders, names, major):
    """The folders, those whose library has the major version first."""
    return sorted(folders, key=lambda folder: not (holding(folder, names) or "").endswith(f".so.{major}"))


def tool(name, *patterns):
    """A program on the path, or in one of the places where toolkits and NVIDIA's installers have it."""
    found = shutil.which(name)
    inside = [os.path.join(root, below, name) for root in toolkits() for below in ("bin", name, "nsight-compute*")]
    for pattern in [*inside, *patterns]:
        paths = sorted(glob.glob(pattern), reverse=True)
        found = found or next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)
    return found


class Machine:
    """What was found. `lacks` says why a step that needs something cannot run."""

    def __init__(self, options, cuda_major):
        self.pythons = pythons(options.python)
        self.torch = next((python for python in self.pythons if python.has_torch), None)
        self.cudnn = libraries(CUDNN, options.cudnn, self.pythons)
        self.cublas = of_major(libraries(CUBLAS, options.cuda_libs, self.pythons), CUBLAS, cuda_major)
        self.sanitizer = tool("compute-sanitizer", *(f"/opt/nvidia/{below}compute-sanitizer" for below in
                                                     ("*/", "*/bin/", "*/*/", "*/*/bin/", "*/*/*/")))
        self.ncu = tool("ncu", "/opt/nvidia/nsight-compute/*/ncu", "/opt/nvidia/*/ncu", "/opt/nvidia/*/bin/ncu")
        self.smi = tool("nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/opt/nvidia/bin/nvidia-smi")

    def lacks(self, need):
        """Why the machine does not have what a step needs, in one line, or nothing."""
        reasons = {
            "cudnn": not self.cudnn and "no libcudnn.so was found in system folders, /usr/local/cuda* or Python's "
                                        "nvidia wheels; name its folder with --cudnn",
            "two cudnn": len(self.cudnn) < 2 and f"{len(self.cudnn)} cuDNN found, and two are compared; name the "
                                                 "folder of each with --cudnn",
            "torch": self.torch is None and "no Python with PyTorch was found; name one with --python",
            "compute-sanitizer": not self.sanitizer and "no compute-sanitizer on the path, in /usr/local/cuda* or "
                                                     "/opt/nvidia",
            "ncu": not self.ncu and "no ncu on the path, in /usr/local/cuda* or /opt/nvidia",
            "nvidia-smi": not self.smi and "no nvidia-smi on the path",
        }
        return reasons.get(need) or ""

    def facts(self):
        """For results.json."""
        return {
            "python": sys.version.split()[0], "system": os_name(), "processor": processor(), "cores": os.cpu_count(),
            "torch_python": self.torch.executable if self.torch else None, "cudnn": self.cudnn, "cublas": self.cublas,
            "compute-sanitizer": self.sanitizer, "ncu": self.ncu, "nvidia-smi": self.smi,
            "environment": {key: value for key, value in sorted(os.environ.items())
                            if key.startswith(("NVIDIA_", "CUDA_", "CUBLAS_", "CUDNN_"))},
        }

    def environment(self):
        """For our own programs: the cuBLAS that was found goes before the loader's. PyTorch brings its own."""
        if not self.cublas:
            return {}
        before = os.environ.get("LD_LIBRARY_PATH", "")
        return {"LD_LIBRARY_PATH": ":".join(beside(self.cublas[0]) + ([before] if before else []))}


def os_name():
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            found = re.search(r'^PRETTY_NAME="?([^"\n]*)', file.read(), re.MULTILINE)
    except OSError:
        found = None
    return f"{found.group(1) if found else 'unknown system'}, Linux {os.uname().release}"


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else os.uname().machine
