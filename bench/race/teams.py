"""The sides of a race of networks: the children that are started, and who of them is in it."""

import contextlib
import os
import shutil
import tempfile
import time

import builds
import contenders
import processor_peers
import race
import workers

HERE = os.path.dirname(os.path.abspath(__file__))
AGREEMENT = {"inference": 1e-4, "training": 1e-3}  # of f32 logits, of the largest; of bf16 they are some 1e-2 apart
DEEP_AGREEMENT = 5e-3  # at most, where rounding alone is above the bound of training


class Team:
    """Every side of one network on the processor; its children end with the `with` block. A peer that fails, or that
    computes something else, is left out, with a line in `failures`; where Lamina fails, the race ends."""

    def __init__(self, net, peers, arguments):
        self.net, self.precision, self.arguments = net, "f32", arguments
        self.our_names = {"lamina"}
        self.workers, self.subjects, self.everyone, self.versions = [], [], [], {}
        self.failures, self.opened, self.checks = [], [], []  # `opened`: only of races on a GPU
        self.folders = {}  # of each build's numbers, by its child
        self.folder = tempfile.mkdtemp(prefix="lamina-race-")
        try:
            onnx = any(peer.program in processor_peers.RUNTIMES for peer in peers)
            with self.start("lamina", our_command(net, arguments, files=self.folder, onnx=onnx)):
                pass
            ours = self.start("lamina", our_command(net, arguments, measure=arguments.measure))
            self.workers.append(ours)
            self.versions["lamina"] = ours.versions
            self.everyone = [(("training", "inference"), workers.Subject(ours, "lamina", "eigen", layout))
                             for layout in arguments.our_layouts.split(",")]
            for peer in peers:
                self.trying(peer.name, "", "start", lambda peer=peer: self.add(peer))
        except BaseException as fault:
            self.__exit__(type(fault))
            raise

    def start(self, name, command, environment=()):
        passive = processor_peers.PASSIVE if self.arguments.passive else {}
        return workers.Worker(name, command, self.arguments.threads, environment=passive | dict(environment))

    def add(self, peer):
        folder = self.files_of(peer) if peer.program == "build" else None
        worker = self.start(peer.name, peer.command(self.net, self.arguments, self.folder), peer.environment)
        self.workers.append(worker)
        self.versions[peer.name] = worker.versions | {"environment": peer.environment}
        if folder is not None:
            self.folders[worker] = folder
        self.everyone += [(peer.modes, workers.Subject(worker, peer.name, peer.backend, layout, variant=peer.variant))
                          for layout in peer.layouts]

    def files_of(self, build):
        """The folder to which a build has written its numbers."""
        folder = tempfile.mkdtemp(prefix="build-", dir=self.folder)
        with self.start(build.name, workers.serve_command(build.python, net=self.net, batch=self.arguments.batch,
                                                          threads=self.arguments.threads, files=folder)):
            return folder

    def note(self, name, layout, stage, reason, refused):
        reason = str(reason).removeprefix(f"{name} {layout}".strip()).removeprefix(": ").strip()
        self.failures.append({"net": self.net, "precision": self.precision, "name": name, "ours": name in self.our_names,
                              "layout": layout, "stage": stage, "reason": reason, "refused": refused})

    def trying(self, name, layout, stage, work):
        """Whether it went well; else there is a line with the reason."""
        try:
            work()
            return True
        except workers.WorkerError as error:
            if name in self.our_names and not self.arguments.on_device:
                raise
            self.note(name, layout, stage, error, error.refused)
            return False

    def leave(self, subject):
        """Ends the child of one that failed, and with it its other layouts."""
        self.everyone = [one for one in self.everyone if one[1].worker is not subject.worker]
        self.subjects = [one for one in self.subjects if one.worker is not subject.worker]
        self.workers.remove(subject.worker)
        subject.worker.close(at_once=True)

    def begin(self, mode):
        """Chooses the sides that race in a mode, and compares the numbers of every peer with Lamina's."""
        self.subjects = [subject for modes, subject in self.everyone if mode in modes]
        for subject in [one for one in self.subjects if one.peer != "lamina"]:
            if subject in self.subjects and not self.trying(subject.name, subject.layout, f"check {mode}",
                                                            lambda subject=subject: self.check(subject, mode)):
                self.leave(subject)

    def check(self, subject, mode):
        """Compares a peer's numbers with ours. Two f32 programs agree no better with each other than each does with the
        exact result, which in training they do less the deeper a network is. So there twice the distance of PyTorch's
        eager f32 from its f64 is the bound where that is more."""
        bound, folder = AGREEMENT[mode], self.folders.get(subject.worker)
        answer = ({"difference": builds.difference(self.folder, folder, mode)} if folder is not None else
                  subject.worker.ask(subject.request(mode, "check")))
        if mode == "training" and folder is None and bound < answer["difference"] < float("inf"):
            answer |= subject.worker.ask(subject.request(mode, "rounding"))
            bound = min(max(bound, 2 * answer["rounding"]), DEEP_AGREEMENT)
        self.checks.append({"net": self.net, "mode": mode, "name": subject.name, "layout": subject.layout,
                            "bound": bound} | answer)
        if not answer["difference"] <= bound:
            raise workers.WorkerError(f"its numbers are {answer['difference']:.1e} of the largest away from Lamina's, "
                                      f"more than {bound:.1e}: its time would be of another function")

    def peaks(self, mode):
        """Each subject's peak of memory."""
        found = {}
        for subject in list(self.subjects):
            if subject in self.subjects and not self.trying(
                    subject.name, subject.layout, f"memory {mode}",
                    lambda subject=subject: found.update({subject: subject.memory(mode)})):
                self.leave(subject)
        return [found[subject] for subject in self.subjects]

    def race(self, mode):
        """The samples of each subject, which are those that ran all rounds."""
        return self.race_with(mode)

    def race_with(self, mode, **more):
        def failed(subject, error):
            if subject.peer == "lamina" and not self.arguments.on_device:
                raise error
            self.note(subject.name, subject.layout, f"race {mode}", error, error.refused)
            gone.append(subject)

        gone, raced = [], list(self.subjects)
        samples = race.race(raced, mode, self.arguments.samples, self.arguments.others, self.arguments.retries, failed,
                            **more)
        for subject in gone:
            if subject in self.subjects:
                self.leave(subject)
        return [its for subject, its in zip(raced, samples) if subject in self.subjects]

    def drop(self, mode):
        """Gives back the memory of a mode."""
        for worker in self.workers:
            worker.ask(f"drop {mode}")

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        workers.close_all(self.workers, at_once=fault is not None)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def torch_command(python, net, arguments, contender):
    """The command of a child with torch on a GPU."""
    device = "cpu" if arguments.device == "rehearsal" else f"cuda:{arguments.device_number}"
    return [python, os.path.join(HERE, "peers/torch_rows.py"), "--worker", "--nets", net, "--batch",
            str(arguments.batch), "--threads", str(arguments.threads), "--device", device, "--variant",
            contender.variant, "--precision", contender.precision]


