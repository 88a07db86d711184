"""The program `compare` as a whole, with children that compute nothing: its file, and its end where it is stopped."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RACE = os.path.join(HERE, "../../bench/race")
sys.path.insert(0, RACE)
import rows

COMPARE = os.path.join(RACE, "compare")
FAKE = f"exec {sys.executable} {HERE}/fake_worker.py"

# Both sides hang at vgg19, ours at layers as well, and answer at once for any other network. The peer's is asked first
# whether it has torch.
OURS = f'#!/bin/sh\ncase "$*" in *vgg16*) {FAKE} 0.1;; *) {FAKE} 0.1 hang;; esac\n'
THEIRS = f'#!/bin/sh\ncase "$*" in -c*) exit 0;; *vgg19*) {FAKE} 0.1 hang;; *) {FAKE} 0.2;; esac\n'


def default_signals():
    """A test that runs in the background may have been started with interrupts ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.out = folder.name, os.path.join(folder.name, "out.json")
        self.log = os.path.join(self.folder, "log")
        for name, text in (("lamina_bench", OURS), ("python", THEIRS), ("onednn_worker", f"#!/bin/sh\n{FAKE} 0.1\n")):
            path = os.path.join(self.folder, name)
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o755)

    def command(self, *words):
        return [sys.executable, "-B", COMPARE, "--program", os.path.join(self.folder, "lamina_bench"), "--python",
                os.path.join(self.folder, "python"), "--samples", "2", "--retries", "0", "--memory", "no", "--out",
                self.out, *words]

    def stopped(self, number, *words, group=False, again=()):
        """Stops it while a child hangs, and `again` by further signals milliseconds later; its standard error without
        what the child says, and its exit status."""
        with open(self.log, "w") as log:
            child = subprocess.Popen(self.command(*words), stdout=subprocess.DEVNULL, stderr=log, text=True,
                                     preexec_fn=default_signals, start_new_session=True,
                                     env=os.environ | {"TMPDIR": self.folder})
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        start = time.monotonic()
        while "hanging" not in self.said():
            self.assertIsNone(child.poll(), self.said())
            self.assertLess(time.monotonic() - start, 60)
            time.sleep(0.01)
        (os.killpg if group else os.kill)(child.pid, number)
        for one in again:
            time.sleep(0.001)
            child.send_signal(one)
        child.wait(timeout=20)  # less than a child hangs
        time.sleep(0.2)  # for what a child that is left might say
        return self.said().replace("hanging\n", "", 1), child.returncode

    def said(self):
        with open(self.log) as log:
            return log.read()

    def test_a_race_that_is_not_stopped_is_in_the_file(self):
        done = subprocess.run(self.command("--nets", "vgg16"), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"Rows and ratios: {self.out}", done.stdout)
        with open(self.out) as file:
            self.assertEqual([line["ratio"] for line in json.load(file)["comparison"]], [0.5] * 4)

    def test_the_file_has_the_command_without_the_folders_of_this_machine(self):
        for words, said in (
            (("--nets", "vgg16"), "--nets vgg16"),
            (("--nets=vgg16", f"--peers_folder={self.folder}/a b/"), "--nets=vgg16 '--peers_folder=a b/'"),
        ):
            subprocess.run(self.command(*words), stdout=subprocess.DEVNULL, check=True)
            with open(self.out) as file:
                self.assertEqual(json.load(file)["context"]["command"],
                                 "compare --program lamina_bench --python python --samples 2 --retries 0 --memory no "
                                 f"--out out.json {said}")

    def test_the_file_has_the_commit_of_our_program(self):
        subprocess.run(self.command("--nets", "vgg16"), stdout=subprocess.DEVNULL, check=True)
        with open(self.out) as file:
            context = json.load(file)["context"]
        self.assertEqual((context["commit"], context["peers"]["lamina"]["commit"]), ("c0.1", "c0.1"))

    def test_of_a_command_relative_paths_stay_and_absolute_ones_are_names(self):
        words = ["bench/race/compare", "--backends", "cudnn:/opt/a/9.19,cuda", "--program=build/x",
                 "--python=/usr/bin/p3", "/", "a/b,/c/d", "--nets=resnet18"]
        self.assertEqual(rows.command_line(words), "bench/race/compare --backends cudnn:9.19,cuda --program=build/x "
                                                   "--python=p3 / a/b,d --nets=resnet18")

    def test_what_was_finished_is_kept_and_reported(self):
        for number, group in ((signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, False)):
            with self.subTest(number=number, group=group):
                said, status = self.stopped(number, "--nets", "vgg16,vgg19", group=group)
                self.assertEqual((said, status), ("compare: interrupted; the networks that were finished are in "
                                                  f"{self.out}\n", 128 + number))
                with open(self.out) as file:
                    self.assertEqual({line["net"] for line in json.load(file)["comparison"]}, {"vgg16"})
                os.remove(self.out)

    def test_further_signals_leave_no_folder_and_no_traceback(self):
        for again in ((signal.SIGINT,), (signal.SIGTERM, signal.SIGINT, signal.SIGINT)):
            said, status = self.stopped(signal.SIGINT, "--nets", "vgg19", again=again)
            self.assertEqual((said, status), ("compare: interrupted before any of the networks was finished; nothing was "
                                              f"written to {self.out}\n", 130))
            self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("lamina-race-")], [])

    def test_where_nothing_was_finished_nothing_is_written_and_that_is_said(self):
        for memory in ("yes", "no"):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(number=number, memory=memory):
                    said, status = self.stopped(number, "--nets", "vgg19", "--memory", memory)
                    self.assertEqual((said, status), ("compare: interrupted before any of the networks was finished; "
                                                      f"nothing was written to {self.out}\n", 128 + number))
                    self.assertFalse(os.path.exists(self.out))

    def test_a_race_of_layers_ends_alike(self):
        said, status = self.stopped(signal.SIGTERM, "--layers", "--nets", "vgg19")
        self.assertEqual((said, status), ("compare: interrupted before any of the layers was finished; nothing was "
                                          f"written to {self.out}\n", 143))

    def test_a_file_that_cannot_be_written_is_an_error_before_the_race(self):
        with open(self.out, "w"):
            pass
        folder, self.out = self.out, self.out + "/below.json"
        for words in ((), ("--layers",)):
            done = subprocess.run(self.command("--nets", "vgg19", *words), capture_output=True, text=True, check=False,
                                  timeout=60)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (1, "", f"compare: --out: cannot write {self.out}: {folder} exists and is not a folder\n"))


if __name__ == "__main__":
    unittest.main()
