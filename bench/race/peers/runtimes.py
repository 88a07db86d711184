#!/usr/bin/env python3
"""The worker of a runtime for inference: onnxruntime or OpenVINO."""
# It runs the network that Lamina wrote as ONNX, on batches of the size in check.safetensors beside the network. Usage:
# runtimes.py CONFIG; variants.py describes this JSON. The flag passive: threads sleep while they wait, if the runtime
# has such a setting. Needs numpy.

import json
import os
import sys

import child
import numpy
import safetensors_file
from timers import WallTimer


class Onnxruntime:
    """onnxruntime with its default settings, which include all optimisations. Only the number of threads is set."""

    def __init__(self, passive):
        import onnxruntime

        self.library, self.passive = onnxruntime, passive
        self.facts = {"onnxruntime": onnxruntime.__version__, "spinning": not passive}

    def load(self, path, shapes, threads):
        options = self.library.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_free_dimension_override_by_name("batch", shapes[0][0])
        if self.passive:
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = self.library.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        if session.get_providers() != ["CPUExecutionProvider"]:
            raise RuntimeError(f"it runs on {session.get_providers()}, and not on the processor alone")
        names = [one.name for one in session.get_inputs()]
        return lambda inputs: session.run(None, dict(zip(names, inputs)))[0]


class Openvino:
    """OpenVINO with one stream of requests. The number of threads and f32 are set, and f32 is read back."""

    def __init__(self, passive):
        import openvino

        self.library = openvino
        self.facts = {"openvino": openvino.__version__, "passive": "as it comes, by TBB" if passive else False}

    def load(self, path, shapes, threads):
        core = self.library.Core()
        model = core.read_model(path)
        model.reshape({i: list(shape) for i, shape in enumerate(shapes)})
        compiled = core.compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY"})
        precision = compiled.get_property("INFERENCE_PRECISION_HINT")
        if precision != self.library.Type.f32:
            raise RuntimeError(f"its precision is {precision}, where f32 was set")
        request = compiled.create_infer_request()
        return lambda inputs: request.infer(inputs, share_inputs=True, share_outputs=True)[0]


RUNTIMES = {"onnxruntime": Onnxruntime, "openvino": Openvino}


class Server:
    """Answers `check`, `open`, `pass` and `drop`. check.safetensors, beside the network, sets the batch."""

    def __init__(self, config):
        self.runtime, self.run = RUNTIMES[config["engine"]]("passive" in config["flags"]), None
        self.folder, self.threads = config["files"], config["threads"]
        self.greeting = self.runtime.facts | {"python": sys.version.split()[0], "threads": self.threads}
        self.timer, self.random = WallTimer(), numpy.random.default_rng(1)
        numbers = safetensors_file.read(os.path.join(self.folder, "check.safetensors"))
        self.y = numbers["y"]
        self.inputs = [numpy.ascontiguousarray(numbers[name]) for name in sorted(numbers, key=len) if name[0] == "x"]

    def made(self):
        if self.run is None:
            path = os.path.join(self.folder, "network.onnx")
            self.run = self.runtime.load(path, [x.shape for x in self.inputs], self.threads)
        return self.run

    def timed_pass(self):
        run, inputs = self.made(), [self.random.standard_normal(x.shape, numpy.float32) for x in self.inputs]
        return self.timer.time("inference", lambda: run(inputs))[1]

    def answer(self, line):
        command = line.split()[0]
        if command == "check":
            return {"difference": child.difference(self.made()(self.inputs), self.y)}
        if command == "pass":
            return self.timed_pass()
        if command == "open":
            return {"first_pass_seconds": self.timed_pass()["inference"]}
        self.run = None  # drop
        return {}


if __name__ == "__main__":
    child.serve(lambda: Server(json.loads(sys.argv[1])))
