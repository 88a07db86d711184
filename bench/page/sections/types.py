"""The section of types: passes of networks that were measured in several element types or layouts."""

import collections
import re

from page.parts import cell, digits, row, section, table

LEAD = (
    "Median of a pass in each element type, and its ratio to the time in f32 and nchw. The layout is nchw if no other "
    "is named. The section of comparisons has intervals for programs that took turns."
)
FILL = "lamina_bench resnet50 --dtype=f32,bf16 --benchmark_out=types.json"
TYPES = ("f32", "tf32", "bf16", "f16", "f64")
WORDS = re.compile(rf"[ :+@]({'|'.join(TYPES)}|nchw|nhwc)\b")


def make(model):
    lines = collections.defaultdict(dict)
    for one in model.rows_of("net"):
        if one.seconds:
            size = [f"batch {one.batch}", *(f"{name} {value}".strip() for name, value in one.differs.items())]
            who = f"{one.machine}{one.run.suffix}, {WORDS.sub('', one.run.program(one.key['backend']))}"
            lines[one.key["network"], one.key["part"], ", ".join(size), who][column(one)] = one
    lines = {of: its for of, its in lines.items() if len(its) > 1}
    found = {name for its in lines.values() for name in its}
    columns = sorted(found, key=lambda name: (TYPES.index(name.split()[0]), name))
    rows = [row([*of, *(time(its, name) for name in columns)]) for of, its in lines.items()]
    shown = table("Milliseconds by type", ["network", "pass", "size", "program", *columns], rows, 4)
    return section("types", "Element types", "Types", LEAD, FILL, [shown])


def column(one):
    """The type, and the layout if it is nhwc. For a variant that took turns, both come from its name."""
    words = re.split("[:+@]", one.run.name)
    nhwc = "nhwc" in words or one.key["layout"] == "nhwc"
    return next((word for word in words if word in TYPES), one.key["type"]) + (" nhwc" if nhwc else "")


def time(its, name):
    if name not in its:
        return ""
    ms, usual = 1e3 * its[name].median, its.get("f32")
    share = f"{its[name].median / usual.median:.2f}" if usual and name != "f32" else ""
    return cell(digits(ms), ms, share, its[name].name)
