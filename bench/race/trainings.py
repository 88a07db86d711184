"""The race of trainings by epochs: Lamina, PyTorch eager and compiled, and Keras train the same workload on the same
batches, an epoch at a time, in turns."""

import os
import shutil
import tempfile

import pythons
import race
import rows
import table
import workers

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = ("mnist_mlp", "mnist_cnn", "cifar10_cnn", "imdb_fasttext", "imdb_bilstm", "lstm_text")
VARIANTS = ("eager", "compiled")


class Team:
    """Every side of one workload; the children and their files end with the `with` block. A peer that fails is left out,
    with a line in `failures`; where Lamina fails, the race ends."""

    def __init__(self, workload, peers, arguments):
        self.workload, self.arguments = workload, arguments
        self.workers, self.subjects, self.versions, self.failures = [], [], {}, []
        self.folder = tempfile.mkdtemp(prefix="lamina-race-")
        try:
            config = {"training": workload, "share": arguments.share, "threads": arguments.threads,
                      "epochs": arguments.samples + 1, "files": self.folder}
            ours = self.start("lamina", workers.serve_command(arguments.program, **config))
            self.facts = ours.ask("facts epoch nchw")
            self.add(ours, "lamina", "eigen")
            for name, command in peers:
                full = [*command[:2], workload, self.folder, str(self.facts["batch"]), str(arguments.threads),
                        *command[2:]]
                try:
                    self.add(self.start(name, full), name, name.replace(" ", "-"))
                except workers.WorkerError as error:
                    self.leave_out(name, "start", error)
        except BaseException as fault:
            self.__exit__(type(fault))
            raise

    def start(self, name, command):
        worker = workers.Worker(name, command, self.arguments.threads)
        self.workers.append(worker)
        return worker

    def add(self, worker, name, backend):
        self.versions[name] = worker.versions
        self.subjects.append(workers.Subject(worker, name, backend, "nchw"))

    def leave_out(self, name, stage, error):
        self.failures.append({"net": self.workload, "name": name, "layout": "", "stage": stage, "reason": str(error),
                              "refused": error.refused})

    def race(self):
        """The subjects that ran all rounds, and their samples."""
        def failed(subject, error):
            if subject.peer == "lamina":
                raise error
            self.leave_out(subject.name, "race", error)

        samples = race.race(self.subjects, "epoch", self.arguments.samples, self.arguments.others,
                            self.arguments.retries, failed)
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
    pytorchs = pythons.find(arguments.python, "torch, numpy")
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


def run(arguments, file):
    """Races every workload; the file is written anew after each. Returns the lines of the table."""
    context = rows.context("compare", threads=arguments.threads, peers={})
    found, lines, failures = [], [], []
    peers = peers_of(arguments)
    print(table.HEADER, flush=True)
    for workload in arguments.trainings.split(","):
        with Team(workload, peers, arguments) as team:
            subjects, samples = team.race()
            new = race.judge(workload, "epoch", subjects, samples, by_processor_time=True)
            for line in new:
                table.show(line)
            losses = ", ".join(f"{subject.name} {its[-1]['loss']:.4f}" for subject, its in zip(subjects, samples))
            print(f"{'':18}loss after {arguments.samples + 1} epochs: {losses}", flush=True)
            for line in team.failures:
                table.show_failure(line)
            for subject, its in zip(subjects, samples):
                found += rows_of(team, subject, its)
            lines, failures = lines + new, failures + team.failures
            context["peers"] |= team.versions
            file.write(context, found, comparison=lines, failures=failures)
    print(f"Rows and ratios: {file.path}")
    return lines
