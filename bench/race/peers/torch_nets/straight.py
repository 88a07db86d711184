"""Networks without branches: AlexNet, OverFeat and the Keras examples."""

from torch import nn

from torch_nets.layers import Chain, relu


def alexnet():
    """BVLC AlexNet: two groups in conv2, conv4 and conv5; LRN before pooling; pooling rounded up."""
    def pool():
        return nn.MaxPool2d(3, 2, ceil_mode=True)
    return Chain(
        ("conv1", nn.Conv2d(3, 96, 11, 4)), ("relu1", relu()), ("norm1", nn.LocalResponseNorm(5)), ("pool1", pool()),
        ("conv2", nn.Conv2d(96, 256, 5, 1, 2, groups=2)), ("relu2", relu()), ("norm2", nn.LocalResponseNorm(5)),
        ("pool2", pool()),
        ("conv3", nn.Conv2d(256, 384, 3, 1, 1)), ("relu3", relu()),
        ("conv4", nn.Conv2d(384, 384, 3, 1, 1, groups=2)), ("relu4", relu()),
        ("conv5", nn.Conv2d(384, 256, 3, 1, 1, groups=2)), ("relu5", relu()), ("pool5", pool()),
        ("flatten", nn.Flatten()),
        ("fc6", nn.Linear(9216, 4096)), ("relu6", relu()), ("drop6", nn.Dropout(0.5)),
        ("fc7", nn.Linear(4096, 4096)), ("relu7", relu()), ("drop7", nn.Dropout(0.5)),
        ("fc8", nn.Linear(4096, 1000)))


def overfeat():
    """OverFeat (fast): conv2 is not padded; no dropout, no softmax."""
    return Chain(
        ("conv1", nn.Conv2d(3, 96, 11, 4)), ("relu1", relu()), ("pool1", nn.MaxPool2d(2)),
        ("conv2", nn.Conv2d(96, 256, 5)), ("relu2", relu()), ("pool2", nn.MaxPool2d(2)),
        ("conv3", nn.Conv2d(256, 512, 3, 1, 1)), ("relu3", relu()),
        ("conv4", nn.Conv2d(512, 1024, 3, 1, 1)), ("relu4", relu()),
        ("conv5", nn.Conv2d(1024, 1024, 3, 1, 1)), ("relu5", relu()), ("pool5", nn.MaxPool2d(2)),
        ("flatten", nn.Flatten()),
        ("fc6", nn.Linear(36864, 3072)), ("relu6", relu()),
        ("fc7", nn.Linear(3072, 4096)), ("relu7", relu()),
        ("fc8", nn.Linear(4096, 1000)))


def mnist_mlp():
    return Chain(("flatten", nn.Flatten()),
                 ("dense_1", nn.Linear(784, 512)), ("relu_1", relu()), ("dropout_1", nn.Dropout(0.2)),
                 ("dense_2", nn.Linear(512, 512)), ("relu_2", relu()), ("dropout_2", nn.Dropout(0.2)),
                 ("dense_3", nn.Linear(512, 10)))


def mnist_cnn():
    return Chain(("conv2d_1", nn.Conv2d(1, 32, 3)), ("relu_1", relu()), ("conv2d_2", nn.Conv2d(32, 64, 3)),
                 ("relu_2", relu()), ("max_pooling2d_1", nn.MaxPool2d(2)), ("dropout_1", nn.Dropout(0.25)),
                 ("flatten_1", nn.Flatten()), ("dense_1", nn.Linear(9216, 128)), ("relu_3", relu()),
                 ("dropout_2", nn.Dropout(0.5)), ("dense_2", nn.Linear(128, 10)))


def cifar10_cnn():
    return Chain(("conv2d_1", nn.Conv2d(3, 32, 3, 1, 1)), ("relu_1", relu()), ("conv2d_2", nn.Conv2d(32, 32, 3)),
                 ("relu_2", relu()), ("max_pooling2d_1", nn.MaxPool2d(2)), ("dropout_1", nn.Dropout(0.25)),
                 ("conv2d_3", nn.Conv2d(32, 64, 3, 1, 1)), ("relu_3", relu()), ("conv2d_4", nn.Conv2d(64, 64, 3)),
                 ("relu_4", relu()), ("max_pooling2d_2", nn.MaxPool2d(2)), ("dropout_2", nn.Dropout(0.25)),
                 ("flatten_1", nn.Flatten()), ("dense_1", nn.Linear(2304, 512)), ("relu_5", relu()),
                 ("dropout_3", nn.Dropout(0.5)), ("dense_2", nn.Linear(512, 10)))
