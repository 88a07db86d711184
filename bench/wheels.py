"""Brings NVIDIA's Python wheels into a folder without installing them: found in the package index that pip uses, fetched
with resume, verified by their SHA-256, and unpacked side by side. Nothing but the standard library."""

import functools
import hashlib
import html.parser
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from dataclasses import dataclass

CHUNK_BYTES = 1 << 20
ATTEMPTS = 5


class WheelError(Exception):
    """What went wrong and what to do about it."""


@dataclass(frozen=True)
class Wheel:
    name: str
    version: str
    url: str
    sha256: str

    @property
    def file_name(self):
        return self.url.split("?")[0].rsplit("/", 1)[-1]

    @property
    def stem(self):
        return f"{self.name}-{self.version}"


def default_folder():
    """Where what is fetched is kept: the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "lamina")


@functools.cache
def index_url():
    """The package index that pip is set to use here. Its help text shows the default after every setting has been read."""
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--help"], capture_output=True, text=True, check=False)
    found = re.search(r"Python Package Index \(default ([^)]*)\)", " ".join(done.stdout.split()))
    if not found:
        raise WheelError("pip is needed to know the package index in use. On Debian and Ubuntu: "
                         "sudo apt-get install python3-pip")
    return found.group(1).rstrip("/")


class Links(html.parser.HTMLParser):
    """The addresses that a page of an index links to."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "a":
            self.found += [value for name, value in attributes if name == "href"]


@functools.cache
def listed(package):
    """Every wheel of a package for this kind of machine, newest first; none for a package that the index lacks."""
    page = f"{index_url()}/{package}/"
    try:
        with urllib.request.urlopen(urllib.request.Request(page, headers={"Accept": "text/html"}), timeout=60) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return []
        raise WheelError(f"the package index does not answer for {package}: {error}") from error
    except (urllib.error.URLError, OSError) as error:
        raise WheelError(f"the package index cannot be reached: {error}") from error
    wheels = []
    for link in Links(text).found:
        url, _, fragment = urllib.parse.urljoin(page, link).partition("#")
        name = urllib.parse.unquote(url.rsplit("/", 1)[-1])
        parts = name.removesuffix(".whl").split("-")
        digest = fragment.removeprefix("sha256=")
        if not name.endswith(".whl") or len(parts) != 5 or not re.fullmatch(r"\d+(\.\d+)*", parts[1]):
            continue
        platform_tag = parts[4]
        if platform_tag != "any" and not ("linux" in platform_tag and platform_tag.endswith(platform.machine())):
            continue
        wheels.append(Wheel(package, parts[1], url, digest if digest != fragment else ""))
    return sorted(wheels, key=lambda w: numbers(w.version), reverse=True)


def numbers(version):
    return [int(number) for number in version.split(".")]


def newest(package, beginning=""):
    """The newest wheel of a package whose version begins with these numbers, or None."""
    wanted = numbers(beginning) if beginning else []
    return next((w for w in listed(package) if numbers(w.version)[:len(wanted)] == wanted), None)


def size_bytes(wheel):
    """What the server says of the file's size; None where it does not say."""
    try:
        request = urllib.request.Request(wheel.url, method="HEAD")
        with urllib.request.urlopen(request, timeout=60) as answer:
            length = answer.headers.get("Content-Length")
            return None if length is None else int(length)
    except (urllib.error.URLError, ValueError, OSError):
        return None


def text_of(size):
    return "size unknown" if size is None else f"{size / 1e6:.1f} MB"


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def append_rest(url, path):
    """Appends what is missing of the file at `url`; starts anew where the server cannot continue."""
    have = os.path.getsize(path) if os.path.exists(path) else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing beyond what is there
            return
        raise
    with answer, open(path, "ab" if answer.status == 206 else "wb") as file:
        whole = file.tell() + int(answer.headers.get("Content-Length", 0))
        shutil.copyfileobj(answer, file, CHUNK_BYTES)
        if file.tell() < whole:  # reading in pieces does not say so by itself
            raise OSError(f"the connection ended after {file.tell()} of {whole} bytes")


