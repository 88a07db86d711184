#!/usr/bin/env python3
"""The child of a runtime for inference that `compare` asks for passes: onnxruntime, OpenVINO, ncnn. Each runs the network
that Lamina wrote as ONNX, on batches like the one beside it. Usage: runtimes.py NAME FOLDER THREADS [--passive];
--passive: threads sleep while they wait, where the runtime lets that be set. Needs numpy."""

import os
import sys
import traceback

import child
import numpy
import safetensors_file
from ncnn_network import Ncnn
from timers import WallTimer


class Onnxruntime:
    """As it comes, all of its optimisations included, but for the threads."""

    def __init__(self, passive):
        import onnxruntime

        self.library, self.passive = onnxruntime, passive
        self.facts = {"onnxruntime": onnxruntime.__version__, "spinning": not passive}

    def load(self, path, shape, threads):
        options = self.library.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_free_dimension_override_by_name("batch", shape[0])
        if self.passive:
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = self.library.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        if session.get_providers() != ["CPUExecutionProvider"]:
            raise RuntimeError(f"it runs on {session.get_providers()}, and not on the processor alone")
        name = session.get_inputs()[0].name
        return lambda x: session.run(None, {name: x})[0]


class Openvino:
    """As it comes for one stream of requests, but for f32, which is forced and read back, and the threads."""

    def __init__(self, passive):
        import openvino

        self.library = openvino
        self.facts = {"openvino": openvino.__version__, "passive": "as it comes, by TBB" if passive else False}

    def load(self, path, shape, threads):
        core = self.library.Core()
        model = core.read_model(path)
        model.reshape(list(shape))
        compiled = core.compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY"})
        precision = compiled.get_property("INFERENCE_PRECISION_HINT")
        if precision != self.library.Type.f32:
            raise RuntimeError(f"its precision is {precision}, where f32 was set")
        request = compiled.create_infer_request()
        return lambda x: request.infer(x, share_inputs=True, share_outputs=True)[0]


RUNTIMES = {"onnxruntime": Onnxruntime, "openvino": Openvino, "ncnn": Ncnn}


class Server:
    def __init__(self, runtime, folder, threads):
        self.runtime, self.folder, self.threads = runtime, folder, threads
        self.run, self.timer, self.numbers = None, WallTimer(), numpy.random.default_rng(1)

    def made(self):
        if self.run is None:
            path, shape = os.path.join(self.folder, "network.onnx"), self.check_file()["x"].shape
            self.run = self.runtime.load(path, shape, self.threads)
        return self.run

    def check_file(self):
        return safetensors_file.read(os.path.join(self.folder, "check.safetensors"))

    def check(self):
        file = self.check_file()
        return {"difference": child.difference(self.made()(numpy.ascontiguousarray(file["x"])), file["y"])}

    def passed(self):
        run = self.made()
        x = self.numbers.standard_normal(self.check_file()["x"].shape, numpy.float32)
        return self.timer.time("inference", lambda: run(x))[1]

    def drop(self):
        self.run = None
        return {}

    def answer(self, line):
        return {"check": self.check, "pass": self.passed, "drop": self.drop}[line.split()[0]]()


def main():
    name, folder, threads, *passive = sys.argv[1:]
    say = child.answering()
    try:
        runtime = RUNTIMES[name](bool(passive))
        server = Server(runtime, folder, int(threads))
        say(runtime.facts | {"python": sys.version.split()[0], "threads": int(threads)})
        for line in sys.stdin:
            say(server.answer(line))
    except Exception as error:  # whatever the library throws is the reason
        traceback.print_exc()
        say({"error": child.reason(error)})
        sys.exit(1)


if __name__ == "__main__":
    main()
