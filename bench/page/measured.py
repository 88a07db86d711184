"""What result files say, in the form that sections read: times with all their samples, ledgers, frontiers, memories and
trainings, each with where it comes from."""

import dataclasses

import intervals
from page import again
from page.text import number

OURS = again.OURS
ON_GPU = ("cuda", "cudnn")
IDLE = "idle_power_w_"  # and the backend: the fact of its device
PEERS = {"torch": "PyTorch", "keras": "Keras", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


@dataclasses.dataclass(eq=False)
class Origin:
    """A run: a file, or one of the races or versions in it."""

    source: object
    context: dict
    variant: str = ""
    suffix: str = ""  # distinguishes two runs on one machine, by their files
    in_turns: object = None  # what its programs took turns in, a file or a race: samples of one index are a round

    def machine(self, backend=""):
        """Of the backend: the GPU, or the processor."""
        if backend in ON_GPU:
            named = self.context.get(f"device_{backend}") or self.context.get("gpu_0") or ""
            if named:
                return named.split(",")[0]
        return self.context.get("processor", "a machine without a name")

    def idle_watts(self, backend):
        return number(self.context.get(IDLE + backend, ""))

    @property
    def threads(self):
        return self.context.get("threads", "")

    @property
    def commit(self):
        return self.context.get("commit", "")[:7]


@dataclasses.dataclass(eq=False)
class Timing:
    """A row with all its samples, or with the reason why there are none."""

    origin: Origin
    name: str
    key: dict
    seconds: list = dataclasses.field(default_factory=list)
    joules: list = dataclasses.field(default_factory=list)
    readings: dict = dataclasses.field(default_factory=dict)  # of each counter, pass by pass
    counters: dict = dataclasses.field(default_factory=dict)  # their medians
    others_share: float = 0  # of all processors' time, by other programs meanwhile
    algorithm: str = ""
    failure: str = ""  # why there is no time
    out_of_memory: bool = False
    predicted: bool = False  # out of memory by prediction: it was not run
    bytes_wanted: float = 0
    grade: str = ""
    reasons: list = dataclasses.field(default_factory=list)

    @property
    def interval(self):
        return intervals.of_median(self.seconds)

    @property
    def per_image(self):
        return intervals.Interval(*(end / self.key["batch"] for end in self.interval))

    @property
    def joules_per_image(self):
        return intervals.of_median(self.joules).middle / self.key["batch"] if self.joules else None

    @property
    def who(self):
        """Machine and program, with what differs from the default but batch and threads."""
        return " ".join([who(self.origin, self.key), *differences(self.key, without=("threads",))])

    @property
    def size(self):
        """What is smaller or larger than published: the image, or the widths."""
        differs = self.key.get("differs", {})
        return " ".join(f"{what} {differs[what]}" for what in ("image", "width_divisor") if what in differs)

    @property
    def is_lamina(self):
        return self.key["backend"] in OURS

    @property
    def command(self):
        return again.row_command(self.key, len(self.seconds), self.origin.context)


@dataclasses.dataclass(eq=False)
class Found:
    """A ledger, frontier, memory or training: its fields as they are, with where it comes from."""

    origin: Origin
    fields: object
    key: dict

    @property
    def who(self):
        return " ".join([who(self.origin, self.key), *differences(self.key)])

    @property
    def title(self):
        batch = f", batch {self.key['batch']}" if "batch" in self.key else ""
        return f"{self.key['network']}{batch}, {self.who}"

    def __getitem__(self, name):
        return self.fields[name]

    def get(self, name, default=None):
        return self.fields.get(name, default)


def program(backend):
    """Whose code a backend is."""
    if backend in OURS:
        return f"Lamina {backend}"
    name, _, version = backend.partition("-")
    return f"{PEERS.get(name, name)} {version}".strip()


def who(origin, key):
    return f"{origin.machine(key['backend'])}{origin.suffix}, {program(key['backend'])}"


def differences(key, without=()):
    """What differs from the defaults, as short texts."""
    found = [key[field] for field, usual in (("type", "f32"), ("layout", "nchw")) if key.get(field, usual) != usual]
    return found + [f"{what} {value}".strip() for what, value in key.get("differs", {}).items() if what not in without]


class Measured:
    """Everything of all files."""

    def __init__(self):
        self.sources, self.origins, self.timings = [], [], []
        self.ledgers, self.frontiers, self.memories, self.trainings = [], [], [], []
        self.comparisons, self.answers, self.not_planned = [], [], []

    def add(self, source, its):
        self.sources.append(source)
        for name, found in vars(its).items():
            getattr(self, name).extend(found)

    def name_origins(self):
        """Runs of one machine are distinguished by their files."""
        machines = {}
        for origin in self.origins:
            machines.setdefault(origin.machine(), set()).add((origin.source.number, origin.variant))
        for origin in self.origins:
            several = len(machines[origin.machine()]) > 1
            origin.suffix = f" ({origin.variant or origin.source.stem})" if several else ""

    def largest_batch(self, network, part, who):
        """What a sweep found of a series, or None."""
        for one in self.answers:
            if one["what"] == "largest_batch" and (one.key["network"], one.key["part"], one.who) == (network, part, who):
                return one
        return None

    def of(self, what, **key):
        """The rows of a kind, by what their keys hold."""
        return [
            one
            for one in self.timings
            if one.key["what"] == what and all(one.key.get(name) == value for name, value in key.items())
        ]


@dataclasses.dataclass
class Comparison:
    """What a file says of two versions of one row."""

    origin: Origin
    name: str
    key: dict
    verdict: str
    against: str = ""
    other: str = ""
    ratio: float = None
    low: float = None
    high: float = None
    first_seconds: float = None
    seconds: float = None
    why: str = ""
