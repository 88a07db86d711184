"""The sides of a race of networks: the children that are started, and who of them is in it."""

import contextlib
import os
import time

import contenders
import pythons
import race
import workers

HERE = os.path.dirname(os.path.abspath(__file__))


def peer_name(version, taken, alone):
    """What a PyTorch is called in rows and tables: its version where there are several, with a number where two are
    equal."""
    if alone:
        return "torch"
    name = f"torch-{version.split('+')[0]}"
    return name if name not in taken else next(other for other in (f"{name}#{i}" for i in range(2, 1000))
                                               if other not in taken)


class Team:
    """Every side of one network on the processor; its children end with the `with` block. One that fails ends the
    race."""

    def __init__(self, net, interpreters, arguments):
        self.net, self.arguments = net, arguments
        self.workers, self.subjects, self.versions = [], [], {}
        self.failures, self.opened = [], []  # both only of races on a GPU
        try:
            ours = workers.Worker("lamina", our_command(net, arguments, measure=arguments.measure), arguments.threads)
            self.workers.append(ours)
            self.versions["lamina"] = ours.versions
            self.subjects += [workers.Subject(ours, "lamina", "eigen", layout)
                              for layout in arguments.our_layouts.split(",")]
            for python in interpreters:
                theirs = workers.Worker(python, torch_command(python, net, arguments), arguments.threads)
                self.workers.append(theirs)
                peer = peer_name(theirs.versions["torch"], self.versions, alone=len(interpreters) == 1)
                self.versions[peer] = theirs.versions
                self.subjects += [workers.Subject(theirs, peer, peer, layout)
                                  for layout in arguments.layouts.split(",")]
        except BaseException as fault:
            self.__exit__(type(fault))
            raise

    def peaks(self, mode):
        """Each subject's peak of memory."""
        return [subject.memory(mode) for subject in self.subjects]

    def race(self, mode):
        """Each subject's samples."""
        return race.race(self.subjects, mode, self.arguments.samples, self.arguments.others, self.arguments.retries)

    def drop(self, mode):
        """Gives back the memory of a mode."""
        for worker in self.workers:
            worker.ask(f"drop {mode}")

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        workers.close_all(self.workers, at_once=fault is not None)


def torch_command(python, net, arguments, contender=None):
    """The command of a child with torch."""
    command = [python, os.path.join(HERE, "peers/torch_rows.py"), "--worker", "--nets", net, "--batch",
               str(arguments.batch), "--threads", str(arguments.threads)]
    if contender is not None:
        device = "cpu" if arguments.device == "rehearsal" else f"cuda:{arguments.device_number}"
        command += ["--device", device, "--variant", contender.variant, "--precision", contender.precision]
    return command


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
        ours, reason = contenders.ours(arguments, precision)
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

    def note(self, name, layout, stage, reason, refused):
        reason = str(reason).removeprefix(f"{name} {layout}").removeprefix(": ").strip()
        self.failures.append({"net": self.net, "precision": self.precision, "name": name, "layout": layout,
                              "stage": stage, "reason": reason, "refused": refused})

    def trying(self, name, layout, stage, work):
        """Whether it went well; else there is a line with the reason."""
        try:
            work()
            return True
        except workers.WorkerError as error:
            self.note(name, layout, stage, error, error.refused)
            return False

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

    def leave(self, subject):
        """Ends the child of one that failed."""
        self.subjects.remove(subject)
        self.workers.remove(subject.worker)
        subject.worker.close(at_once=True)

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
        def failed(subject, error):
            self.note(subject.name, subject.layout, f"race {mode}", error, error.refused)
            gone.append(subject)

        gone, raced = [], list(self.subjects)
        samples = race.race(raced, mode, self.arguments.samples, self.arguments.others, self.arguments.retries, failed,
                            self.device.read)
        for subject in gone:
            self.leave(subject)
        return [its for its in samples if its is not None]

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


def torch_peers(interpreters):
    """{name: interpreter} of several PyTorchs, without a child of any."""
    if len(interpreters) == 1:
        return {"torch": interpreters[0]}
    found = {}
    for python in interpreters:
        found[peer_name(pythons.version(python), found, alone=False)] = python
    return found
