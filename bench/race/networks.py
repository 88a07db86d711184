"""The networks and trainings that may be raced, and how a network is timed, which lamina_bench is asked for."""

import csv
import dataclasses
import functools
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.normpath(os.path.join(HERE, "../../build/release/bench/lamina_bench"))
ASKED = "LAMINA_BENCH"  # environment variable of the program to ask; workers inherit it

PUBLISHED = ("alexnet", "inception_v1", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
             "resnet200")
TORCHVISION = ("resnext50_32x4d", "mobilenet_v2", "efficientnet_b0", "convnext_tiny")  # its own definitions are raced
NAMES = PUBLISHED + ("overfeat", "alexnet_owt", "vgg_a", "googlenet_cb", "googlenet_tv", "mnist_mlp", "mnist_cnn",
                     "cifar10_cnn", "darknet53", "unet", "dcgan_generator", "dcgan_discriminator") + TORCHVISION  # networks that Lamina has by name
WORKLOADS = ("mnist_mlp", "mnist_cnn", "cifar10_cnn", "imdb_fasttext", "imdb_bilstm", "lstm_text")


@dataclasses.dataclass(frozen=True)
class Protocol:
    image: int  # rows and columns
    channels: int
    softmax: bool  # the timed net ends in one
    input_gradient: bool  # the image's gradient is computed
    accumulate: bool  # parameter gradients are added up


@functools.lru_cache(maxsize=None)
def table(program):
    """{network: Protocol} of the program's zoo."""
    done = subprocess.run([program, "networks", "--format=csv"], stdout=subprocess.PIPE, text=True, check=True)
    flags = ("softmax", "input_gradient", "accumulate")
    return {row["network"]: Protocol(int(row["image"]), int(row["channels"]), *(row[flag] == "yes" for flag in flags))
            for row in csv.DictReader(done.stdout.splitlines())}


def name_of(network):
    """The name of a network in rows; a file's network has the file's name."""
    return os.path.basename(network).removesuffix(".onnx")


def protocol_of(name):
    """How a network is timed."""
    return table(os.environ.get(ASKED, BENCH))[name]
