"""Reads result files and checks them by bench/results.schema.json. For a bad file, reports the wrong field."""

import collections
import functools
import json
import os
import re
import statistics

FORMAT = 2
SCHEMA = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../results.schema.json"))
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
FOUND = ("ledgers", "frontiers", "memories", "answers", "not_planned", "comparisons", "means", "failures", "memory")
LISTS = ("benchmarks", "trainings", *FOUND)
ON_GPU = ("cuda", "cudnn")
PEERS = {"torch": "PyTorch", "keras": "Keras", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
PEERS |= {"onednn": "oneDNN", "ncnn": "ncnn"}


class Damaged(Exception):
    """An error in a file. The message has the path of the wrong field."""


class Run:
    """A file, or one variant of a file whose variants took turns."""

    def __init__(self, file, context, variant=None):
        self.file, self.variant = file, variant or {}
        facts = context | self.variant.get("context", {})
        self.context = {name: str(value) for name, value in facts.items() if not isinstance(value, (list, dict))}
        if isinstance(facts.get("gpu"), dict):  # the GPU of a race
            self.context["gpu_0"] = str(facts["gpu"].get("name", ""))
        self.suffix = ""  # distinguishes runs on one machine

    @property
    def name(self):
        return self.variant.get("variant", "")

    @property
    def is_ours(self):
        return self.variant.get("engine", "lamina") == "lamina"

    @property
    def commit(self):
        return self.context.get("commit", "")[:7]

    def machine(self, backend=""):
        """The GPU of the backend, or the processor and the number of CPUs, which virtual machines differ in."""
        gpu = self.context.get(f"device_{backend}") or self.context.get("gpu_0") if backend in ON_GPU else None
        if gpu:
            return gpu.split(",")[0]
        cpus = f", {self.context['num_cpus']} CPUs" if "num_cpus" in self.context else ""
        return self.context.get("processor", "a machine without a name") + cpus

    def program(self, backend):
        if self.is_ours:
            return f"Lamina {self.name if self.name.startswith(backend) else f'{backend} {self.name}'.strip()}"
        name, _, layout = self.name.partition("@")
        words = name.replace(":", "+").split("+")
        engine = self.variant["engine"]
        version = re.split("[+-]", self.context.get(engine, ""))[0]
        return " ".join(filter(None, [PEERS.get(engine, engine), version, *words[1:], layout]))


class Entry:
    """An entry of one of the lists of a file, and the run of the entry."""

    def __init__(self, run, fields):
        self.run, self.fields, self.key = run, fields, fields.get("key") or {}
        self.differs = {name: str(value) for name, value in self.key.get("differs", {}).items()}

    def __getitem__(self, name):
        return self.fields[name]

    def get(self, name, default=None):
        value = self.fields.get(name)
        return default if value is None else value

    @property
    def rerun(self):
        return self.get("rerun", "")

    @property
    def machine(self):
        return self.run.machine(self.key.get("backend", ""))

    def settings(self, *without):
        """The settings that are not the defaults, as short texts."""
        usual = {"type": "f32", "layout": "nchw"}
        found = [self.key[name] for name, value in usual.items() if self.key.get(name, value) != value]
        return found + [f"{name} {value}".strip() for name, value in self.differs.items() if name not in without]

    @property
    def who(self):
        """The machine and the program, with all settings except the number of threads."""
        name = f"{self.machine}{self.run.suffix}, {self.run.program(self.key.get('backend', ''))}"
        return " ".join([name, *self.settings("threads")])

    @property
    def title(self):
        batch = f", batch {self.key['batch']}" if "batch" in self.key else ""
        return f"{self.key.get('network', '')}{batch}, {self.who}"


class Row(Entry):
    """A row with the times of all its passes, or with the reason why there are no times."""

    def __init__(self, run, fields):
        super().__init__(run, fields)
        self.entries, self.seconds = [], []

    def add(self, fields):
        if "error_message" in fields or fields.get("error_occurred") or fields.get("skipped"):
            return
        unit = UNITS[fields["time_unit"]]
        self.seconds += [unit * time for time in fields.get("real_times") or [fields["real_time"]]]
        self.entries.append(fields)

    @property
    def name(self):
        return self.get("run_name") or self["name"]

    @property
    def failure(self):
        return self.get("error_message") or self.get("skip_message") or "failed"

    @property
    def out_of_memory(self):
        return self.get("failure") == "out_of_memory" or self.failure.startswith("OutOfMemory")

    @functools.cached_property
    def median(self):
        return statistics.median(self.seconds)

    @functools.cached_property
    def quartiles(self):
        """The first and the third quartile of the seconds."""
        if len(self.seconds) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high

    def reading(self, name):
        """The median of a counter over the passes; None: no pass has the counter."""
        values = [fields[name] for fields in self.entries if fields.get(name) is not None]
        return statistics.median(values) if values else None

    def amount(self, rate):
        """The amount of work in a pass: the rate of a counter times the time of the pass."""
        last = self.entries[-1]
        seconds = UNITS[last["time_unit"]] * last["real_time"] if "real_time" in last else self.median
        return last[rate] * seconds if last.get(rate) else None

    @property
    def batch(self):
        return int(self.key["batch"])

    @property
    def size(self):
        """The size of the image and the divisor of the widths, if they differ from the published network."""
        return " ".join(f"{name} {self.differs[name]}" for name in ("image", "width_divisor") if name in self.differs)


class Results:
    """The contents of all files."""

    def __init__(self):
        self.files, self.runs, self.rows, self.trainings, self.prices = {}, [], [], [], []
        for name in FOUND:
            setattr(self, name, [])

    def rows_of(self, what):
        return [row for row in self.rows if row.key["what"] == what]

    def add(self, name, document):
        context = document["context"]
        variants = {its["variant"]: its for its in context.get("variants", [])}
        trainings = {its["name"]: its for its in document.get("trainings", [])}
        runs, rows = {}, {}
        for fields in document.get("benchmarks", []):
            if fields.get("run_type", "iteration") != "iteration":
                continue
            variant = fields.get("variant", "")
            if variant not in runs:
                runs[variant] = Run(name, context, variants.get(variant) or ({"variant": variant} if variant else None))
            row = Row(runs[variant], fields | trainings.get(fields["name"], {}))
            rows.setdefault((variant, row.name), row).add(fields)
        whole = runs.get("") or Run(name, context)
        self.runs += runs.values() or [whole]
        self.rows += rows.values()
        self.trainings += [row for row in rows.values() if row.key["what"] == "train" and row.seconds]
        for kind in FOUND:
            getattr(self, kind).extend(Entry(whole, fields) for fields in document.get(kind, []))

    def name_runs(self):
        """Sets the suffix of runs of one machine: the commit, or the file's name if two files have the same row."""
        commits, files = collections.defaultdict(set), collections.defaultdict(set)
        for run in self.runs:
            commits[run.machine()].add(run.commit)
        for one in [*self.rows, *self.ledgers, *self.frontiers, *self.memories]:
            files[one.run.machine(), one.run.name, json.dumps(one.key, sort_keys=True)].add(one.run.file)
        twice = {file for its in files.values() if len(its) > 1 for file in its}
        for run in self.runs:
            commit = run.commit if run.file not in twice else ""
            if run.file in twice or len(commits[run.machine()]) > 1:
                run.suffix = f" ({commit or run.file.removesuffix('.json')})"


@functools.cache
def validator():
    import jsonschema

    with open(SCHEMA, encoding="utf-8") as file:
        return jsonschema.Draft202012Validator(json.load(file))


def refuse_constant(word):
    raise ValueError(f"{word} is not a number of JSON")


def parse(content):
    """The JSON document in the content of a file. Raises Damaged."""
    import jsonschema

    try:
        text = content.decode("utf-8")
        if not text.strip():
            raise Damaged("empty; was its run interrupted before the first row?")
        document = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"not usable JSON: {error}") from None
    if not isinstance(document, dict) or not any(name in document for name in LISTS):
        raise Damaged(f"not a result file of Lamina: it has none of {', '.join(LISTS)}")
    context = document.get("context")
    if not isinstance(context, dict) or context.get("lamina_format") != FORMAT:
        raise Damaged(f"not of Lamina's format {FORMAT}: of another program, or another version; measure it again")
    error = jsonschema.exceptions.best_match(validator().iter_errors(document))
    if error:
        path = error.json_path.removeprefix("$.") if error.absolute_path else "the document"
        raise Damaged(f"{path}: {error.message[:160]}")
    return document


def names_of(paths):
    """The names that the page shows for files. If two are equal, the folder's name comes first: "before-1.json"."""
    paths = [os.path.abspath(path) for path in paths]
    count = collections.Counter(map(os.path.basename, dict.fromkeys(paths)))
    found = {}
    for path in paths:
        folder, name = os.path.split(path)
        name = name if count[name] < 2 else f"{os.path.basename(folder)}-{name}"
        found[path] = path if name in found.values() and path not in found else name
    return [found[path] for path in paths]


def read(paths):
    """(Results of the usable files, list of problems of the other files)."""
    model, problems = Results(), []
    for path, name in zip(paths, names_of(paths)):
        try:
            with open(path, "rb") as file:
                content = file.read()
            same = [known for known, its in model.files.items() if its == content]
            if same:
                raise Damaged(f"the same as {same[0]}, which is in the page")
            document = parse(content)
        except OSError as error:
            problems.append({"file": path, "what": f"cannot be read: {error.strerror}"})
        except Damaged as error:
            problems.append({"file": path, "what": str(error)})
        else:
            model.files[name] = content
            model.add(name, document)
    model.name_runs()
    return model, problems
