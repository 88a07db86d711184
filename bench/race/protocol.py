"""The networks that may be raced, and what the published tables timed of each. Needs no torch."""

# name: (image, channels, softmax in the timed net, its image gradient); see docs/networks.md
PROTOCOL = {
    "alexnet": (224, 3, True, True),
    "inception_v1": (224, 3, True, True),
    "vgg16": (224, 3, True, True),
    "vgg19": (224, 3, True, True),
    "resnet18": (224, 3, False, False),
    "resnet34": (224, 3, False, False),
    "resnet50": (224, 3, False, False),
    "resnet101": (224, 3, False, False),
    "resnet152": (224, 3, False, False),
    "resnet200": (224, 3, False, False),
    "overfeat": (231, 3, False, False),
    "alexnet_owt": (224, 3, False, False),
    "vgg_a": (224, 3, False, False),
    "googlenet_cb": (224, 3, False, False),
    "googlenet_tv": (224, 3, False, False),
    "mnist_mlp": (28, 1, True, False),
    "mnist_cnn": (28, 1, True, False),
    "cifar10_cnn": (32, 3, True, False),
    "bottleneck_stack": (56, 64, False, True),
}
PUBLISHED = list(PROTOCOL)[:10]
ZOO = [name for name in PROTOCOL if name != "bottleneck_stack"]  # those that Lamina has by name
OVERWRITES = {"mnist_mlp", "mnist_cnn", "cifar10_cnn"}  # Keras' nets: parameter gradients are not added up
