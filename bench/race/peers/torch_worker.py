#!/usr/bin/env python3
"""The worker of a network in PyTorch, in one variant, on the processor or a GPU. Answers each line by JSON."""
# Usage: torch_worker.py CONFIG; variants.py describes this JSON.
# A training pass: draw x, time forward, draw dy, time backward. Dropout is on. The network's protocol in Lamina says
# whether there is a softmax, whether backward computes the image's gradient, and whether it adds to the parameter
# gradients or overwrites them.

import gc
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import child
import safetensors_file
import torch
import torch_settings
import timed_network
from timers import WallTimer

WARM_UP_PASSES = {"cpu": 1, "cuda": 5}  # passes of `open`, as many as in Lamina's worker


def product_gflops():
    """GFLOP/s of a matrix product, by processor time. The rate is low if PyTorch was built with a reference BLAS."""
    a = torch.randn(1024, 1024)
    return max(2e-9 * 1024**3 * torch.get_num_threads() / WallTimer().time("product", lambda: a @ a)[1]["product_cpu"]
               for _ in range(3))


def greeting(variant, threads):
    """The greeting of a worker: versions, settings and device."""
    answer = {"torch": torch.__version__, "python": sys.version.split()[0], "threads": threads,
              "device": str(variant.device), "settings": variant.apply()}
    if variant.device.type != "cuda":
        return answer | {"product_gflops": product_gflops(), "config": torch.__config__.show().splitlines()}
    torch.cuda.set_device(variant.device)
    properties = torch.cuda.get_device_properties(variant.device)
    return answer | {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "gpu": properties.name,
                     "memory_bytes": properties.total_memory, "multiprocessors": properties.multi_processor_count,
                     "capability": f"{properties.major}.{properties.minor}"}


class Server:
    """Answers `open`, `check`, `rounding` and `pass`, each with MODE LAYOUT, and `drop` with MODE."""

    def __init__(self, config):
        torch.set_num_threads(config["threads"])
        self.config, self.made = config, {}
        self.variant = torch_settings.Variant(config["flags"], config["precision"], config["device"])
        self.on_gpu = self.variant.device.type == "cuda"
        self.greeting = greeting(self.variant, config["threads"])

    def network(self, mode, layout):
        if (mode, layout) not in self.made:
            shape = self.read("check")["x"].shape if self.config["files"] else None
            made = timed_network.TimedNetwork(self.config["net"], mode, layout, self.config["batch"], self.variant,
                                              shape)
            if self.config["files"]:
                made.load(self.read("weights"))
            self.made[mode, layout] = made
        return self.made[mode, layout]

    def read(self, name):
        return safetensors_file.read(os.path.join(self.config["files"], name + ".safetensors"))

    def numbers(self, mode):
        """(Lamina's images, Lamina's output for them, whether this output is of training mode)."""
        file = self.read("check")
        trained = mode == "training" and "y_training" in file
        return torch.tensor(file["x"]), file["y_training" if trained else "y"], trained

    def check(self, mode, layout):
        """The difference between PyTorch's output and Lamina's output."""
        (x, y, trained), network = self.numbers(mode), self.network(mode, layout)
        drops = [name for name, module in network.net.named_modules() if getattr(module, "p", 0) > 0]
        if trained and drops:
            raise child.Refused(f"this file lacks the dropout {drops[0]} of torchvision's network: export it in mode "
                                "TRAINING, as docs/peers.md shows, or race it with --modes inference")
        return {"difference": child.difference(network.computed(x, trained), y)}

    def rounding(self, mode, layout):
        """The difference between PyTorch's eager output in this precision and its output in f64."""
        x, _, trained = self.numbers(mode)
        return {"rounding": self.network(mode, layout).rounding(x, trained)}

    def open(self, mode, layout):
        """Makes the network that `pass` will run, and warms it up."""
        # The answer has the time until the end of the first pass, and on a GPU the peak of memory during another pass.
        start = time.perf_counter()
        network = self.network(mode, layout)
        network.run()
        answer = {"first_pass_seconds": time.perf_counter() - start}
        for _ in range(WARM_UP_PASSES[self.variant.device.type] - 1):
            network.run()
        if self.variant.compile_mode:
            torch._dynamo.config.error_on_recompile = True  # without this, the network could silently run eagerly
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
            network.run()
            answer["peak_bytes"] = torch.cuda.max_memory_allocated()
        return answer | {"settings": self.variant.read_back()}

    def drop(self, mode):
        self.made = {key: network for key, network in self.made.items() if key[0] != mode}
        gc.collect()
        if self.variant.compile_mode:
            torch._dynamo.reset()
            torch._dynamo.config.error_on_recompile = False
        if self.on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        return {}

    def answer(self, line):
        command, mode, *layout = line.split()
        if command == "pass":
            return self.network(mode, *layout).run()
        return getattr(self, command)(mode, *layout)


if __name__ == "__main__":
    child.serve(lambda: Server(json.loads(sys.argv[1])))
