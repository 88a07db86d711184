#!/usr/bin/env python3
"""Trains a workload in Keras, for a race by epochs: usage: keras_training.py CONFIG, JSON as variants.py has it.

With the backend that KERAS_BACKEND names (of a race: torch), by Keras' own train_on_batch, from Keras' own initial
values. The networks are those of keras-cntk-benchmark.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import child
import keras
import numpy
import training_worker
from keras import layers, optimizers


def network(name, vocabulary):
    """Logits are not used: losses are of probabilities, as in the examples."""
    relu, softmax, sigmoid = ({"activation": kind} for kind in ("relu", "softmax", "sigmoid"))
    found = {
        "mnist_mlp": [layers.Flatten(), layers.Dense(512, **relu), layers.Dropout(0.2), layers.Dense(512, **relu),
                      layers.Dropout(0.2), layers.Dense(10, **softmax)],
        "mnist_cnn": [layers.Conv2D(32, 3, **relu), layers.Conv2D(64, 3, **relu), layers.MaxPooling2D(),
                      layers.Dropout(0.25), layers.Flatten(), layers.Dense(128, **relu), layers.Dropout(0.5),
                      layers.Dense(10, **softmax)],
        "cifar10_cnn": [layers.Conv2D(32, 3, padding="same", **relu), layers.Conv2D(32, 3, **relu),
                        layers.MaxPooling2D(), layers.Dropout(0.25), layers.Conv2D(64, 3, padding="same", **relu),
                        layers.Conv2D(64, 3, **relu), layers.MaxPooling2D(), layers.Dropout(0.25), layers.Flatten(),
                        layers.Dense(512, **relu), layers.Dropout(0.5), layers.Dense(10, **softmax)],
        "imdb_fasttext": [layers.Embedding(vocabulary, 50), layers.GlobalAveragePooling1D(),
                          layers.Dense(1, **sigmoid)],
        "imdb_bilstm": [layers.Embedding(vocabulary, 128), layers.Bidirectional(layers.LSTM(64)), layers.Dropout(0.5),
                        layers.Dense(1, **sigmoid)],
        "lstm_text": [layers.LSTM(128), layers.Dense(vocabulary, **softmax)],
    }
    return keras.Sequential(found[name])


def optimiser(name):
    if name == "mnist_cnn":
        return optimizers.Adadelta(1.0, rho=0.95, epsilon=1e-8)
    if name.startswith("imdb"):
        return optimizers.Adam(1e-3, epsilon=1e-8)
    return optimizers.RMSprop({"cifar10_cnn": 1e-4, "lstm_text": 1e-2}.get(name, 1e-3), epsilon=1e-8)


class Training:
    def __init__(self, config):
        name, initial = config["net"], training_worker.initial(config["files"])
        self.name, self.batch = name, config["batch"]
        self.vocabulary = (initial["embedding_1.weight"].shape[0] if name.startswith("imdb")
                           else initial["dense_1.bias"].size)
        self.net = network(name, self.vocabulary)
        loss = "binary_crossentropy" if name.startswith("imdb") else "sparse_categorical_crossentropy"
        self.net.compile(loss=loss, optimizer=optimiser(name))
        self.batches = []

    def prepare(self, x, labels):
        if self.name.startswith(("mnist", "cifar")):
            x = numpy.ascontiguousarray(numpy.transpose(x, (0, 2, 3, 1)))
        else:
            x = numpy.array(x).reshape(len(x), -1).astype("int32")
            if self.name == "lstm_text":
                x = numpy.eye(self.vocabulary, dtype="float32")[x]
        labels = numpy.array(labels).astype("int32")
        if self.name.startswith("imdb"):
            labels = labels[:, None].astype("float32")
        self.batches = [(x[i:i + self.batch], labels[i:i + self.batch]) for i in range(0, len(x), self.batch)]

    def run(self):
        self.net.reset_metrics()
        for x, labels in self.batches:
            loss = self.net.train_on_batch(x, labels)
        return loss


def main():
    config = json.loads(sys.argv[1])
    if keras.backend.backend() == "torch":
        import torch
        torch.set_num_threads(config["threads"])
    keras.utils.set_random_seed(0)
    greeting = {"keras": keras.__version__, "keras_backend": keras.backend.backend()}
    child.serve(lambda: training_worker.Server(greeting, Training(config), config))


if __name__ == "__main__":
    main()
