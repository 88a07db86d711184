"""bench/wheels.py, bench/get-cudnn and bench/get-cuda against an index of small wheels on this machine: sizes said first, downloads that
go on where they stopped, digests, trees, versions that are not there."""

import hashlib
import http.server
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "../../bench")
sys.path.insert(0, BENCH)
import wheels

LARGE = os.urandom(3 << 20)


def wheel(name, version, files):
    """(file name, bytes) of a wheel."""
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w") as archive:
        for file_name, content in files.items():
            info = zipfile.ZipInfo(file_name)
            info.external_attr = (0o755 if "/bin/" in file_name else 0o644) << 16
            archive.writestr(info, content)
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl", blob.getvalue()


def cudnn(cuda, version):
    return wheel(f"nvidia-cudnn-cu{cuda}", version,
                 {"nvidia/cudnn/lib/libcudnn.so.9": f"cudnn {version}".encode() + LARGE, "nvidia/__init__.py": b""})


def script(name):
    """A script of bench/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(BENCH, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Index(http.server.ThreadingHTTPServer):
    """A package index that counts what it sends, and can cut an answer short."""

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.sent, self.cut, self.spoil = files, [], 0, set()
        self.fragment = "#sha256={}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, body):
        page = self.path.split("/")[2] if self.path.startswith("/simple/") else None
        if page:
            links = [n for n in self.server.files if n.lower().split("-")[0].replace("_", "-") == page]
            if not links:
                return self.send_error(404)
            digests = {n: hashlib.sha256(self.server.files[n]).hexdigest() for n in links}
            text = "".join(f'<a href="/files/{n}{self.server.fragment.format(digests[n])}">{n}</a>'
                           for n in links).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            return self.wfile.write(text) if body else None
        name = self.path.rsplit("/", 1)[-1]
        content = self.server.files[name]
        first, wanted = 0, self.headers.get("Range")
        if wanted:
            first = int(wanted.split("=")[1].split("-")[0])
        if first >= len(content):
            return self.send_error(416)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(content) - first))
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if not body:
            return None
        rest = content[first:]
        if name in self.server.spoil:
            self.server.spoil.discard(name)
            rest = bytes(len(rest))
        if self.server.cut and len(rest) > self.server.cut:
            rest, self.server.cut = rest[:self.server.cut], 0
        self.server.sent.append((name, first, len(rest)))
        self.wfile.write(rest)
        return None

    def do_GET(self):
        self.answer(True)

    def do_HEAD(self):
        self.answer(False)


class WheelsTest(unittest.TestCase):
    def setUp(self):
        self.index = Index(dict([
            cudnn(13, "9.19.0.56"), cudnn(13, "9.28.0.42"), cudnn(12, "9.19.0.56"), cudnn(12, "8.9.7.29"),
            wheel("nvidia-cublas", "13.1.0.3", {"nvidia/cu13/lib/libcublas.so.13": b"blas"}),
            wheel("nvidia-cuda-nvrtc", "13.0.88", {"nvidia/cu13/lib/libnvrtc.so.13": b"nvrtc"}),
            wheel("nvidia-cublas-cu12", "12.9.1.4", {"nvidia/cublas/lib/libcublas.so.12": b"blas12"}),
            wheel("nvidia-cuda-nvrtc-cu12", "12.9.86", {"nvidia/cuda_nvrtc/lib/libnvrtc.so.12": b"nvrtc12"}),
        ]))
        self.addCleanup(self.index.server_close)
        self.addCleanup(self.index.shutdown)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "cache")

    def run_it(self, *flags, script="get-cudnn"):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "NO_PROXY", "no_proxy"))}
        environment |= {"PIP_INDEX_URL": self.index.url + "/simple/", "PIP_CONFIG_FILE": os.devnull,
                        "no_proxy": "127.0.0.1", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, os.path.join(BENCH, script), *flags, "--folder", self.folder],
                              capture_output=True, text=True, check=False, env=environment)

    def fetched(self, name):
        return [s for s in self.index.sent if s[0].startswith(name)]

    def test_versions_lie_side_by_side_each_with_its_companions(self):
        done = self.run_it("9.19", "9.28")
        self.assertEqual(done.returncode, 0, done.stderr)
        places = done.stdout.strip().removeprefix("--cudnn=").split(",")
        self.assertEqual(len(places), 2)
        for place, version in zip(places, ("9.19.0.56", "9.28.0.42")):
            with open(os.path.join(place, "libcudnn.so.9"), "rb") as file:
                self.assertEqual(file.read(len(version) + 6), f"cudnn {version}".encode())
            self.assertTrue(os.path.exists(os.path.join(place, "../../cu13/lib/libcublas.so.13")))
            self.assertTrue(os.path.exists(os.path.join(place, "../../cu13/lib/libnvrtc.so.13")))
        self.assertIn("3.1 MB to download", done.stderr)

    def test_a_second_run_downloads_nothing_and_says_the_same(self):
        first = self.run_it("9.28")
        sent = len(self.index.sent)
        again = self.run_it("9.28")
        self.assertEqual(again.stdout, first.stdout)
        self.assertEqual(len(self.fetched("nvidia_cudnn")), 1)
        self.assertEqual(len([s for s in self.index.sent[sent:] if s[2] > 100000]), 0)
        self.assertIn("here already", again.stderr)

    def test_a_file_that_was_damaged_afterwards_is_brought_again(self):
        place = self.run_it("9.28").stdout.strip().removeprefix("--cudnn=")
        os.truncate(os.path.join(place, "libcudnn.so.9"), 10)
        self.assertEqual(self.run_it("9.28").returncode, 0)
        self.assertGreater(os.path.getsize(os.path.join(place, "libcudnn.so.9")), 10)

    def test_a_cut_download_goes_on_where_it_stopped(self):
        self.index.cut = 1 << 20
        done = self.run_it("9.28")
        self.assertEqual(done.returncode, 0, done.stderr)
        parts = [s for s in self.fetched("nvidia_cudnn_cu13-9.28") if s[2] > 100000]
        self.assertEqual(len(parts), 2)
        self.assertEqual(parts[1][1], 1 << 20)

    def test_bytes_that_do_not_fit_their_digest_are_thrown_away(self):
        name = next(n for n in self.index.files if "9.28" in n)
        self.index.spoil = {name}
        done = self.run_it("9.28")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len([s for s in self.fetched(name) if s[2] > 100000]), 2)

    def test_what_no_digest_vouches_for_is_refused_before_it_is_fetched(self):
        for fragment in ("", "#md5={}", "#sha256="):
            self.index.fragment = fragment
            done = self.run_it("9.28")
            self.assertNotEqual(done.returncode, 0, fragment)
            self.assertIn("nvidia_cudnn_cu13-9.28.0.42-py3-none-any.whl: the package index promises no SHA-256", done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertEqual([s for s in self.index.sent if s[2] > 100000], [])

    def test_one_cuda_for_all_versions_where_there_is_one(self):
        done = self.run_it("9.19", "8.9.7", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nvidia-cudnn-cu12-9.19.0.56", done.stderr)
        self.assertNotIn("cu13", done.stderr)
        self.assertFalse(os.path.exists(self.folder))

    def test_versions_of_two_cudas_are_said_to_be_so(self):
        done = self.run_it("9.28", "8.9", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not to be had for one CUDA", done.stderr)

    def test_a_version_that_is_not_there_is_named(self):
        done = self.run_it("9.99")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no cuDNN 9.99 built for CUDA 13 or 12 or 11", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_a_word_is_no_version(self):
        done = self.run_it("newest")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("'newest' is no version", done.stderr)

    def test_the_toolkit_is_one_tree_whose_compiler_runs(self):
        compiler = b"#!/bin/sh\necho release 13.0\n"
        self.index.files |= dict([
            wheel("nvidia-cuda-nvcc", "13.0.88", {"nvidia/cu13/bin/nvcc": compiler}),
            wheel("nvidia-cuda-nvcc", "13.1.2", {"nvidia/cu13/bin/nvcc": b"#!/bin/sh\nexit 1\n"}),
            wheel("nvidia-cuda-crt", "13.0.88", {"nvidia/cu13/include/crt/host_config.h": b""}),
            wheel("nvidia-nvvm", "13.0.88", {"nvidia/cu13/nvvm/bin/cicc": b""}),
            wheel("nvidia-cuda-runtime", "13.0.96", {"nvidia/cu13/include/cuda_runtime.h": b""}),
        ])
        lacking = self.run_it(script="get-cuda")
        self.assertNotEqual(lacking.returncode, 0)
        self.assertIn("has no nvidia-cuda-cccl for this machine", lacking.stderr)
        self.index.files |= dict([wheel("nvidia-cuda-cccl", "13.0.85", {"nvidia/cu13/include/nv/target": b""})])
        done = self.run_it(script="get-cuda")
        self.assertEqual(done.returncode, 0, done.stderr)
        toolkit, flag = done.stdout.splitlines()
        for name in ("bin/nvcc", "nvvm/bin/cicc", "include/crt/host_config.h", "lib/libcublas.so.13"):
            self.assertTrue(os.path.exists(os.path.join(toolkit, name)), name)
        self.assertTrue(os.path.exists(os.path.join(flag.removeprefix("--cudnn="), "libcudnn.so.9")))

    def test_a_driver_too_old_for_the_toolkit_is_refused_with_both_versions(self):
        get_cuda = script("get-cuda")
        with tempfile.NamedTemporaryFile("w", suffix="version") as file:
            file.write("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n")
            file.flush()
            with self.assertRaisesRegex(wheels.WheelError, "driver here is 535; CUDA 13.0 needs 580"):
                get_cuda.check_driver(file.name)
        self.assertEqual(get_cuda.driver_version("Open Kernel Module for x86_64  580.95.05  Release Build"), 580)


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        print("skipped: no pip for this Python. On Debian and Ubuntu: sudo apt-get install python3-pip")
        sys.exit(77)
    unittest.main()
