"""bench/get-cudnn and bench/get-cuda on a small package index, which has all wheels, lacks some, or is down."""

import base64
import functools
import hashlib
import http.server
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "../../../bench")
sys.path.insert(0, BENCH)
import wheels


def script(name):
    """A script of bench/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(BENCH, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class WheelsTest(unittest.TestCase):
    def setUp(self):
        scratch = self.enterContext(tempfile.TemporaryDirectory())
        self.folder, self.simple = os.path.join(scratch, "cache"), os.path.join(scratch, "simple")
        server = self.enterContext(http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                                   functools.partial(Quiet, directory=scratch)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}/simple/"
        for cuda, version in ((13, "9.19.0.56"), (13, "9.28.0.42"), (12, "9.19.0.56"), (12, "8.9.7.29")):
            self.add(f"nvidia-cudnn-cu{cuda}", version, {"nvidia/cudnn/lib/libcudnn.so.9": f"cudnn {version}"})
        self.add("nvidia-cublas", "13.1.0.3", {"nvidia/cu13/lib/libcublas.so.13": "blas"})
        self.add("nvidia-cuda-nvrtc", "13.0.88", {"nvidia/cu13/lib/libnvrtc.so.13": "nvrtc"})
        self.add("nvidia-cublas-cu12", "12.9.1.4", {"nvidia/cublas/lib/libcublas.so.12": "blas12"})
        self.add("nvidia-cuda-nvrtc-cu12", "12.9.86", {"nvidia/cuda_nvrtc/lib/libnvrtc.so.12": "nvrtc12"})

    def add(self, name, version, files, needs=()):
        """A wheel in the index."""
        title = f"{name.replace('-', '_')}-{version}"
        more = "".join(f"Requires-Dist: {need}\n" for need in needs)
        files = files | {f"{title}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}",
                         f"{title}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
        record = f"{title}.dist-info/RECORD"
        lines = [f"{record},,\n"]
        os.makedirs(os.path.join(self.simple, name), exist_ok=True)
        path = os.path.join(self.simple, name, f"{title}-py3-none-any.whl")
        with zipfile.ZipFile(path, "w") as archive:
            for file, text in files.items():
                info = zipfile.ZipInfo(file)
                info.external_attr = (0o100755 if "/bin/" in file else 0o100644) << 16
                archive.writestr(info, text)
                digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
                lines.append(f"{file},sha256={digest},{len(text)}\n")
            archive.writestr(record, "".join(lines))
        return path

    def run_it(self, *flags, script="get-cudnn", index=None):
        environment = {k: v for k, v in os.environ.items() if not k.upper().startswith(("PIP_", "NO_PROXY"))}
        environment |= {"PIP_INDEX_URL": index or self.url, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1",
                        "no_proxy": "127.0.0.1", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, os.path.join(BENCH, script), *flags, "--folder", self.folder],
                              capture_output=True, text=True, check=False, env=environment)

    def refused(self, done, *words):
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_versions_are_side_by_side_with_their_companions_and_fetched_once(self):
        done = self.run_it("9.19", "9.28")
        self.assertEqual(done.returncode, 0, done.stderr)
        places = done.stdout.strip().removeprefix("--cudnn=").split(",")
        self.assertEqual(len(places), 2)
        for place, version in zip(places, ("9.19.0.56", "9.28.0.42")):
            with open(os.path.join(place, "libcudnn.so.9")) as file:
                self.assertEqual(file.read(), f"cudnn {version}")
            self.assertTrue(os.path.exists(os.path.join(place, "../../cu13/lib/libcublas.so.13")))
            self.assertTrue(os.path.exists(os.path.join(place, "../../cu13/lib/libnvrtc.so.13")))
        os.remove(os.path.join(self.folder, "9.28.0.42-cuda13", wheels.DONE))
        again = self.run_it("9.28")
        self.assertEqual((again.stdout.strip(), again.stderr.count("to fetch")), (f"--cudnn={places[1]}", 1))
        self.assertEqual(sorted(os.listdir(self.folder)), ["9.19.0.56-cuda13", "9.28.0.42-cuda13"])

    def test_a_wheel_that_cannot_be_unpacked_leaves_nothing_and_an_error(self):
        with open(self.add("nvidia-cublas", "13.1.0.3", {}), "w") as file:
            file.write("no wheel")
        self.refused(self.run_it("9.28"), "get-cudnn", "pip")
        self.assertEqual(os.listdir(self.folder) if os.path.exists(self.folder) else [], [])

    def test_versions_are_built_for_one_cuda(self):
        done = self.run_it("latest", "--cuda=12")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("9.19.0.56-cuda12", done.stdout)

        def resolve(wanted):  # finds the packages that setUp's index has
            if any(one in wanted[0] for one in ("cu13==8.9", "cu12==9.28", "cu11")):
                raise wheels.NotFound(wanted[0])
            return wanted

        get_cudnn = script("get-cudnn")
        with unittest.mock.patch.object(wheels, "resolve", resolve):
            for versions, cuda in ((("9.19", "9.28"), "13"), (("9.19", "8.9.7"), "12")):
                found, its = get_cudnn.resolve_all(versions, get_cudnn.CUDA_MAJORS)
                self.assertEqual((found, [one[0] for one in its]),
                                 (cuda, [f"nvidia-cudnn-cu{cuda}=={version}.*" for version in versions]))
            with self.assertRaisesRegex(wheels.WheelError, "13, 12, 11.*several commands"):
                get_cudnn.resolve_all(("9.28", "8.9"), get_cudnn.CUDA_MAJORS)
        done = self.run_it("newest")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'newest'", done.stderr)

    def test_an_index_that_cannot_be_reached_is_an_error_that_says_so(self):
        self.refused(self.run_it("9.28", index="http://127.0.0.1:1/simple/"), "get-cudnn", "nvidia-cudnn-cu13", "online")

    def test_the_toolkit_is_one_tree_whose_compiler_runs(self):
        self.add("nvidia-cuda-nvcc", "13.0.88", {"nvidia/cu13/bin/nvcc": "#!/bin/sh\necho release 13.0\n"})
        self.add("nvidia-cuda-nvcc", "13.1.2", {"nvidia/cu13/bin/nvcc": "#!/bin/sh\nexit 1\n"})
        self.add("nvidia-cuda-crt", "13.0.88", {"nvidia/cu13/include/crt/host_config.h": ""})
        self.add("nvidia-nvvm", "13.0.88", {"nvidia/cu13/nvvm/bin/cicc": ""})
        self.add("nvidia-cuda-runtime", "13.0.96", {"nvidia/cu13/include/cuda_runtime.h": ""})
        self.refused(self.run_it(script="get-cuda"), "the package index has no", "nvidia-cuda-cccl")
        self.add("nvidia-cuda-cccl", "13.0.85", {"nvidia/cu13/include/nv/target": ""})
        done = self.run_it(script="get-cuda")
        self.assertEqual(done.returncode, 0, done.stderr)
        toolkit, flag = done.stdout.splitlines()
        for name in ("bin/nvcc", "nvvm/bin/cicc", "include/crt/host_config.h", "lib/libcublas.so.13"):
            self.assertTrue(os.path.exists(os.path.join(toolkit, name)), name)
        self.assertTrue(os.path.exists(os.path.join(flag.removeprefix("--cudnn="), "libcudnn.so.9")))

    def test_a_driver_too_old_for_the_toolkit_is_refused_with_both_versions(self):
        get_cuda = script("get-cuda")
        os.makedirs(self.folder)
        path = os.path.join(self.folder, "version")
        with open(path, "w") as file:
            file.write("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n")
        with self.assertRaisesRegex(wheels.WheelError, "535.*580"):
            get_cuda.check_driver(path)
        with open(path, "w") as file:
            file.write("Open Kernel Module for x86_64  580.95.05  Release Build\n")
        get_cuda.check_driver(path)


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        print("skipped: no pip for this Python. On Debian and Ubuntu: sudo apt-get install python3-pip")
        sys.exit(77)
    unittest.main()
