"""results.json: what is known of every step, replaced whole after each, and the files that grow beside it.

A file that grows counts up to the length that results.json has for it: what a killed runner wrote beyond is cut off
when the next one begins. So results.json alone decides what has happened."""

import contextlib
import gzip
import json
import os

FORMAT = 1
GROWING = ("logs.txt", "tables.txt", "ncu.txt", "bench.jsonl.gz", "peers.jsonl.gz")
DONE = ("passed", "failed", "crashed")  # a later run leaves these alone; all else is tried again


class ResultsError(Exception):
    """The message says which file is wrong, and what to do."""


def replace(path, text):
    """Writes beside the file first: a power cut leaves the old one whole."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


class Results:
    """The results in a folder. `identity` is what must be equal for two runs to share a folder."""

    def __init__(self, folder, identity):
        self.folder, self.identity = folder, identity
        self.path = os.path.join(folder, "results.json")
        self.data = {"format": FORMAT, "identity": identity, "machine": {}, "runs": [], "steps": {},
                     "lengths": {name: 0 for name in GROWING}}

    def start(self, fresh):
        """Takes up what the folder has, or starts anew. Throws ResultsError."""
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise ResultsError(f"cannot make the folder {self.folder}: {error.strerror}; name another with --out"
                               ) from error
        if not fresh and os.path.exists(self.path):
            self.data = self._read()
        self._cut()
        self.save()

    def _read(self):
        advice = "start anew with --fresh, which removes what is there, or name another folder with --out"
        try:
            with open(self.path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError) as error:
            raise ResultsError(f"{self.path} cannot be read as results: {error}; {advice}") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("steps"), dict) \
                or not isinstance(data.get("lengths"), dict):
            raise ResultsError(f"{self.path} is not a file of results of this run-all; {advice}")
        for key, value in self.identity.items():
            if data.get("identity", {}).get(key) != value:
                raise ResultsError(f"{self.path} is of {key} {data.get('identity', {}).get(key)}, and this is {key} "
                                   f"{value}; {advice}")
        return data

    def _cut(self):
        """Brings the growing files to the lengths that results.json knows."""
        for name in GROWING:
            path, length = os.path.join(self.folder, name), int(self.data["lengths"].get(name, 0))
            try:
                if length == 0:
                    with contextlib.suppress(FileNotFoundError):
                        os.remove(path)
                elif os.path.exists(path) and os.path.getsize(path) > length:
                    os.truncate(path, length)
            except OSError as error:
                raise ResultsError(f"cannot write {path}: {error.strerror}; name another folder with --out") from error

    def save(self):
        try:
            replace(self.path, json.dumps(self.data, indent=1))
        except OSError as error:
            raise ResultsError(f"cannot write {self.path}: {error.strerror}; make room, or name another folder with "
                               "--out") from error

    def append(self, name, data):
        """Adds bytes to a growing file. They count after the next save()."""
        with open(os.path.join(self.folder, name), "ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            self.data["lengths"][name] = file.tell()

    def append_json(self, name, value):
        """Adds a line of JSON to a growing file of compressed lines."""
        self.append(name, gzip.compress((json.dumps(value) + "\n").encode()))

    def of(self, step):
        return self.data["steps"].get(step, {})

    def put(self, step, **facts):
        self.data["steps"][step] = facts
        self.save()

    def begin(self, step, part):
        """A step starts: should the runner be killed, this is what the next one finds."""
        attempts = self.of(step).get("attempts", 0) + 1
        self.put(step, part=part, state="running", attempts=attempts)
        return attempts
