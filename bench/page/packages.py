"""What the page is made with: Python packages in pinned versions, brought into the user's cache on first use."""

import hashlib
import os
import sys

import wheels
from page import written

NEEDED = (
    ("altair", "6.3.0"),
    ("attrs", "26.1.0"),
    ("jinja2", "3.1.6"),
    ("jsonschema", "4.26.0"),
    ("jsonschema-specifications", "2025.9.1"),
    ("markupsafe", "3.0.4"),
    ("narwhals", "2.29.0"),
    ("packaging", "26.3"),
    ("referencing", "0.37.0"),
    ("rpds-py", "2026.9.1"),
    ("typing-extensions", "4.16.0"),
    ("vl-convert-python", "1.9.0.post1"),
)


def tree():
    """Its folder: of these versions, for this version of Python. It has its name only once it is whole."""
    versions = hashlib.sha256(repr(NEEDED).encode()).hexdigest()[:8]
    return os.path.join(wheels.default_folder(), f"report-{versions}-py{sys.version_info[0]}.{sys.version_info[1]}")


def bring():
    """Has them on the path. Raises wheels.WheelError."""
    if not os.path.isdir(tree()):
        os.makedirs(wheels.default_folder(), exist_ok=True)
        print(f"bench/report: bringing {len(NEEDED)} packages, once, into {tree()}", file=sys.stderr, flush=True)
        wheels.bring(NEEDED, tree())
    if tree() not in sys.path:
        sys.path.insert(0, tree())


def runtime():
    """The script that draws: Vega, Vega-Lite and Vega-Embed, put together by the package that carries them, once."""
    path = os.path.join(tree(), "runtime.js")
    if not os.path.exists(path):
        import vl_convert  # beside it, in the tree

        written.write(path, vl_convert.javascript_bundle())
    with open(path, encoding="utf-8") as file:
        return file.read().replace("</script", "<\\/script")
