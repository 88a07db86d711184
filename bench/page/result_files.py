"""Reading result files. A file that cannot be used is named with the reason, and the others are read."""

import collections
import dataclasses
import hashlib
import json
import os
import re

from page import measured, reading
from page.fields import Damaged, Fields

FORMAT = 1  # of lamina_bench's files; those from before it was written have none
LISTS = ("benchmarks", "races", "ledgers", "frontiers", "memories", "trainings", "comparisons", "answers", "not_planned")
TABLE = ".table.json"  # how the table ends that `run` writes beside its rows, which has nothing more than they
LARGEST = 256 * 2**20


@dataclasses.dataclass
class Problem:
    """A file that is left out, and why."""

    file: str
    what: str


@dataclasses.dataclass
class Source:
    """A file whose results are in the page."""

    number: int
    name: str  # without folders, and unlike any other
    content: bytes  # as read
    context: dict  # texts by name
    lists: dict  # how many of each kind

    @property
    def digest(self):
        return hashlib.sha256(self.content).hexdigest()

    @property
    def stem(self):
        return self.name.removesuffix(".json")


def refuse_constant(word):
    raise ValueError(f"{word} is not a number of JSON")


def unique_object(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("one object has the same name twice")
    return found


def check_texts(text, document):
    """Raises Damaged for half of a surrogate pair, which no UTF-8 file can hold."""
    if re.search(r"\\u[dD][89a-fA-F]", text):
        try:
            json.dumps(document, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise Damaged(f"not usable JSON: \\u{ord(error.object[error.start]):x} is not a character") from None


def parse(content):
    """The document of a file. Raises Damaged."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged(f"not UTF-8 text: byte {error.start}") from None
    if not text.strip():
        raise Damaged("empty; was its run interrupted before the first row?")
    try:
        document = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique_object)
    except json.JSONDecodeError as error:
        cut = " (the end is missing)" if error.pos >= len(text.rstrip()) - 1 else ""
        raise Damaged(f"not JSON: line {error.lineno}, column {error.colno}: {error.msg}{cut}") from None
    except (ValueError, RecursionError) as error:
        raise Damaged(f"not usable JSON: {error}") from None
    check_texts(text, document)
    root = Fields(document)
    version = (root.object("context") if root.has("context") else root).value.get("lamina_format", FORMAT)
    if version not in (FORMAT, str(FORMAT)):
        raise Damaged(
            f"format {str(version)[:20]} of another version of Lamina; this bench/report reads format {FORMAT}"
        )
    if not any(root.has(name) for name in LISTS):
        raise Damaged(f"not a result file of Lamina: it has none of {', '.join(LISTS)}")
    return root


def context_of(root):
    """The facts of a file as texts; lists and objects stand in the file itself."""
    if root.has("context"):
        facts = root.object("context").value
    else:
        facts = {name: value for name, value in root.value.items() if name not in LISTS}
    return {name: str(value) for name, value in facts.items() if not isinstance(value, (list, dict))}


def name_of(path, names):
    """Of a name that several files have, the folder goes before it: "before-1.json"."""
    folder, name = os.path.split(os.path.abspath(path))
    return name if names[name] < 2 else f"{os.path.basename(folder)}-{name}"


def distinct(name, taken):
    stem, suffix = os.path.splitext(name)
    count = 2
    while name in taken:
        name, count = f"{stem} ({count}){suffix}", count + 1
    return name


def read(paths):
    """(everything measured in the files that can be used, the problems of the others)."""
    found, problems = measured.Measured(), []
    names = collections.Counter(map(os.path.basename, {os.path.abspath(path) for path in paths}))
    for path in paths:
        if path.endswith(TABLE):
            continue
        try:
            if os.path.getsize(path) > LARGEST:
                raise Damaged(f"larger than {LARGEST // 2**20} MiB")
            with open(path, "rb") as file:
                content = file.read()
            same = [source.name for source in found.sources if source.content == content]
            if same:
                raise Damaged(f"the same as {same[0]}, which is in the page")
            root = parse(content)
            source = Source(
                len(found.sources),
                distinct(name_of(path, names), {s.name for s in found.sources}),
                content,
                context_of(root),
                {name: len(root.objects(name)) for name in LISTS if root.has(name)},
            )
            its = reading.measured_in(root, source)
        except OSError as error:
            problems.append(Problem(path, f"cannot be read: {error.strerror}"))
        except Damaged as error:
            problems.append(Problem(path, str(error)))
        else:
            found.add(source, its)
    found.name_origins()
    return found, problems