def fetch(wheel, folder):
    """The wheel as a verified file of `folder`; a download that was interrupted goes on where it stopped."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, wheel.file_name)
    if not wheel.sha256:
        raise WheelError(f"{wheel.file_name}: the package index promises no SHA-256 of it, so that what arrives cannot be "
                         "verified. Name an index that does in PIP_INDEX_URL.")
    if os.path.exists(path):
        return path
    part = path + ".part"
    for attempt in range(ATTEMPTS):
        try:
            append_rest(wheel.url, part)
        except (urllib.error.URLError, OSError) as error:
            if attempt + 1 == ATTEMPTS:
                raise WheelError(f"{wheel.file_name}: {error}. Run the same command again: it goes on where it stopped.") \
                    from error
            time.sleep(1 + attempt)
            continue
        if digest_of(part) == wheel.sha256:
            os.replace(part, path)
            return path
        os.remove(part)  # neither whole nor a beginning of the whole
    raise WheelError(f"{wheel.file_name}: what arrives is not what its SHA-256 promises ({wheel.sha256}); tried "
                     f"{ATTEMPTS} times")


def manifest_of(tree):
    return os.path.join(tree, "lamina-manifest.json")


def is_whole(tree):
    """Whether every file that was unpacked is there with its size."""
    try:
        with open(manifest_of(tree), encoding="utf-8") as file:
            sizes = json.load(file)
        return all(os.path.getsize(os.path.join(tree, name)) == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False


def unpack(path, tree):
    """Unpacks a wheel into `tree`, which exists under its name only once it is whole."""
    beside = f"{tree}.{os.getpid()}.part"
    shutil.rmtree(beside, ignore_errors=True)
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(beside)
            sizes = {info.filename: info.file_size for info in archive.infolist() if not info.is_dir()}
            for info in archive.infolist():
                mode = info.external_attr >> 16
                if mode & stat.S_IXUSR:
                    os.chmod(os.path.join(beside, info.filename), 0o755)
    except (zipfile.BadZipFile, OSError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise WheelError(f"{path} cannot be unpacked: {error}") from error
    with open(manifest_of(beside), "w", encoding="utf-8") as file:
        json.dump(sizes, file)
    shutil.rmtree(tree, ignore_errors=True)
    os.replace(beside, tree)


def bring(wheel, folder):
    """The wheel's unpacked files in a folder of their own, fetched if they are not there."""
    tree = os.path.join(folder, "unpacked", wheel.stem)
    if not is_whole(tree):
        path = fetch(wheel, os.path.join(folder, "wheels"))
        unpack(path, tree)
        os.remove(path)
    return tree


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def join(trees, tree):
    """One tree with the files of all: what a Python environment with these wheels would hold. Takes no room where the
    file system has hard links."""
    beside = f"{tree}.{os.getpid()}.part"
    shutil.rmtree(beside, ignore_errors=True)
    for each in trees:
        names = {os.path.basename(manifest_of(each))}
        shutil.copytree(each, beside, dirs_exist_ok=True, copy_function=link_or_copy,
                        ignore=lambda folder, files, top=each: names if folder == top else ())
    shutil.rmtree(tree, ignore_errors=True)
    os.replace(beside, tree)


def announce(wheels, folder, out):
    """Says what will be downloaded and how large it is. Returns the wheels that are missing."""
    missing, total = [], 0
    for wheel in wheels:
        if is_whole(os.path.join(folder, "unpacked", wheel.stem)):
            print(f"  {wheel.stem}: here already", file=out)
            continue
        size = size_bytes(wheel)
        missing.append(wheel)
        total += size or 0
        print(f"  {wheel.stem}: {text_of(size)} to download", file=out)
    if missing:
        print(f"To download: {text_of(total)}, into {folder}; unpacked about twice as much.", file=out, flush=True)
    return missing