def our_command(net, arguments, **more):
    """The command of a child of ours."""
    return workers.serve_command(arguments.program, net=net, batch=arguments.batch, threads=arguments.threads, **more)


class DeviceTeam(Team):
    """Every side of one network in one precision on a GPU, each variant and layout in a separate child: settings,
    caches of algorithms and faults of the one do not reach the others. Who fails, or refuses what it cannot do, is left
    out, with a line in `failures`. `device`: the Device that all teams of a run share."""

    def __init__(self, net, precision, peers, arguments, device):
        self.net, self.precision, self.arguments, self.device = net, precision, arguments, device
        self.workers, self.subjects, self.versions, self.failures, self.opened = [], [], {}, [], []
        self.checks, self.everyone, self.folder = [], [], None  # only of races on the processor
        ours, reason = contenders.ours(arguments, precision)
        self.our_names = {contender.name for contender in ours} | {f"lamina/{precision}"}
        if reason:
            self.note(f"lamina/{precision}", "", "start", reason, refused=True)
        listed = [(contender, our_command(net, arguments, device=arguments.device_number, **contender.config()))
                  for contender in ours]
        for peer, python in peers.items():
            listed += [(contender, torch_command(python, net, arguments, contender))
                       for contender in contenders.theirs(arguments, precision, peer)]
        try:
            started = []
            for contender, command in listed:
                self.trying(contender.name, contender.layout, "start",
                            lambda contender=contender, command=command: started.append(self.start(contender, command)))
            for subject in started:
                self.greet(subject)
        except BaseException as fault:
            self.__exit__(type(fault))
            raise

    def start(self, contender, command):
        child = workers.Worker(f"{contender.name} {contender.layout}", command, self.arguments.threads,
                               self.arguments.patience, greet=False)
        self.workers.append(child)
        return workers.Subject(child, contender.peer, contender.backend, contender.layout, contender)

    def greet(self, subject):
        if self.trying(subject.name, subject.layout, "start", subject.worker.greet):
            self.subjects.append(subject)
            self.versions[subject.name] = subject.worker.versions
        else:
            self.workers.remove(subject.worker)

    def begin(self, mode):
        """All race in every mode."""

    def open(self, mode, subject):
        """Has a child make the network and warm it up; keeps what it says of that."""
        compiles = subject.contender.compiles
        if compiles and self.device.compile_seconds <= 0:
            raise workers.WorkerError(f"the {self.arguments.compile_seconds:g} s for compiling (--compile_seconds) are "
                                      "spent", refused=True)
        start = time.monotonic()
        try:
            answer = subject.worker.ask(subject.request(mode, "open"))
        finally:
            self.device.compile_seconds -= compiles * (time.monotonic() - start)
        self.opened.append({"net": self.net, "mode": mode, "name": subject.name, "precision": subject.precision,
                            "layout": subject.layout, **answer})
        return answer

    def peaks(self, mode):
        """Opens all, and answers their peaks of memory: what PyTorch's allocator counted, what Lamina's plan holds."""
        found = {}
        for subject in list(self.subjects):
            if not self.trying(subject.name, subject.layout, f"open {mode}",
                               lambda subject=subject: found.update({subject: self.open(mode, subject)})):
                self.leave(subject)
        return [{"peak_bytes": answer["plan_bytes"]} | answer if "plan_bytes" in answer else answer
                for answer in found.values()]

    def race(self, mode):
        return self.race_with(mode, reading=self.device.read)

    def drop(self, mode):
        for subject in list(self.subjects):
            if not self.trying(subject.name, subject.layout, f"drop {mode}",
                               lambda subject=subject: subject.worker.ask(f"drop {mode}")):
                self.leave(subject)


class Device(contextlib.ExitStack):
    """The GPU of a run: what it is, its readings, which a child of ours takes, and the seconds left for compiling. Throws
    WorkerError, `refused` where there is no such GPU."""

    def __init__(self, arguments):
        super().__init__()
        self.compile_seconds, self.child = arguments.compile_seconds, None
        self.facts, self.reason = {"name": "rehearsal"}, "a rehearsal has no GPU"
        if arguments.device != "rehearsal":
            self.child = self.enter_context(workers.Worker("the GPU", workers.serve_command(
                arguments.program, backend="cuda", device=arguments.device_number, threads=1), 1, arguments.patience))
            described = self.child.versions["device"]
            self.facts = {"name": described.partition(",")[0], "description": described}
            self.reason = self.read().get("missing")

    def read(self):
        """The reading of this moment, in the names of lamina_bench."""
        return {} if self.child is None else self.child.ask("state")
