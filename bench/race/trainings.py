"""The race of trainings by epochs: Lamina, PyTorch eager and compiled, and Keras train the same workload on the same
batches, an epoch at a time, in turns. On a GPU: Lamina's backends, each against the faster of PyTorch's two."""

import os
import shutil
import tempfile

import processor_peers
import pythons
import race
import rows
import table
import workers

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = ("mnist_mlp", "mnist_cnn", "cifar10_cnn", "imdb_fasttext", "imdb_bilstm", "lstm_text")
VARIANTS = ("eager", "compiled")


class Team:
    """Every side of one workload; the children and their files end with the `with` block. Who fails is left out, with a
    line in `failures`; on the processor the race ends where Lamina fails."""

    def __init__(self, workload, peers, arguments):
        self.workload, self.arguments = workload, arguments
        self.workers, self.subjects, self.versions, self.failures = [], [], {}, []
        self.folder = tempfile.mkdtemp(prefix="lamina-race-")
        try:
            self.facts = None  # of our first, which also writes the files
            for backend in arguments.backends.split(",") if arguments.on_device else ("eigen",):
                self.trying(f"lamina/{backend}" if arguments.on_device else "lamina", lambda name, backend=backend:
                            self.add_ours(name, backend))
            for name, command in peers:
                self.trying(name, lambda name, command=command: self.add_peer(name, command))
        except BaseException as fault:
            self.__exit__(type(fault))
            raise

    def trying(self, name, add):
        try:
            add(name)
        except workers.WorkerError as error:
            self.failed(name, "start", error)

    def add_ours(self, name, backend):
        given = self.arguments
        config = {"training": self.workload, "share": given.share, "threads": given.threads, "backend": backend}
        if given.on_device:
            config["device"] = given.device_number
        if self.facts is None:
            config |= {"epochs": given.samples + 1, "files": self.folder}
        ours = self.start(name, workers.serve_command(given.program, **config))
        self.facts = ours.ask("facts epoch nchw")
        self.add(ours, "lamina", backend, name)

    def add_peer(self, name, command):
        if self.facts is None:
            raise workers.WorkerError("no side of ours has written the batches", refused=True)
        full = [*command[:2], self.workload, self.folder, str(self.facts["batch"]), str(self.arguments.threads),
                *command[2:]]
        if not self.arguments.on_device:
            passive = processor_peers.PASSIVE if self.arguments.passive else {}
            self.add(self.start(name, full, passive), name, name.replace(" ", "-"))
            return
        full.append("cpu" if self.arguments.device == "rehearsal" else f"cuda:{self.arguments.device_number}")
        self.add(self.start(name, full), name.partition(" ")[0], name.replace(" ", "-"), name)

    def start(self, name, command, environment=()):
        worker = workers.Worker(name, command, self.arguments.threads,
                                self.arguments.patience if self.arguments.on_device else None, environment=environment)
        self.workers.append(worker)
        return worker

    def add(self, worker, peer, backend, name=None):
        """On a GPU a peer's subjects are its variants, of which the faster counts."""
        subject = workers.Subject(worker, peer, backend, "nchw", variant=name.partition(" ")[2] if name else "")
        subject.name = name or peer
        self.versions[subject.name] = worker.versions
        self.subjects.append(subject)

    def failed(self, name, stage, error):
        if name == "lamina":
            raise error
        self.failures.append({"net": self.workload, "name": name, "layout": "", "stage": stage, "reason": str(error),
                              "refused": error.refused})

    def race(self, reading=dict):
        """The subjects that ran all rounds, and their samples."""
        samples = race.race(self.subjects, "epoch", self.arguments.samples, self.arguments.others,
                            self.arguments.retries, lambda subject, error: self.failed(subject.name, "race", error),
                            reading)
        kept = [k for k, its in enumerate(samples) if its is not None]
        return [self.subjects[k] for k in kept], [samples[k] for k in kept]

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        workers.close_all(self.workers, at_once=fault is not None)
        shutil.rmtree(self.folder, ignore_errors=True)


def peers_of(arguments):
    """(name, command without workload and files) of each peer. Throws NoTorch."""
    found = []
    pytorchs = processor_peers.interpreters(arguments, "torch", "torch, numpy")
    for python in pytorchs:
        version = "" if len(pytorchs) == 1 else "-" + pythons.version(python).split("+")[0]
        found += [(f"torch{version} {variant}", [python, os.path.join(HERE, "peers/torch_training.py"), variant])
                  for variant in arguments.training_variants.split(",")]
    if arguments.keras:
        os.environ.setdefault("KERAS_BACKEND", "torch")  # for children, too
        pythons.find([arguments.keras], "keras, numpy")
        found.append(("keras", [arguments.keras, os.path.join(HERE, "peers/keras_training.py")]))
    return found


def rows_of(team, subject, samples):
    key = {"what": "train", "network": team.workload, "backend": subject.backend, "type": "f32", "layout": "nchw",
           "batch": team.facts["batch"], "differs": {"synthetic": f"{team.arguments.share:g}", "no_validation": ""}}
    found = rows.rows_of("epoch", samples, **key)
    for row, sample in zip(found, samples):
        row |= {"loss": sample["loss"], "samples": team.facts["samples"], "label": team.facts["data"],
                "items_per_second": team.facts["samples"] / sample["epoch"]}
    return found


def run(arguments, file, device=None):
    """Races every workload; the rows go to the file after each. Returns the lines of the table. `device`: the GPU."""
    context = rows.context("compare", threads=arguments.threads, passive=arguments.passive, peers={})
    if device is not None:
        context |= {"gpu": device.facts, "no_readings": device.reason}
    found, lines, failures = [], [], []
    peers = peers_of(arguments)
    print(table.HEADER if device is None else table.DEVICE_HEADER, flush=True)
    for workload in arguments.trainings.split(","):
        with Team(workload, peers, arguments) as team:
            subjects, samples = team.race(dict if device is None else device.read)
            new = race.judge(workload, "epoch", subjects, samples, by_processor_time=device is None)
            for line in new:
                (table.show if device is None else table.show_on_device)(line)
            losses = ", ".join(f"{subject.name} {its[-1]['loss']:.4f}" for subject, its in zip(subjects, samples))
            print(f"{'':18}loss after {arguments.samples + 1} epochs: {losses}", flush=True)
            for line in team.failures:
                table.show_failure(line)
            for subject, its in zip(subjects, samples):
                found += rows_of(team, subject, its)
            lines, failures = lines + new, failures + team.failures
            rows.take_versions(context, team.versions)
            file.write(context, found, comparison=lines, failures=failures)
    print(f"Rows and ratios: {file.path}")
    if not lines:
        raise workers.WorkerError("no ratio could be made; the lines above say who was left out, and why")
    return lines
