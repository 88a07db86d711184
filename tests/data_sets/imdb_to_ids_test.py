#!/usr/bin/env python3
"""bench/imdb-to-ids: reviews get the order and the ids of Keras, in the format that Lamina reads."""

import os
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import packages

numpy = packages.need("numpy")
SCRIPT = os.path.join(HERE, "../../bench/imdb-to-ids")
TREE = os.path.dirname(os.path.dirname(numpy.__file__))

TRAIN = [[1, 2, 3, 1, 2], [5, 1, 2], [30], [4, 4, 4, 4]]
TEST = [[1, 2, 9], [3, 1], [4, 4, 1]]
TRAIN_LABELS, TEST_LABELS = [0, 1, 1, 0], [1, 0, 1]


def read_ids(path):
    """A second reader of the format, written from the format's description."""
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
        self.folder, self.npz = folder.name, os.path.join(folder.name, "imdb.npz")
        lists = [numpy.empty(len(values), dtype=object) for values in (TRAIN, TEST)]
        lists[0][:], lists[1][:] = TRAIN, TEST
        numpy.savez(self.npz, x_train=lists[0], y_train=numpy.array(TRAIN_LABELS), x_test=lists[1],
                    y_test=numpy.array(TEST_LABELS))

    def run_script(self, path, *flags, environment=None):
        environment = environment or os.environ | {"PYTHONPATH": TREE}
        return subprocess.run([sys.executable, "-B", SCRIPT, path, "--out", self.folder, *flags], text=True,
                              capture_output=True, check=False, env=environment)

    def convert(self, *flags):
        done = self.run_script(self.npz, "--trust", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        name = "imdb-bigrams" if "--bigrams" in flags else "imdb"
        return [read_ids(os.path.join(self.folder, f"{name}-{part}.ids")) for part in ("train", "test")]

    def test_files_with_bigrams_and_without_are_in_one_folder_that_is_made(self):
        words = self.convert("--out", os.path.join(self.folder))
        self.assertNotEqual(self.convert("--bigrams"), words)
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.endswith(".ids")),
                         ["imdb-bigrams-test.ids", "imdb-bigrams-train.ids", "imdb-test.ids", "imdb-train.ids"])
        self.assertEqual(self.run_script(self.npz, "--trust", "--out", os.path.join(self.folder, "a/b")).returncode, 0)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "a/b/imdb-train.ids")))

    def test_words_are_ranks_and_three_after_a_start_mark(self):
        (vocabulary, lists, labels), _ = self.convert("--words", "8")
        self.assertEqual(vocabulary, 8)
        # Ranks 5 and 30 are beyond the vocabulary, so they become the id 2.
        expected = {(1, 4, 5, 6, 4, 5): 0, (1, 2, 4, 5): 1, (1, 2): 1, (1, 7, 7, 7, 7): 0}
        self.assertEqual({tuple(ids): label for ids, label in zip(lists, labels)}, expected)

    def test_both_parts_come_in_the_shuffled_order(self):
        # numpy.random.RandomState(113) shuffles an array of four, then one of three.
        for (_, lists, labels), source, marks, order in zip(self.convert(), (TRAIN, TEST), (TRAIN_LABELS, TEST_LABELS),
                                                            ORDERS):
            self.assertEqual(lists, [[1] + [w + 3 for w in source[i]] for i in order])
            self.assertEqual(labels, [marks[i] for i in order])

    def test_pairs_of_the_training_are_numbered_by_first_appearance_and_appended(self):
        (vocabulary, lists, _), (test_vocabulary, test_lists, _) = self.convert("--words", "8", "--bigrams")
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

    def test_another_file_than_keras_is_read_only_if_it_is_trusted_and_a_missing_one_is_named(self):
        done = self.run_script(self.npz)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--trust", done.stderr)
        done = self.run_script(os.path.join(self.folder, "none.npz"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("none.npz", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["imdb.npz"])

    def test_a_python_without_numpy_says_what_to_install(self):
        hidden = os.path.join(self.folder, "hidden")
        os.makedirs(hidden)
        with open(os.path.join(hidden, "numpy.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError\n")
        done = self.run_script(self.npz, environment=os.environ | {"PYTHONPATH": hidden})
        self.assertEqual(done.returncode, 1)
        self.assertIn("pip install numpy", done.stderr)


ORDERS = [[3, 2, 0, 1], [1, 0, 2]]

if __name__ == "__main__":
    unittest.main()
