"""What is known of every step. results.json is replaced whole after each step, and alone decides what has happened.
results.tar has the steps' files. It counts up to the length that results.json has for it: a killed runner may have
written more, which the next one cuts off."""

import gzip
import json
import os
import tarfile
import time

import atomic

FORMAT = 2
MOST_TAR = 15 << 20  # bytes; no file that comes home has more than 16 MiB
DONE = ("passed", "failed", "crashed")  # a later run leaves these alone, and tries everything else


class ResultsError(Exception):
    """The message says which file is wrong, and what to do."""


class Results:
    """The results in a folder. `identity` must be equal for two runs to share it."""

    def __init__(self, folder, identity, fresh):
        """Takes up what the folder has, or starts anew. Throws ResultsError."""
        self.folder, self.path, self.tar = folder, *(os.path.join(folder, "results" + end) for end in (".json", ".tar"))
        self.data = {"format": FORMAT, "identity": identity, "machine": {}, "steps": {}, "tar_bytes": 0}
        try:
            os.makedirs(folder, exist_ok=True)
            if fresh and os.path.exists(self.tar):
                os.remove(self.tar)
            if not fresh and os.path.exists(self.path):
                self.data = self._read(identity)
            self.save()
        except OSError as error:
            raise ResultsError(f"cannot write in {folder}: {error.strerror}; name another folder with --out") from error

    def _read(self, identity):
        advice = "start anew with --fresh, which removes what is there, or name another folder with --out"
        try:
            with open(self.path, encoding="utf-8") as file:
                data = json.load(file)
            if data["format"] != FORMAT:
                raise ValueError(f"it has format {data['format']}, and this run-all writes format {FORMAT}")
            if data["identity"] != identity:
                raise ValueError(f"it is of {data['identity']}, and this is {identity}")
        except (KeyError, TypeError, ValueError) as error:
            raise ResultsError(f"{self.path} cannot be continued: {error}; {advice}") from error
        return data

    def save(self):
        atomic.write(self.path, json.dumps(self.data, indent=1))

    def of(self, step):
        return self.data["steps"].get(step, {})

    def put(self, step, state, line="", **facts):
        """Sets what is known of a step. The files that were added count from now on."""
        self.data["steps"][step] = {"state": state, "line": line, **facts}
        self.save()

    def add_file(self, name, data):
        """Adds a compressed file to the tar. Returns whether there was room."""
        member = tarfile.TarInfo(name.replace("/", "-").replace(" ", "_") + ".gz")
        packed = gzip.compress(data)
        member.size, member.mtime = len(packed), int(time.time())
        length = self.data["tar_bytes"]
        if length + len(packed) + 4 * tarfile.BLOCKSIZE > MOST_TAR:
            return False
        with open(self.tar, "r+b" if length else "wb") as file:
            file.seek(length)
            file.truncate()
            file.write(member.tobuf() + packed + bytes(-len(packed) % tarfile.BLOCKSIZE))
            self.data["tar_bytes"] = file.tell()
            file.write(bytes(2 * tarfile.BLOCKSIZE))  # the end, which the next file overwrites
            file.flush()
            os.fsync(file.fileno())
        return True
