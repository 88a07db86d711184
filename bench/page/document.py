"""The page as one file: the data of the sections, the scripts that draw them, and the style."""

import base64
import gzip
import hashlib
import html
import json
import os
import re

from page import packages
from page.sections import ALL, machines

ASSETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "assets")
SCRIPTS = ("page.js", "tables.js", "charts.js", "networks.js", "cost.js")


def asset(name):
    with open(os.path.join(ASSETS, name), encoding="utf-8") as file:
        return file.read()


def policy(scripts):
    """The content security policy of the page: it may run only these scripts, and fetches nothing."""
    sums = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{one}'" for one in sums)
    return (f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
            "base-uri 'none'; form-action 'none'")


def data_of(model, problems):
    """All data that the page shows."""
    about = {"title": title(model), "problems": problems, "warnings": list(machines.warnings(model))}
    return about | {"sections": [section.make(model) for section in ALL], "files": list(model.files)}


def make(model, problems):
    scripts = [packages.chart_library(), "\n".join(map(asset, SCRIPTS))]
    data = json.dumps(data_of(model, problems), allow_nan=False).encode()
    fields = {
        "title": html.escape(title(model).encode("utf-8", "replace").decode()),
        "policy": policy(scripts),
        "style": asset("page.css"),
        "data": base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii"),
        "scripts": "\n".join(f"<script>{one}</script>" for one in scripts),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: fields[found[1]], asset("page.html"))


def title(model):
    """The machines that were measured."""
    names = list(dict.fromkeys(row.machine for row in model.rows) or dict.fromkeys(run.machine() for run in model.runs))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
