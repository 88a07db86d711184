"""ncnn's side of a race. Its layers have no axis for a batch, so each image is a call. pnnx, a program in a wheel of
that name, converts the network that Lamina wrote as ONNX. Needs ncnn, and no numpy."""

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile

F32 = ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage", "use_int8_inference")
NARROW = re.compile("fp16|bf16|int8")  # in the names of options; a newer version may have more of them than F32
FILES = ("network.ncnn.param", "network.ncnn.bin")  # what pnnx makes of network.onnx, among others


def force_f32(options):
    """Turns off every option for a type narrower than f32 and reads it back. Returns their names."""
    names = sorted({*F32, *filter(NARROW.search, dir(options))})
    for name in names:
        setattr(options, name, False)
    if left := [name for name in names if getattr(options, name)]:
        raise RuntimeError(f"its {', '.join(left)} stays on, where f32 was set")
    return names


def pnnx():
    """The program. The Python module around it needs PyTorch and is not imported."""
    found = importlib.util.find_spec("pnnx")
    if found is None:
        raise RuntimeError("there is no pnnx beside ncnn: bench/get-peers ncnn brings both")
    return os.path.join(found.submodule_search_locations[0], "pnnx")


@contextlib.contextmanager
def ended_by_sigterm():
    """SIGTERM ends this process by an exception: subprocess.run then kills the program that it waits for."""
    def end(number, _frame):
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def convert(onnx, image):
    """Paths of ncnn's two files for an ONNX file and images of this shape. They are made once, in the folder `ncnn`
    beside it, which has that name once both are whole."""
    beside = os.path.dirname(onnx)
    folder = os.path.join(beside, "ncnn")
    if not os.path.isdir(folder):
        shape = ",".join(map(str, (1, *image)))
        with tempfile.TemporaryDirectory(dir=beside) as made, ended_by_sigterm():
            os.symlink(os.path.abspath(onnx), os.path.join(made, "network.onnx"))
            done = subprocess.run([pnnx(), "network.onnx", f"inputshape=[{shape}]", "fp16=0"], cwd=made, text=True,
                                  errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0 or not all(os.path.exists(os.path.join(made, name)) for name in FILES):
                lines = done.stdout.strip().splitlines() or ["it printed nothing"]
                raise RuntimeError(f"pnnx did not convert the network (status {done.returncode}): {lines[-1]}")
            whole = os.path.join(made, "whole")
            os.mkdir(whole)
            for name in FILES:
                os.rename(os.path.join(made, name), os.path.join(whole, name))
            os.rename(whole, folder)
    return [os.path.join(folder, name) for name in FILES]


def unknown_layers(param):
    """What pnnx left in its own names, as in `F.pad`: ncnn has no layer for it. ncnn's types are plain words."""
    with open(param) as file:
        types = {words[0] for words in map(str.split, file.readlines()[2:]) if words}
    return sorted(name for name in types if not name.isidentifier())


class Ncnn:
    """As it comes, Winograd and packed layouts included, but for f32, forced and read back, and the threads."""

    def __init__(self, passive):
        import ncnn

        self.library, self.passive = ncnn, passive
        self.facts = {name: importlib.metadata.version(name) for name in ("ncnn", "pnnx")}
        self.facts |= {"spinning": not passive, "images_of_a_call": 1, "off": force_f32(ncnn.Option())}

    def load(self, path, shape, threads):
        param, weights = convert(path, shape[1:])
        if unknown := unknown_layers(param):
            raise RuntimeError(f"it has no layer for pnnx's {', '.join(unknown)}")
        net = self.library.Net()
        force_f32(net.opt)  # before the network is read, as the other options
        net.opt.use_vulkan_compute, net.opt.num_threads = False, threads
        if self.passive:
            net.opt.openmp_blocktime = 0
        if net.load_param(param) != 0 or net.load_model(weights) != 0:
            raise RuntimeError("it cannot read the files that pnnx made of the network")

        def call(image):
            extractor = net.create_extractor()
            given = extractor.input("in0", self.library.Mat(image))  # a view of the image; pnnx's names
            status, y = extractor.extract("out0")
            if given != 0 or status != 0:
                raise RuntimeError(f"it answers {given} to an image and {status} to the question for its result")
            return memoryview(y)

        return lambda x: [call(image) for image in x]
