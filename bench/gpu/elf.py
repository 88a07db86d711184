"""What programs need of a machine: shared libraries, and the version of glibc. By readelf and what ldd answers."""

import os
import re
import subprocess

GLIBC = re.compile(r"^(ld-linux[-\w]*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec|nsl|nss_\w+))\.so\b")


class ElfError(Exception):
    """The message says which file needs what."""


def said(command, environment=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, check=False)
    return done.stdout.decode("utf-8", "replace")


def resolved(path):
    """{soname: path} of all that the loader would load with the file, in an empty environment. Throws ElfError."""
    found = {}
    for line in said(["ldd", path], {"PATH": os.environ.get("PATH", "")}).splitlines():
        words = re.match(r"\s*(\S+) => (\S+|not found)", line)
        if not words:
            continue
        if words.group(2) in ("not", "not found"):
            raise ElfError(f"{path} needs {words.group(1)}, which the loader does not find")
        found[words.group(1)] = words.group(2)
    return found


def of_glibc(soname):
    """Whether every Linux with the right glibc has it."""
    return bool(GLIBC.match(os.path.basename(soname)))


def companions(path):
    """{soname: path} of what has to be beside a file that goes to another machine."""
    return {soname: where for soname, where in resolved(path).items() if not of_glibc(soname)}


def outsiders(path, folder):
    """What the loader takes from outside of the folder, glibc aside."""
    inside = os.path.realpath(folder) + os.sep
    return {soname: where for soname, where in companions(path).items()
            if not os.path.realpath(where).startswith(inside)}


def glibc_needed(paths):
    """The newest version of glibc whose symbols any of the files asks for."""
    versions = {tuple(map(int, version.split("."))) for path in paths
                for version in re.findall(r"Name: GLIBC_([0-9.]+)", said(["readelf", "--wide", "-V", path]))}
    return ".".join(map(str, max(versions, default=(0,))))
