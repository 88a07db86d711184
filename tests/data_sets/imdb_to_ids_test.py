#!/usr/bin/env python3
"""bench/imdb-to-ids: the order and numbers that Keras gives reviews, in the format that Lamina reads. Arrays are written
by a stand-in for numpy, and by numpy itself where it is installed."""

import importlib.machinery
import importlib.util
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "imdb-to-ids")
LOADER = importlib.machinery.SourceFileLoader("imdb_to_ids", SCRIPT)
imdb_to_ids = importlib.util.module_from_spec(importlib.util.spec_from_loader("imdb_to_ids", LOADER))
LOADER.exec_module(imdb_to_ids)

try:
    import numpy
except ImportError:
    numpy = None

TRAIN = [[1, 2, 3, 1, 2], [5, 1, 2], [30], [4, 4, 4, 4]]
TEST = [[1, 2, 9], [3, 1], [4, 4, 1]]


def object_array(values):
    """The bytes of a .npy with an array of lists, as numpy pickles it."""
    core, top = types.ModuleType("numpy.core.multiarray"), types.ModuleType("numpy")

    class ndarray:
        def __reduce__(self):
            return core._reconstruct, (ndarray, (0,), b"b"), (1, (len(values),), dtype(), False, values)

    class dtype:
        def __reduce__(self):
            return dtype, ("O8", False, True), (3, "|", None, None, None, -1, -1, 63)

        def __init__(self, *_):
            pass

    def _reconstruct(*_):
        return None

    for thing, module in ((ndarray, top), (dtype, top), (_reconstruct, core)):
        thing.__module__, thing.__qualname__ = module.__name__, thing.__name__
        setattr(module, thing.__name__, thing)
    kept = {name: sys.modules.get(name) for name in ("numpy", "numpy.core.multiarray")}
    sys.modules.update({"numpy": top, "numpy.core.multiarray": core})
    try:
        return npy("|O", len(values), pickle.dumps(ndarray(), protocol=2))
    finally:
        for name, module in kept.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def npy(descr, count, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({count},), }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def labels_array(labels):
    return npy("<i8", len(labels), struct.pack(f"<{len(labels)}q", *labels))


def read_ids(path):
    """A second reader of the format, from its description."""
    with open(path, "rb") as file:
        magic, version, count, vocabulary, classes = struct.unpack("<4sIIII", file.read(20))
        lists = []
        for _ in range(count):
            (length,) = struct.unpack("<H", file.read(2))
            lists.append(list(struct.unpack(f"<{length}I", file.read(4 * length))))
        labels = list(file.read(count))
        assert (magic, version, classes, file.read()) == (b"LIDS", 1, 2, b"")
    return vocabulary, lists, labels


