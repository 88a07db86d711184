"""Which variants of either side a race on a GPU has: their names, what each name means, and the arguments of its child.
Needs no torch."""

import dataclasses

PRECISIONS = {  # of the products: what PyTorch is set to, and what Lamina calls it; None: Lamina has no such products
    "f32": "strict",
    "tf32": "tf32",
    "f16": None,
    "bf16": None,
}
LAYOUTS = ("nchw", "nhwc")
OURS = ("plain", "graph", "measured", "measured+graph")
TORCH = ("eager", "eager+benchmark", "eager+graph", "eager+benchmark+graph",
         "compiled", "compiled+benchmark", "compiled+graph", "compiled+benchmark+graph",
         "max-autotune", "max-autotune+benchmark")
TORCH_DEFAULT = "eager,eager+benchmark,compiled+benchmark@nhwc"
BACKENDS = ("cuda", "cudnn", "cuda-host")


@dataclasses.dataclass(frozen=True)
class Contender:
    """One side in one variant, precision and layout: what a child runs."""
    peer: str  # "lamina", or what a PyTorch is called
    backend: str  # as rows and tables have it; of PyTorch: as `peer`
    variant: str
    precision: str
    layout: str
    made_by: str = ""  # of Lamina: the name that make_backend takes, where it is another: cudnn:DIRECTORY

    @property
    def ours(self):
        return self.peer == "lamina"

    @property
    def name(self):
        """What tables and messages call it: lamina/cuda/strict/graph, torch/f32/eager+benchmark."""
        if self.ours:
            return f"lamina/{self.backend}/{PRECISIONS[self.precision]}/{self.variant}"
        return f"{self.peer}/{self.precision}/{self.variant}"

    @property
    def differs(self):
        """What its rows' keys have beyond the defaults; of ours as lamina_bench has it."""
        ours = [word for word in ("graph", "measured") if word in self.variant.split("+")]
        return dict.fromkeys(ours if self.ours else [self.variant], "")

    @property
    def replays(self):
        """Whether CUDA graphs are replayed, so that no launch by the host is in a pass."""
        return "graph" in self.variant.split("+") or self.variant.startswith("max-autotune")

    @property
    def compiles(self):
        return self.variant.startswith(("compiled", "max-autotune")) and not self.ours

    def config(self):
        """What its child is started with besides the network, the batch and the threads; of Lamina."""
        parts = self.variant.split("+")
        return {"backend": self.made_by or self.backend, "math": PRECISIONS[self.precision],
                "measure": "measured" in parts, "graph": "graph" in parts}


def split_variant(word):
    """A word of --torch: the variant, and the layouts that it names (all that are raced where it names none)."""
    variant, at, layout = word.partition("@")
    return variant, layout if at else None


def known_words():
    return list(TORCH) + [f"{variant}@{layout}" for variant in TORCH for layout in LAYOUTS]


def ours(arguments, precision):
    """Lamina's side in one precision, or why there is none."""
    if PRECISIONS[precision] is None:
        return [], f"Lamina has no {precision} products"
    backends = arguments.backends.split(",")
    alone = sum(backend.startswith("cudnn") for backend in backends) == 1
    return [Contender("lamina", backend.partition(":")[0] if alone else backend, variant, precision, layout, backend)
            for backend in backends for variant in arguments.ours.split(",")
            for layout in arguments.our_layouts.split(",")], None


def theirs(arguments, precision, peer):
    """A PyTorch's side in one precision."""
    found = [Contender(peer, peer, variant, precision, layout)
             for variant, only in map(split_variant, arguments.torch.split(","))
             for layout in arguments.layouts.split(",") if only in (None, layout)]
    return list(dict.fromkeys(found))  # eager,eager@nchw is eager
