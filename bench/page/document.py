"""The page as one file: sections, scripts, style, the plots' runtime and the result files themselves."""

import base64
import gzip
import hashlib
import json
import os

import jinja2
import markupsafe

from page import packages
from page.sections import ALL

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = ("page.js", "theme.js", "charts.js", "tables.js", "networks.js", "cost.js", "files.js")
LARGEST = 6 * 2**20


def asset(name):
    with open(os.path.join(HERE, "assets", name), encoding="utf-8") as file:
        return file.read()


def as_json(value):
    """For a script element: nothing in it can end the element or begin another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return markupsafe.Markup(text)


def packed(content):
    """Bytes as a text: compressed, base64. The same bytes give the same text."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


def allowed(scripts):
    """What the browser may do with this page: run these scripts, and fetch nothing."""
    hashes = " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )


def make(model, problems):
    """The page of everything measured. `problems`: the files that are left out."""
    sections = [section.make(model) for section in ALL]
    scripts = [packages.runtime(), "\n".join(map(asset, SCRIPTS))]
    files = [
        {
            "name": source.name,
            "bytes": len(source.content),
            "sha256": source.digest,
            "holds": {name: count for name, count in source.lists.items() if count},
            "packed": packed(source.content),
        }
        for source in model.sources
    ]
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.join(HERE, "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["data"] = as_json
    charts = packed(
        json.dumps(
            {chart.name: chart.spec for section in sections for chart in section.charts}, allow_nan=False
        ).encode()
    )
    return templates.get_template("page.html").render(
        sections=sections,
        summary=[section for section in sections if section.answers and not section.empty],
        problems=problems,
        files=files,
        charts=charts,
        scripts=[markupsafe.Markup(one) for one in scripts],
        style=markupsafe.Markup(asset("page.css")),
        allowed=allowed(scripts),
        title=title(model),
    )


def title(model):
    machines = dict.fromkeys(
        origin.machine(timing.key["backend"]) for timing in model.timings for origin in [timing.origin]
    )
    names = list(machines) or list(dict.fromkeys(origin.machine() for origin in model.origins))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