class Converter(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def save(self, **arrays):
        path = os.path.join(self.folder, "imdb.npz")
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in arrays.items():
                archive.writestr(name + ".npy", data)
        return path

    def good(self):
        return {"x_train": object_array(TRAIN), "y_train": labels_array([0, 1, 1, 0]),
                "x_test": object_array(TEST), "y_test": labels_array([1, 0, 1])}

    def run_script(self, path, *flags):
        return subprocess.run([sys.executable, "-B", SCRIPT, path, "--out", self.folder, *flags], text=True,
                              capture_output=True, check=False)

    def convert(self, path, *flags):
        done = self.run_script(path, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        name = "imdb-bigrams" if "--bigrams" in flags else "imdb"
        return [read_ids(os.path.join(self.folder, f"{name}-{part}.ids")) for part in ("train", "test")]

    def test_files_with_bigrams_and_without_are_in_one_folder(self):
        path = self.save(**self.good())
        words = self.convert(path)
        self.assertNotEqual(self.convert(path, "--bigrams"), words)
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.endswith(".ids")),
                         ["imdb-bigrams-test.ids", "imdb-bigrams-train.ids", "imdb-test.ids", "imdb-train.ids"])
        (vocabulary, lists, _), _ = words
        self.assertEqual(read_ids(os.path.join(self.folder, "imdb-train.ids"))[:2], (vocabulary, lists))

    def test_the_folder_is_made(self):
        path = self.save(**self.good())
        self.assertEqual(self.run_script(path, "--out", os.path.join(self.folder, "a/b")).returncode, 0)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "a/b/imdb-train.ids")))

    def test_one_state_shuffles_both_parts_as_numpy_does(self):
        # numpy.random.RandomState(113), two arrays of ten shuffled one after the other.
        state = imdb_to_ids.RandomState(113)
        first, second = list(range(10)), list(range(10))
        state.shuffle(first)
        state.shuffle(second)
        self.assertEqual(first, FIRST)
        self.assertEqual(second, SECOND)

    @unittest.skipIf(numpy is None, "no numpy")
    def test_any_length_is_shuffled_as_numpy_does(self):
        for seed in (113, 0, 2**32 - 1):
            theirs, ours = numpy.random.RandomState(seed), imdb_to_ids.RandomState(seed)
            for length in (1, 2, 3, 25000):
                expected, found = numpy.arange(length), list(range(length))
                theirs.shuffle(expected)
                ours.shuffle(found)
                self.assertEqual(found, expected.tolist())

    def test_words_are_ranks_and_three_after_a_start_mark(self):
        (vocabulary, lists, labels), _ = self.convert(self.save(**self.good()), "--words", "8")
        self.assertEqual(vocabulary, 8)
        # Ranks 5 and 30 are beyond the words: 2.
        expected = {(1, 4, 5, 6, 4, 5): 0, (1, 2, 4, 5): 1, (1, 2): 1, (1, 7, 7, 7, 7): 0}
        self.assertEqual({tuple(ids): label for ids, label in zip(lists, labels)}, expected)

    def test_both_parts_come_in_the_shuffled_order(self):
        train, test = self.convert(self.save(**self.good()))
        state = imdb_to_ids.RandomState(113)
        for (_, lists, labels), source, marks in ((train, TRAIN, [0, 1, 1, 0]), (test, TEST, [1, 0, 1])):
            order = list(range(len(source)))
            state.shuffle(order)
            self.assertEqual(lists, [[1] + [w + 3 for w in source[i]] for i in order])
            self.assertEqual(labels, [marks[i] for i in order])

    def test_pairs_of_the_training_are_numbered_by_first_appearance_and_appended(self):
        (vocabulary, lists, _), (test_vocabulary, test_lists, _) = self.convert(
            self.save(**self.good()), "--words", "8", "--bigrams")
        words = [[i for i in ids if i < 8] for ids in lists]
        numbers = {}
        for ids in words:
            for pair in zip(ids, ids[1:]):
                if pair not in numbers:
                    numbers[pair] = 9 + len(numbers)
        self.assertEqual(vocabulary, 9 + len(numbers))
        self.assertEqual(test_vocabulary, vocabulary)
        self.assertEqual(lists, [ids + [numbers[pair] for pair in zip(ids, ids[1:])] for ids in words])
        for ids in test_lists:
            own = [i for i in ids if i < 8]
            self.assertEqual(ids, own + [numbers[p] for p in zip(own, own[1:]) if p in numbers])
        self.assertTrue(any(len(ids) < 2 * len([i for i in ids if i < 8]) - 1 for ids in test_lists))  # unknown pairs

    @unittest.skipIf(numpy is None, "no numpy")
    def test_what_numpy_saves_is_read(self):
        def lists(values):
            made = numpy.empty(len(values), dtype=object)
            made[:] = values
            return made
        path = os.path.join(self.folder, "theirs.npz")
        numpy.savez(path, x_train=lists(TRAIN), y_train=numpy.array([0, 1, 1, 0]), x_test=lists(TEST),
                    y_test=numpy.array([1, 0, 1]))
        theirs = self.convert(path, "--bigrams")
        self.assertEqual(theirs, self.convert(self.save(**self.good()), "--bigrams"))

    def test_a_pickle_that_calls_something_is_refused_and_not_run(self):
        class Evil:
            def __reduce__(self):
                return os.mkdir, (marker,)
        marker = os.path.join(self.folder, "was-here")
        path = self.save(**self.good() | {"x_train": npy("|O", 4, pickle.dumps(Evil(), protocol=2))})
        done = self.run_script(path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("mkdir", done.stderr)
        self.assertFalse(os.path.exists(marker))

    def test_files_that_lie_are_named_without_a_trace(self):
        good = self.good()
        hostile = [
            {"x_train": b""},
            {"x_train": npy("|O", 4, b"")},
            {"x_train": object_array(TRAIN[:3])},
            {"x_train": object_array([["word"]] * 4)},
            {"x_train": object_array([[-1]] * 4)},
            {"x_train": object_array([7] * 4)},
            {"x_train": npy("|O", 4, pickle.dumps(3))},
            {"y_train": labels_array([0, 1, 2, 0])},
            {"y_test": labels_array([0, 1])},
            {"y_test": npy("<f8", 3, bytes(24))},
            {"y_test": npy("<i8", 3, bytes(20))},
        ]
        for change in hostile:
            path = self.save(**good | change)
            done = self.run_script(path)
            self.assertEqual(done.returncode, 1, change)
            self.assertIn(path, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
        for changed in (6, 20):  # a byte of a compressed array
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in good.items():
                    archive.writestr(name + ".npy", data)
            with open(path, "r+b") as file:
                file.seek(30 + len("x_train.npy") + changed)
                byte = file.read(1)[0]
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte ^ 0xff]))
            done = self.run_script(path)
            self.assertEqual(done.returncode, 1)
            self.assertNotIn("Traceback", done.stderr)
        long = self.save(**good | {"x_train": object_array([[1] * 70000] + TRAIN[1:])})
        self.assertIn("65535 fit", self.run_script(long).stderr)
        for missing in good:
            path = self.save(**{name: data for name, data in good.items() if name != missing})
            self.assertIn(missing, self.run_script(path).stderr)
        for path in (SCRIPT, os.path.join(self.folder, "none.npz")):
            done = self.run_script(path)
            self.assertEqual(done.returncode, 1)
            self.assertNotIn("Traceback", done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name != "imdb.npz"], [])


FIRST = [9, 3, 6, 1, 0, 7, 4, 8, 2, 5]
SECOND = [6, 9, 5, 0, 1, 4, 8, 3, 7, 2]

if __name__ == "__main__":
    unittest.main()
