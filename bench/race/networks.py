"""The networks and trainings that may be raced, and the protocol of each network, which lamina_bench prints."""

import csv
import functools
import os
import subprocess
import types

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.normpath(os.path.join(HERE, "../../build/release/bench/lamina_bench"))
ASKED = "LAMINA_BENCH"  # environment variable of the program to ask; workers inherit it

PUBLISHED = ("alexnet", "inception_v1", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
             "resnet200")
# Networks that Lamina has by name.
NAMES = PUBLISHED + ("overfeat", "alexnet_owt", "vgg_a", "googlenet_cb", "googlenet_tv", "mnist_mlp", "mnist_cnn",
                     "cifar10_cnn", "darknet53", "unet", "dcgan_generator", "dcgan_discriminator", "resnext50_32x4d",
                     "mobilenet_v2", "efficientnet_b0", "convnext_tiny")
WORKLOADS = ("mnist_mlp", "mnist_cnn", "cifar10_cnn", "imdb_fasttext", "imdb_bilstm", "lstm_text")


@functools.lru_cache(maxsize=None)
def table(program):
    """{network of the program's zoo: its protocol}."""
    # A protocol: size of the image, channels, and whether the network ends in a softmax, computes the image's gradient,
    # and adds to the gradients of parameters.
    done = subprocess.run([program, "networks", "--format=csv"], stdout=subprocess.PIPE, text=True, check=True)
    flags = ("softmax", "input_gradient", "accumulate")
    return {row["network"]: types.SimpleNamespace(image=int(row["image"]), channels=int(row["channels"]),
                                                  **{flag: row[flag] == "yes" for flag in flags})
            for row in csv.DictReader(done.stdout.splitlines())}


def name_of(network):
    """The name of a network in rows. The network of a file has the file's name."""
    return os.path.basename(network).removesuffix(".onnx")


def protocol_of(name):
    """The protocol of a network. A file has lamina_bench's usual protocol of training, and images of its own size."""
    if name.endswith(".onnx"):
        return types.SimpleNamespace(softmax=False, input_gradient=False, accumulate=True)
    return table(os.environ.get(ASKED, BENCH))[name]


def torch_name(name):
    """PyTorch's name of a parameter of a file that PyTorch exported: /a/a.0/b/Conv.weight is a.0.b.weight."""
    if not name.startswith("/"):
        return name
    *scopes, node = name[1:].split("/")
    path = []
    for scope in scopes:  # a child of a Sequential has the name of its parent, too
        path[-1:] = [scope] if path and scope.startswith(path[-1] + ".") else [*path[-1:], scope]
    return ".".join([*path, node.partition(".")[2]])
