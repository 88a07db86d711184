"""A race on any device and of any kind. Each variant has its own worker. Passes run in the order A B C, C B A, ..."""

import collections
import dataclasses
import os
import shlex
import statistics
import sys
import time

import networks
import results
import variants
from worker import Worker, WorkerError, close_all

QUIET_SECONDS = 60  # after this time without such a line, a line says what is done next
SETTLE_SECONDS = 0.05  # wait before a pass: threads of another worker still spin for a moment
FOREIGN_CORES = {"cpu": 0.1, "rehearsal": 1.0, "cuda": 1.0}  # cores that other processes may use during a pass
AGREEMENT = {"inference": 1e-4, "training": 1e-3}  # largest difference from our f32 logits, as a share
COARSE_AGREEMENT = {"tf32": 1e-2, "f16": 1e-2, "bf16": 8e-2}  # 20 times the unit roundoff of a product's factors
DEEP_NETWORKS = 5  # largest factor by which a bound grows if rounding alone exceeds it
LAYER_PASSES = ("forward", "backward_params", "backward_data")
MEBIBYTE = 2**20


def in_turn(items, round_):
    """The items in the order of a round. Every second round is reversed, so that drift affects all items alike."""
    return list(items) if round_ % 2 == 0 else list(reversed(items))


@dataclasses.dataclass(frozen=True)
class Case:
    """A case of a race: a network in one mode, one pass of a convolution, or the epochs of a training."""
    network: str
    key: dict          # key of its rows, without the part
    request: str       # request to a worker: a mode, a pass or "epoch"
    convolution: str = ""
    facts: dict = dataclasses.field(default_factory=dict)  # further facts of its rows

    @property
    def title(self):
        return f"{self.network}{'/' + self.key['layer'] if self.convolution else ''} {self.request}"


class Document:
    """The results of a race so far, and its file."""

    def __init__(self, file, options, gpu):
        self.file, self.options, self.gpu = file, options, gpu
        self.context = results.context(threads=options.threads)
        if gpu is not None:  # a worker of Lamina that reads the GPU's state
            described = gpu.greeting["device"]
            self.context["gpu"] = {"name": described.partition(",")[0], "description": described}
        self.rows, self.memory, self.failures, self.no_memory = [], [], [], False

    def add_variant(self, variant, greeting):
        """Adds a worker's greeting to the document, once for each variant."""
        if any(entry["variant"] == variant.name for entry in self.context["variants"]):
            return
        self.context["variants"].append({
            "variant": variant.name, "engine": "lamina" if variant.ours else variant.engine, "backend": variant.engine,
            "layout": variant.layout, "precision": variant.precision,
            "context": greeting | {"environment": variant.environment}})
        if variant.ours and "commit" in greeting:
            self.context["commit"] = greeting["commit"]

    def add_failure(self, network, variant, stage, error):
        reason = str(error).removeprefix(f"{variant}: ")
        self.failures.append({"network": network, "variant": variant, "stage": stage, "reason": reason,
                              "refused": error.refused})
        print(f"{network}: {variant} {'is left out' if error.refused else 'FAILED'} ({stage}): {reason}", flush=True)

    def write(self):
        self.file.write({"context": self.context, "benchmarks": self.rows, "memory": self.memory,
                         "failures": self.failures})


