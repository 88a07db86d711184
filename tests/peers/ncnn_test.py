"""ncnn's side of a race, with an ncnn and a pnnx that compute nothing: f32, which is forced before the network is read,
the conversion, which is made once or not at all, and a call for each image."""

import array
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "../../bench/race/peers")
sys.path.insert(0, PEERS)
import ncnn_network

PNNX = """#!{python}
import json, os, sys, time
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], os.path.realpath("network.onnx"), os.getpid()]) + "\\n")
{body}
"""
CONVERTS = """
for name, text in (("network.ncnn.param", "7767517\\n2 1\\nInput in0 0 1 in0\\n{layer} y 1 1 in0 out0\\n"),
                   ("network.ncnn.bin", "weights"), ("network.pnnx.bin", "more"), ("network_pnnx.py", "more")):
    with open(name, "w") as file:
        file.write(text)
"""


class Option:
    """All on, as ncnn's are in newer versions; any other name is an error, as in a class of C++."""

    __slots__ = (*ncnn_network.F32, "use_bf16_packed", "use_winograd_convolution", "use_packing_layout",
                 "use_vulkan_compute", "num_threads", "openmp_blocktime")

    def __init__(self):
        for name in self.__slots__:
            setattr(self, name, True)
        self.openmp_blocktime = 20


class Stubborn(Option):
    """What is stored in it in bf16 stays so."""

    __slots__ = ()

    def __getattribute__(self, name):
        return name == "use_bf16_storage" or object.__getattribute__(self, name)


class Net:
    """Its result for an image is the image's sum and length. `made`: the last one. `answers`: of load_param,
    load_model, input and extract."""

    made, option, answers = None, Option, (0, 0, 0, 0)

    def __init__(self):
        Net.made, self.opt, self.images, self.read = self, Net.option(), [], {}

    def load_param(self, path):
        with open(path) as file:
            self.read["param"] = file.read()
        self.read["options"] = {name: getattr(self.opt, name) for name in Option.__slots__}
        return Net.answers[0]

    def load_model(self, path):
        with open(path) as file:
            self.read["bin"] = file.read()
        return Net.answers[1]

    def create_extractor(self):
        self.images.append(None)
        return self

    def input(self, name, image):
        self.images[-1] = (name, image)
        return Net.answers[2]

    def extract(self, name):
        assert name == "out0"
        return Net.answers[3], array.array("f", [sum(self.images[-1][1]), len(self.images[-1][1])])


class NcnnTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree, self.folder = os.path.join(scratch.name, "tree"), os.path.join(scratch.name, "race")
        self.onnx, self.log = os.path.join(self.folder, "network.onnx"), os.path.join(scratch.name, "log")
        os.makedirs(os.path.join(self.tree, "pnnx"))
        os.mkdir(self.folder)
        with open(self.onnx, "w") as file:
            file.write("a network")
        with open(os.path.join(self.tree, "pnnx/__init__.py"), "w") as file:
            file.write("import no_torch_is_here\n")
        for name, version in (("ncnn", "1.0.2"), ("pnnx", "3")):
            os.mkdir(os.path.join(self.tree, f"{name}-{version}.dist-info"))
            with open(os.path.join(self.tree, f"{name}-{version}.dist-info/METADATA"), "w") as file:
                file.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        self.pnnx(CONVERTS.format(layer="Convolution"))
        fake = types.SimpleNamespace(Net=Net, Option=lambda: Net.option(), Mat=list)
        Net.option, Net.answers = Option, (0, 0, 0, 0)
        path = mock.patch.object(sys, "path", [self.tree, *sys.path])
        for patch in (mock.patch.dict(sys.modules, {"ncnn": fake}), path):
            patch.start()
            self.addCleanup(patch.stop)

    def pnnx(self, body):
        """The program, by what it does after it has written how it was called."""
        path = os.path.join(self.tree, "pnnx/pnnx")
        with open(path, "w", opener=lambda name, how: os.open(name, how, 0o755)) as file:
            file.write(PNNX.format(python=sys.executable, log=self.log, body=body))

    def calls(self):
        """Each call of pnnx: [arguments, the file that it was given, its process]."""
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def load(self, shape=(2, 3, 8, 9), passive=False):
        return ncnn_network.Ncnn(passive).load(self.onnx, shape, 5)

    def test_f32_and_the_threads_are_set_before_the_network_is_read_and_the_rest_is_as_it_comes(self):
        self.load()
        set_to = {"use_vulkan_compute": False, "num_threads": 5, "use_winograd_convolution": True,
                  "use_packing_layout": True, "openmp_blocktime": 20, "use_bf16_packed": False}
        self.assertEqual(Net.made.read["options"], dict.fromkeys(ncnn_network.F32, False) | set_to)
        self.assertEqual(Net.made.read["bin"], "weights")
        self.load(passive=True)
        self.assertEqual(Net.made.read["options"]["openmp_blocktime"], 0)

    def test_what_it_says_of_itself_has_both_versions_and_what_was_turned_off(self):
        facts = ncnn_network.Ncnn(False).facts
        self.assertEqual((facts["ncnn"], facts["pnnx"], facts["spinning"]), ("1.0.2", "3", True))
        self.assertEqual(set(facts["off"]), {*ncnn_network.F32, "use_bf16_packed"})
        self.assertFalse(ncnn_network.Ncnn(True).facts["spinning"])

    def test_an_option_that_stays_on_is_an_error_with_its_name(self):
        Net.option = Stubborn
        with self.assertRaisesRegex(RuntimeError, "use_bf16_storage"):
            ncnn_network.Ncnn(False)

    def test_a_version_without_one_of_the_options_is_an_error_with_its_name(self):
        class Older:
            __slots__ = tuple(name for name in Option.__slots__ if name != "use_fp16_storage")
            __init__ = Option.__init__

        Net.option = Older
        with self.assertRaisesRegex(AttributeError, "use_fp16_storage"):
            ncnn_network.Ncnn(False)

    def test_pnnx_converts_for_one_image_in_f32_once_and_leaves_what_ncnn_reads(self):
        self.load()
        self.load()
        (arguments, given, _), = self.calls()
        self.assertEqual(arguments, ["network.onnx", "inputshape=[1,3,8,9]", "fp16=0"])
        self.assertEqual(given, os.path.realpath(self.onnx))
        self.assertEqual(sorted(os.listdir(self.folder)), ["ncnn", "network.onnx"])
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "ncnn"))), sorted(ncnn_network.FILES))

    def test_a_conversion_that_fails_is_an_error_with_the_last_line_and_leaves_nothing(self):
        for body, named in (("print('one'); sys.exit('no LRN here')", "status 1.*no LRN here"),
                            ("print('nothing to write')", "status 0.*nothing to write"),
                            ("open('network.ncnn.param', 'w')", "printed nothing"),
                            ("os.kill(os.getpid(), 11)", "status -11")):
            self.pnnx(body)
            with self.assertRaisesRegex(RuntimeError, named):
                self.load()
            self.assertEqual(os.listdir(self.folder), ["network.onnx"])
        self.pnnx(CONVERTS.format(layer="Convolution"))
        self.load()

    def test_a_layer_that_ncnn_lacks_is_named(self):
        self.pnnx(CONVERTS.format(layer="F.local_response_norm"))
        with self.assertRaisesRegex(RuntimeError, r"F\.local_response_norm"):
            self.load()

    def test_files_that_ncnn_cannot_read_and_images_that_it_cannot_run_are_errors(self):
        for answers, named in (((-1, 0, 0, 0), "cannot read"), ((0, -1, 0, 0), "cannot read")):
            Net.answers = answers
            with self.assertRaisesRegex(RuntimeError, named):
                self.load()
        for answers in ((0, 0, -1, 0), (0, 0, 0, -100)):
            Net.answers = answers
            with self.assertRaisesRegex(RuntimeError, "-1"):
                self.load()([[1.0]])

    def test_each_image_of_a_batch_is_a_call_and_results_are_in_their_order(self):
        results = self.load()([[1.0, 2.0], [5.0, 0.5], [4.0]])
        self.assertEqual([list(result) for result in results], [[3.0, 2.0], [5.5, 2.0], [4.0, 1.0]])
        self.assertEqual(Net.made.images, [("in0", [1.0, 2.0]), ("in0", [5.0, 0.5]), ("in0", [4.0])])

    def test_without_pnnx_it_says_what_brings_it(self):
        with mock.patch.object(ncnn_network.importlib.util, "find_spec", lambda _: None):
            with self.assertRaisesRegex(RuntimeError, "bench/get-peers ncnn"):
                self.load()

    def test_sigterm_during_a_conversion_ends_pnnx_and_removes_what_it_wrote(self):
        self.pnnx("open('half', 'w'); time.sleep(60)")
        program = (f"import sys; sys.path[:0] = [{PEERS!r}, {self.tree!r}]\n"
                   f"import ncnn_network; ncnn_network.convert({self.onnx!r}, (3, 8, 9))")
        with subprocess.Popen([sys.executable, "-c", program]) as child:
            latest = time.monotonic() + 30
            while not self.calls() and child.poll() is None and time.monotonic() < latest:
                time.sleep(0.01)
            child.terminate()
            self.assertEqual(child.wait(), 128 + signal.SIGTERM)
        with self.assertRaises(ProcessLookupError):
            os.kill(self.calls()[0][2], 0)
        self.assertEqual(os.listdir(self.folder), ["network.onnx"])


if __name__ == "__main__":
    unittest.main()
