"""Races whose workers and judge are fake_worker.py: folders, programs, and the log of requests."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
RACE = os.path.join(HERE, "../../bench/race")
sys.path.insert(0, RACE)
import results
import runner
from interrupts import default_signals

LOADER = importlib.machinery.SourceFileLoader("race", os.path.join(RACE, "race"))
race = importlib.util.module_from_spec(importlib.util.spec_from_loader("race", LOADER))
LOADER.exec_module(race)

FIRST = "16 3 224 224 64 7 7 2 2 3 3 1 1 1 0"
SPATIAL = "16 64 56 56 64 3 3 1 1 1 1 1 1 1 0"
CONVOLUTIONS = {
    "alexnet": [{"name": "conv1", "conv": FIRST, "backward_data": False},
                {"name": "conv2", "conv": SPATIAL, "backward_data": True},
                {"name": "conv3", "conv": SPATIAL, "backward_data": True}],
    "vgg16": [{"name": "stem", "conv": FIRST, "backward_data": True}],
    "mnist_mlp": [],
}
PROGRAMS = ("lamina_bench", "onednn_worker", "python", "python3")


class Folder(unittest.TestCase):
    """Tests that have a temporary folder for files and programs."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.out, self.said = os.path.join(self.folder, "out.json"), os.path.join(self.folder, "said")

    def begin(self, command, **how):
        """Starts a program in a new session with default signals. self.said gets its output."""
        with open(self.said, "w") as said:
            child = subprocess.Popen(command, **{"stdout": said} | how, stderr=said, start_new_session=True,
                                     preexec_fn=default_signals)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def program(self, name, text=""):
        path = os.path.join(self.folder, name)
        with open(path, "w", opener=lambda path, how: os.open(path, how, 0o755)) as file:
            file.write(text)
        return path


class Fakes(Folder):
    """A folder with programs that are all copies of fake_worker.py."""

    def setUp(self):
        super().setUp()
        self.log = os.path.join(self.folder, "log")
        with open(os.path.join(HERE, "fake_worker.py")) as file:
            text = f"#!{sys.executable} -IS\n{file.read()}"  # -IS: starts faster, without site-packages
        for name in PROGRAMS:
            self.program(name, text)

    def tell(self, told):
        """The environment of a race with these settings for the fakes."""
        path = os.path.join(self.folder, "told.json")
        with open(path, "w") as file:
            json.dump({"log": self.log, "convolutions": CONVOLUTIONS} | told, file)
        if os.path.exists(self.log):
            os.remove(self.log)
        return os.environ | {"FAKE": path, "TMPDIR": self.folder, "PATH": f"{self.folder}:{os.environ['PATH']}"}

    def command(self, *words):
        return [sys.executable, "-B", os.path.join(RACE, "race"), "--program",
                os.path.join(self.folder, "lamina_bench"),
                "--rounds", "2", "--retries", "0", "--benchmark_out", self.out, *words]

    def race(self, *words, status=0, memory="no", told=(), environment=()):
        """Runs a race, by default of vgg16. Returns its output and its file."""
        words = words if words and not words[0].startswith("-") else ("vgg16", *words)
        more = () if "layers" in words or "trainings" in words else ("--memory", memory)
        said = types.SimpleNamespace(out=io.StringIO(), err=io.StringIO())
        with contextlib.redirect_stdout(said.out), contextlib.redirect_stderr(said.err), \
                mock.patch.dict(os.environ, self.tell(dict(told)) | dict(environment)), \
                mock.patch.object(sys, "argv", self.command(*words, *more)[2:]), \
                mock.patch.multiple(runner, SETTLE_SECONDS=0, QUIET_SECONDS=-1), self.assertRaises(SystemExit) as end:
            race.main()
        said.err.write(f"{end.exception.code}\n" if isinstance(end.exception.code, str) else "")
        done = types.SimpleNamespace(stdout=said.out.getvalue(), stderr=said.err.getvalue())
        self.assertEqual(1 if isinstance(end.exception.code, str) else end.exception.code, status, done)
        return done, self.written()

    def written(self):
        """The file of a race, or None if there is no file."""
        if not os.path.exists(self.out):
            return None
        with open(self.out) as file:
            return json.load(file)

    def asked(self, command=None):
        """The logged requests [worker, command, words ...], in order."""
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:
            found = [json.loads(line) for line in file]
        return [one for one in found if command in (None, one[1])]

    def started(self):
        """{worker: [words, environment] of its start}."""
        return {name: rest for name, _, *rest in self.asked("start")}
