"""The results of every step, kept in a folder of two files."""
# summary.md is the page. results.tar.gz has steps.json, with a record for each step, and the output and measurements
# of the steps. Both files are replaced whole after each step, so a kill loses only the steps that are running.

import glob
import io
import json
import os
import tarfile

import atomic
import summary


class ResultsError(Exception):
    """An error in a file of results. The message says which file is wrong, and what to do."""


class Results:
    def __init__(self, folder, names, rehearsal):
        """Continues the results of the folder, or starts anew. `names`: names of all steps. Raises ResultsError."""
        self.folder, self.names, self.path = folder, names, os.path.join(folder, "results.tar.gz")
        self.data = {"rehearsal": rehearsal, "machines": [], "steps": {}}
        self.files = {}  # files of steps: {name in the tar: bytes}
        try:
            os.makedirs(folder, exist_ok=True)
            for left in glob.glob(os.path.join(glob.escape(folder), "*.part")):  # left by a kill
                os.remove(left)
            if os.path.exists(self.path):
                with tarfile.open(self.path, "r:gz") as tar:
                    self.files = {one.name: tar.extractfile(one).read() for one in tar}
                self.data = json.loads(self.files.pop("steps.json"))
                if self.data["rehearsal"] != rehearsal:
                    raise ValueError("either it or this run is a rehearsal, not both")
            self.save()
        except (OSError, tarfile.TarError, EOFError, KeyError, TypeError, ValueError) as error:
            raise ResultsError(f"{self.path} cannot be continued: {error}; remove it, or name another folder with --out"
                               ) from error

    def save(self):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=3) as tar:
            for name, content in {"steps.json": json.dumps(self.data, indent=1).encode(), **self.files}.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        atomic.write(self.path, packed.getvalue())
        atomic.write(os.path.join(self.folder, "summary.md"), self.page())

    def page(self):
        return "\n".join(summary.page(self.names, self.data)) + "\n"

    def of(self, name):
        return self.data["steps"].get(name, {"state": ""})

    def machine(self, facts):
        """Adds the facts of the machine of one call. Each call of run-all may run on another GPU."""
        self.data["machines"].append(facts)
        self.save()

    def put(self, step, files, **record):
        """Sets the record of a step, and its files. `files`: {ending of the name: content}."""
        self.data["steps"][step.name] = record
        for ending, content in dict(files).items():
            self.files[f"{step.file()}.{ending}"] = content
        self.save()
