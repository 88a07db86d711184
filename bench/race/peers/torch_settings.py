"""How PyTorch is set for a variant: TF32, cudnn.benchmark, autocast, compilation. Everything that is set is read back."""

import contextlib
import os
import warnings

import torch

AUTOCAST = {"f16": torch.float16, "bf16": torch.bfloat16}
MODES = {"compiled": "default", "compiled+graph": "reduce-overhead", "max-autotune": "max-autotune"}


class SettingError(Exception):
    """PyTorch does not have what was set; the message says what."""


class Refused(Exception):
    """This device cannot run the variant; the message says why."""


class Variant:
    """A variant by its name, for instance eager+benchmark, in one precision on one device."""

    def __init__(self, name, precision, device):
        self.name, self.precision, self.device = name, precision, torch.device(device)
        self.how, *parts = name.split("+")
        self.benchmark, self.graph = "benchmark" in parts, "graph" in parts
        self.compile_mode = None if self.how == "eager" else MODES[self.how + "+graph" * self.graph]
        self.compiler_graphs = self.compile_mode in ("reduce-overhead", "max-autotune")  # the compiler's CUDA graphs
        if (self.graph or self.compiler_graphs) and self.device.type != "cuda":
            raise Refused(f"{name} records CUDA graphs, for which PyTorch needs a GPU")

    warms_each_pass = True

    @property
    def captures(self):
        """Whether this program records CUDA graphs of the passes itself."""
        return self.graph and self.how == "eager"

    def apply(self):
        """Sets what holds for the whole process, and answers what is read back.

        TF32 is set by `allow_tf32`. It sets the newer `fp32_precision` as well, whereas code that reads the old names
        after the new ones were set fails, and the compiler of 2.11 is such code.
        """
        tf32 = self.precision == "tf32"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the old names will go
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.backends.cudnn.allow_tf32 = tf32
            torch.backends.cudnn.benchmark = self.benchmark
            found = self.read_back()
        wanted = {"matmul.allow_tf32": tf32, "cudnn.allow_tf32": tf32, "cudnn.benchmark": self.benchmark}
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
        if hasattr(cuda, "fp32_precision"):  # from 2.9 on
            found["matmul.fp32_precision"] = cuda.fp32_precision
            found["cudnn.conv.fp32_precision"] = cudnn.conv.fp32_precision
        return found

    def callable(self, net):
        """The network as it is called: itself, or compiled."""
        return net if self.compile_mode is None else compiled(net, self.compile_mode)

    def context(self):
        """Where the forward runs."""
        if self.precision in AUTOCAST:
            return torch.autocast(self.device.type, dtype=AUTOCAST[self.precision])
        return contextlib.nullcontext()

    def begin_pass(self):
        if self.compiler_graphs:
            torch.compiler.cudagraph_mark_step_begin()


class ProcessorVariant:
    """PyTorch tuned for the processor: compiled or max-autotune, and frozen (the weights are constants to the compiler,
    which packs them; in inference)."""

    device, captures, warms_each_pass = torch.device("cpu"), False, False

    def __init__(self, name):
        self.name = name
        self.how, *parts = name.split("+")
        self.frozen = "frozen" in parts
        self.compile_mode = MODES[self.how]

    def apply(self):
        """Sets what holds for the whole process, and answers what is read back."""
        import torch._inductor.config

        torch._inductor.config.freezing = self.frozen
        return {"compile_mode": self.compile_mode, "freezing": torch._inductor.config.freezing}

    def callable(self, net):
        return compiled(net, self.compile_mode)

    def context(self):
        return contextlib.nullcontext()

    def begin_pass(self):
        pass


def compiled(net, mode):
    """The network compiled in one piece, which fails rather than leave a part out."""
    return torch.compile(net, fullgraph=True, mode=None if mode == "default" else mode)


def refuse_recompiling():
    """From here on a compiled network that would be compiled again, or left to run eagerly, fails."""
    torch._dynamo.config.error_on_recompile = True
