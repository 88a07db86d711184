"""The child that `compare` asks for PyTorch's passes, on the processor or in one variant on a GPU: one line in, one line
of JSON out."""

import gc
import os
import sys
import time
import traceback

import child
import safetensors_file
import torch
import torch_settings
import torch_subject

WARM_UP_PASSES = 5  # of `open`, each one untimed pass and one timed; ours has as many


def facts(variant, threads, found):
    """What runs, and how it is set."""
    answer = {"torch": torch.__version__, "python": sys.version.split()[0], "threads": threads,
              "device": str(variant.device), "variant": variant.name, "precision": variant.precision,
              "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "settings": found}
    if variant.device.type == "cuda":
        properties = torch.cuda.get_device_properties(variant.device)
        answer |= {"gpu": properties.name, "memory_bytes": properties.total_memory,
                   "multiprocessors": properties.multi_processor_count,
                   "capability": f"{properties.major}.{properties.minor}"}
    return answer


def memory():
    """Bytes of tensors and workspaces at most since the last reset, and what the allocator holds of the GPU's."""
    return {"peak_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.memory_reserved()}


def wall(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Server:
    """`versions(threads)`: what is said of PyTorch on the processor, where no device is named."""

    def __init__(self, arguments, versions):
        self.arguments, self.subjects, self.variant, self.on_gpu = arguments, {}, None, False
        if not arguments.device:
            self.facts = versions(arguments.threads)
            if arguments.variant != "eager":
                self.variant = torch_settings.ProcessorVariant(arguments.variant)
                self.facts["settings"] = self.variant.apply()
            return
        self.variant = torch_settings.Variant(arguments.variant, arguments.precision, arguments.device)
        self.on_gpu = self.variant.device.type == "cuda"
        if self.on_gpu:
            torch.cuda.set_device(self.variant.device)
        self.facts = facts(self.variant, arguments.threads, self.variant.apply())

    def subject(self, mode, layout):
        if (mode, layout) not in self.subjects:
            made = torch_subject.made(self.arguments.nets, mode, layout, self.arguments.batch, self.variant)
            if self.arguments.files:
                made.load(safetensors_file.read(os.path.join(self.arguments.files, "weights.safetensors")))
            self.subjects[mode, layout] = made
        return self.subjects[mode, layout]

    def run(self, mode, layout):
        return self.subject(mode, layout).run()

    def numbers(self, mode):
        """Lamina's images, what it makes of them, and whether that is in training mode."""
        file = safetensors_file.read(os.path.join(self.arguments.files, "check.safetensors"))
        trained = mode == "training" and "y_training" in file
        return torch.tensor(file["x"]), file["y_training" if trained else "y"], trained

    def check(self, mode, layout):
        """How far what it computes is from Lamina's, and the seconds of that, with those of compiling."""
        x, y, trained = self.numbers(mode)
        found, subject = [], self.subject(mode, layout)
        seconds = wall(lambda: found.append(subject.computed(x, trained)))
        return {"difference": child.difference(found[0], y), "seconds": seconds}

    def rounding(self, mode, layout):
        """How far PyTorch's own f32 is from its f64 on the same images."""
        x, _, trained = self.numbers(mode)
        return {"rounding": self.subject(mode, layout).rounding(x, trained)}

    def open(self, mode, layout):
        """Makes what `pass` will run and warms it up; what that took, and the peak of memory of one more pass."""
        found, answer = [], {"warm_up_passes": WARM_UP_PASSES}
        answer["made_seconds"] = wall(lambda: found.append(self.subject(mode, layout)))
        walls = [wall(found[0].run) for _ in range(WARM_UP_PASSES)]
        answer |= {"first_pass_seconds": walls[0], "last_warm_up_seconds": walls[-1]}
        if self.variant.compile_mode:
            answer["compile_seconds"] = walls[0] - walls[-1]
            torch_settings.refuse_recompiling()
        if self.on_gpu:
            answer["warm_up_peak_bytes"] = torch.cuda.max_memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            found[0].run()
            answer |= memory()
        else:
            answer["unsupported"] = "PyTorch counts no memory of the processor"
        return answer | {"settings": self.variant.read_back()}

    def drop(self, mode):
        self.subjects = {key: subject for key, subject in self.subjects.items() if key[0] != mode}
        gc.collect()
        if self.variant and self.variant.compile_mode:
            torch._dynamo.reset()
            torch._dynamo.config.error_on_recompile = False
        if self.on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        return {}

    def answer(self, line):
        command, mode, *layout = line.split()
        return getattr(self, {"pass": "run"}.get(command, command))(mode, *layout)


def worker(arguments, versions):
    """`open`, `check`, `rounding` and `pass` with MODE LAYOUT, `drop MODE`; the first that fails ends the child, with the
    reason."""
    say = child.answering()
    try:
        server = Server(arguments, versions)
        say(server.facts)
        for line in sys.stdin:
            say(server.answer(line))
    except torch_settings.Refused as error:
        say({"error": str(error), "refused": True})
        sys.exit(1)
    except Exception as error:  # whatever PyTorch throws is the variant's reason
        traceback.print_exc()
        say({"error": child.reason(error)})
        sys.exit(1)