class Runner:
    """The workers of all variants for one network, for one training, or for all layers."""
    # The workers end with the `with` block. A worker that fails is left out from then on. A worker that refuses a case
    # is left out of this case. Both get an entry in the document.

    def __init__(self, network, raced, options, document, folder):
        """`folder`: folder of the network's files. If it is empty, Lamina writes them."""
        self.network, self.options, self.document, self.folder = network, options, document, folder
        self.name = networks.name_of(network)
        self.what, self.batch, self.facts = options.what, options.batch, {}
        self.workers, self.told = {}, time.monotonic()
        try:
            if self.what == "trainings" or self.what == "networks" and not os.listdir(folder):
                self.write_numbers()
            self.start(raced)
        except BaseException as fault:
            self.__exit__(type(fault))
            raise

    def write_numbers(self):
        """Lets Lamina write the files that peers read: a network with its results, or the batches of a training."""
        given = self.options
        flags = {"threads": given.threads, "files": self.folder}
        if self.what == "networks":
            onnx = any(variants.ENGINES[one.engine].modes == ("inference",) for one in given.peers_variants)
            command = variants.serve_command(given.program, self.network, batch=self.batch, write_onnx=onnx, **flags)
        else:
            command = variants.serve_command(given.program, training=self.network, share=given.share,
                                             epochs=given.rounds + 1, **flags)
        with Worker("lamina", command, given.threads, given.patience) as ours:
            if self.what == "trainings":
                self.facts = ours.ask("facts epoch nchw")
                self.batch = self.facts["batch"]

    def new_worker(self, variant):
        command = variant.command(self.what, self.network, self.batch, self.options,
                                  self.folder if self.what != "layers" else None)
        return Worker(variant.name, command, self.options.threads, self.options.patience, variant.environment)

    def start(self, raced):
        """Starts all workers at once, then reads their greetings."""
        for variant in raced:
            self.attempt(variant, "start", lambda: self.workers.update({variant: self.new_worker(variant)}))
        for variant, worker in list(self.workers.items()):
            if not self.attempt(variant, "start", lambda: self.document.add_variant(variant, worker.greet().greeting)):
                self.leave(variant)

    def attempt(self, variant, stage, work):
        """Does the work, and returns whether it succeeded. If not, notes the reason, and ends a worker that failed."""
        self.tell(f"{variant.name}: {stage}")
        try:
            work()
            return True
        except WorkerError as error:
            if not (error.refused and variant.layout == "winograd"):  # oneDNN has no Winograd for most windows
                self.document.add_failure(self.name, variant.name, stage, error)
            if not error.refused:
                self.leave(variant)
            return False

    def tell(self, text):
        if time.monotonic() - self.told > QUIET_SECONDS:
            self.told = time.monotonic()
            print(f"{self.name}: {text}", file=sys.stderr, flush=True)

    def leave(self, variant):
        if worker := self.workers.pop(variant, None):
            close_all([worker], at_once=True)

    def cases(self):
        """The cases of the race. Raises WorkerError in a race of layers without our worker, or without convolutions."""
        first = next((variant for variant in self.workers if variant.ours), None)
        key = {"network": self.name, "type": next(iter(self.workers)).precision if self.workers else "f32",
               "batch": self.batch}
        if first is not None:
            key |= {"backend": first.engine, "layout": first.layout}
        if self.what == "trainings":
            differs = {"synthetic": f"{self.options.share:g}", "no_validation": ""}
            facts = {"samples": self.facts["samples"], "label": self.facts["data"]}
            return [Case(self.network, {"what": "train"} | key | {"differs": differs}, "epoch", facts=facts)]
        if self.what == "networks":
            differs = {"differs": dict.fromkeys(first.flags, "")} if first is not None and first.flags else {}
            return [Case(self.network, {"what": "net"} | key | differs, mode) for mode in self.options.modes]
        if first is None:
            raise WorkerError("no engine of ours lists the convolutions")
        return self.layer_cases(first, key)

    def layer_cases(self, first, key):
        """A case for each pass of each distinct convolution. `counts`: {network: how often it has the convolution}."""
        # The name of a convolution is its name in the first network that has it.
        found = {}
        for net in self.options.networks:
            listed = self.workers[first].ask(f"list {net} {self.batch}")["convolutions"]
            if not listed:
                raise WorkerError(f"{net} has no convolutions, and --what layers races nothing else: leave it out")
            for entry in listed:
                its = found.setdefault(entry["conv"], [
                    Case(net, {"what": "layer"} | key | {"network": net, "layer": entry["name"]}, what, entry["conv"],
                         {"counts": collections.Counter(), "convolution": entry["conv"]}) for what in LAYER_PASSES])
                for case in its:
                    if case.request != "backward_data" or entry["backward_data"]:
                        case.facts["counts"][net] += 1
        return [case for its in found.values() for case in its if case.facts["counts"]]

    def run(self, case):
        """Races a case: checks, memory, rounds. Adds the results to the document."""
        raced = [variant for variant in self.workers if case.request not in variants.MODES
                 or case.request in variant.modes]
        facts = {variant: {} for variant in raced}
        steps = [("check", self.check), ("open", self.open)]
        if self.what == "networks" and self.options.memory != "no":
            steps.insert(1 if self.options.device == "cpu" else 2, ("memory", self.measure_memory))
        for stage, step in steps:
            if stage == "open" and self.options.memory == "only" and self.options.device == "cpu":
                continue
            for variant in list(facts):
                if not self.attempt(variant, f"{stage} {case.request}", lambda: step(variant, case, facts[variant])):
                    del facts[variant]
        if self.options.memory != "only":
            self.keep(case, self.rounds(case, list(facts)), facts)
        for variant in list(self.workers):
            self.attempt(variant, f"drop {case.request}", lambda: self.workers[variant].ask(f"drop {case.request}"))
        self.document.write()

    def ask(self, variant, case, command):
        return self.workers[variant].ask(f"{command} {request_of(variant, case)}")

    def check(self, variant, case, facts):
        """Compares a peer's numbers with our numbers in f32."""
        # Rounding errors grow with the depth of a network. So in training, in coarse precisions, and on a GPU, which
        # has other algorithms, the bound may grow: to twice the difference between PyTorch's eager output in the same
        # precision and its output in f64.
        if self.what != "networks" or variant.ours:
            return
        found = self.ask(variant, case, "check")
        bound = COARSE_AGREEMENT.get(variant.precision, AGREEMENT[case.request])
        deep = self.options.device == "cuda" or bound > AGREEMENT["inference"]
        if deep and bound < found["difference"] < float("inf"):
            found |= self.ask(variant, case, "rounding")
            bound = min(max(bound, 2 * found["rounding"]), DEEP_NETWORKS * bound)
        if not found["difference"] <= bound:
            raise WorkerError(f"its numbers are {found['difference']:.1e} of the largest away from Lamina's, more than "
                              f"{bound:.1e}: its time would be of another function")
        facts["check"] = found | {"bound": bound}

    def open(self, variant, case, facts):
        """Lets a worker make the network or layer, and warm it up. Notes the implementation for the rows."""
        facts["opened"] = self.ask(variant, case, "open")
        if "implementation" in facts["opened"]:
            facts["algorithm"] = facts["opened"]["implementation"]

    def measure_memory(self, variant, case, facts):
        """Adds a peak of memory. On a GPU: the peak of PyTorch's allocator, or the memory of Lamina's plan."""
        # On the processor: the growth of a separate process during two passes. In the worker of the race, memory that
        # another layout left would be counted, or used again.
        entry = {"net": self.name, "mode": case.request, "variant": variant.name}
        if self.options.device == "cpu":
            with self.new_worker(variant) as worker:
                line = request_of(variant, case)
                peak = worker.memory_growth(lambda: [worker.ask(f"pass {line}") for _ in range(2)])
                self.document.no_memory |= peak is None
                plan = worker.ask(f"facts {line}")["plan_bytes"] if variant.ours else None
        else:
            plan = facts["opened"].get("plan_bytes")
            peak = facts["opened"].get("peak_bytes", plan)
        if peak is not None:
            entry |= {"peak_MiB": peak / MEBIBYTE} | ({"plan_MiB": plan / MEBIBYTE} if plan else {})
            self.document.memory.append(entry)

    def rounds(self, case, raced):
        """{variant: its samples} of variants that ran all rounds. A sample has the GPU's state after its round."""
        samples = {variant: [] for variant in raced}
        for i in range(self.options.rounds):
            self.tell(f"round {i + 1} of {self.options.rounds}, {case.request}")
            for variant in in_turn(raced, i):
                if variant in samples and not self.attempt(
                        variant, f"race {case.request}",
                        lambda: samples[variant].append(self.quiet_pass(variant, case))):
                    del samples[variant]
            if self.document.gpu is not None:
                reading = self.document.gpu.ask("state")
                for its in samples.values():
                    its[-1]["gpu"] = reading
        return samples

    def quiet_pass(self, variant, case):
        """Runs a pass, and repeats it up to `retries` times if other processes took the cores. The last run counts."""
        for left in range(self.options.retries, -1, -1):
            time.sleep(SETTLE_SECONDS)
            sample = self.workers[variant].timed_pass(request_of(variant, case))
            sample["disturbed"] = sample["others_cores"] > FOREIGN_CORES[self.options.device]
            if not sample["disturbed"] or left == 0:
                return sample
            print(f"{case.title}: {variant.name} runs a pass again, as other programs took {sample['others_cores']:.1f}"
                  " cores", file=sys.stderr, flush=True)

    def keep(self, case, samples, facts):
        """Adds the rows of all samples to the document, and prints a line with the medians."""
        medians = []
        for variant, its in samples.items():
            more = case.facts | facts[variant] | {"disturbed": sum(sample["disturbed"] for sample in its),
                                                  "rerun": self.rerun(case, samples)}
            more |= {"loss": its[-1]["loss"]} if "loss" in its[-1] else {}
            more |= {"readings": [sample["gpu"] for sample in its]} if "gpu" in its[-1] else {}
            self.document.rows += results.rows_of(case.request, case.key, variant.name, its, **more)
            median = statistics.median(self.document.rows[-1]["real_times"])
            loss = f" (loss {its[-1]['loss']:.4f})" if "loss" in its[-1] else ""
            medians.append(f"{variant.name} {median:.3f} ms{loss}")
        if medians:
            print(f"{case.title}: {', '.join(medians)}", flush=True)

    def rerun(self, case, samples):
        """The command that races the case again."""
        given = self.options
        ours = [variant.name for variant in samples if variant in given.ours_variants]
        peers = dict.fromkeys(variant.word for variant in samples if variant not in given.ours_variants)
        flags = {"what": self.what, "device": given.device_word, "ours": ",".join(ours) or given.ours,
                 "peers": ",".join(peers) or given.peers, "threads": given.threads, "rounds": given.rounds}
        flags |= {"modes": case.request} if self.what == "networks" else {}
        flags |= {"share": f"{given.share:g}"} if self.what == "trainings" else {"batch": self.batch}
        words = [word for flag, value in flags.items() for word in (f"--{flag}", str(value))]
        words += [word for python in given.python for word in ("--python", python)]
        return shlex.join(["bench/race/race", case.network, *words])

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        close_all(list(self.workers.values()), at_once=fault is not None)


def request_of(variant, case):
    """The words after the command of a request: mode or pass, the variant's layout, a convolution's numbers."""
    return f"{case.request} {variant.layout} {case.convolution}".strip()
