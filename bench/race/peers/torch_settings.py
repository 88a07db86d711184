"""Sets PyTorch's settings for a variant (TF32, cudnn.benchmark, autocast, compilation), and reads them back."""

import contextlib
import os
import warnings

import child
import torch

AUTOCAST = {"f16": torch.float16, "bf16": torch.bfloat16}
MODES = {"compiled": "default", "compiled+graph": "reduce-overhead", "max-autotune": "max-autotune"}


class SettingError(Exception):
    """A setting has another value than the value that was set. The message names the setting."""


class Variant:
    """A variant of PyTorch: its flags, such as compiled and benchmark, its precision and its device."""
    # The flag frozen, for inference: the compiler takes the weights as constants and packs them.

    def __init__(self, flags, precision, device):
        self.flags, self.precision, self.device = flags, precision, torch.device(device)
        self.compile_mode = MODES.get("+".join(sorted({"compiled", "max-autotune", "graph"} & set(flags))))
        self.compiler_graphs = self.device.type == "cuda" and self.compile_mode in ("reduce-overhead", "max-autotune")
        self.warms_each_pass = self.device.type == "cuda"
        if "graph" in flags and self.device.type != "cuda":
            raise child.Refused("it records CUDA graphs, for which PyTorch needs a GPU")

    def apply(self):
        """Sets the settings of the whole process, and returns the values that are read back."""
        # TF32 is set by the old name `allow_tf32`, which also sets the new name `fp32_precision`. After setting the new
        # name, reading the old name fails, and the compiler of PyTorch 2.11 reads the old name.
        tf32 = self.precision == "tf32"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings that old names are deprecated
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.backends.cudnn.allow_tf32 = tf32
            torch.backends.cudnn.benchmark = "benchmark" in self.flags
            if "frozen" in self.flags:
                from torch._inductor import config

                config.freezing = True
            found = self.read_back()
        wanted = {"matmul.allow_tf32": tf32, "cudnn.allow_tf32": tf32, "cudnn.benchmark": "benchmark" in self.flags}
        wrong = [f"{key} is {found[key]} where {value} was set" for key, value in wanted.items() if found[key] != value]
        for key in ("matmul.fp32_precision", "cudnn.conv.fp32_precision"):
            if key in found and (found[key] == "tf32") != tf32:
                wrong.append(f"{key} is {found[key]}, and allow_tf32 {tf32}")
        if wrong:
            raise SettingError("; ".join(wrong))
        return found

    def read_back(self):
        cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        found = {"matmul.allow_tf32": cuda.allow_tf32, "cudnn.allow_tf32": cudnn.allow_tf32,
                 "cudnn.benchmark": cudnn.benchmark, "cudnn.benchmark_limit": getattr(cudnn, "benchmark_limit", None),
                 "cudnn.deterministic": cudnn.deterministic, "cudnn.enabled": cudnn.enabled,
                 "autocast": str(AUTOCAST[self.precision]) if self.precision in AUTOCAST else None,
                 "compile_mode": self.compile_mode, "NVIDIA_TF32_OVERRIDE": os.environ.get("NVIDIA_TF32_OVERRIDE")}
        if "frozen" in self.flags:
            from torch._inductor import config

            found["freezing"] = config.freezing
        if hasattr(cuda, "fp32_precision"):  # from 2.9 on
            found["matmul.fp32_precision"] = cuda.fp32_precision
            found["cudnn.conv.fp32_precision"] = cudnn.conv.fp32_precision
        return found

    def callable(self, net):
        """The function that runs the network: the network itself, or the network compiled in one piece."""
        mode = None if self.compile_mode == "default" else self.compile_mode
        return torch.compile(net, fullgraph=True, mode=mode) if self.compile_mode else net

    def context(self):
        """The context manager for forward."""
        if self.precision in AUTOCAST:
            return torch.autocast(self.device.type, dtype=AUTOCAST[self.precision])
        return contextlib.nullcontext()

    def begin_pass(self):
        if self.compiler_graphs:
            torch.compiler.cudagraph_mark_step_begin()
