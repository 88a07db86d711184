"""The network of Going Deeper with Convolutions, Szegedy et al. 2014, in two published forms."""

from torch import nn

from torch_nets.layers import Chain, Concat, Narrow, head, relu


class Inception(nn.Module):
    """Four branches, concatenated: 1x1; 1x1, 3x3; 1x1, 5x5; 3x3 max pooling, 1x1."""

    def __init__(self, c, row):
        super().__init__()
        c1, r3, c3, r5, c5, pool = row
        self.branch1 = conv_relu(c, c1, 1)
        self.branch2 = nn.Sequential(conv_relu(c, r3, 1), conv_relu(r3, c3, 3))
        self.branch3 = nn.Sequential(conv_relu(c, r5, 1), conv_relu(r5, c5, 5))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_relu(c, pool, 1))
        self.concat = Concat()

    def forward(self, x):
        return self.concat(self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x))


def conv_relu(c, k, window, stride=1):
    return Chain(("conv", nn.Conv2d(c, k, window, stride, window // 2)), ("relu", relu()))


PAPER = {
    "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64), "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128),
}


def blocks(table, pools):
    """The nine blocks, with two poolings between some of them. pools: {name of the next block: pooling}."""
    layers, c = [], 192
    for name, row in table.items():
        if name in pools:
            layers.append(pools[name])
        layers.append((f"inception{name}", Inception(c, row)))
        c = row[0] + row[2] + row[4] + row[5]
    return layers


def inception_v1():
    """soumith/inception.torch. Differs from the paper: 204 and 48 in place of 208 and 32 channels, 1008 outputs."""
    table = PAPER | {"4a": (192, 96, 204, 16, 48, 64), "5a": (256, 160, 320, 48, 128, 128)}

    def norm():
        return nn.LocalResponseNorm(11, 0.00109999999404, 0.5, 2.0)
    return Chain(
        ("conv1", conv_relu(3, 64, 7, 2)), ("maxpool1", nn.MaxPool2d(3, 2, 1)), ("lrn1", norm()),
        ("conv2", conv_relu(64, 64, 1)), ("conv3", conv_relu(64, 192, 3)), ("lrn2", norm()),
        ("maxpool2", nn.MaxPool2d(3, 2, 1)),
        *blocks(table, {"4a": ("maxpool3", nn.MaxPool2d(3, 2)), "5a": ("maxpool4", nn.MaxPool2d(3, 2, 1))}),
        *head(1024, 1008), ("narrow", Narrow()))


def googlenet_cb():
    """convnet-benchmarks. The paper's table, no LRN, all four poolings padded by 1, a ReLU after the classifier."""
    def pool():
        return nn.MaxPool2d(3, 2, 1)
    return Chain(
        ("conv1", conv_relu(3, 64, 7, 2)), ("maxpool1", pool()), ("conv2", conv_relu(64, 64, 1)),
        ("conv3", conv_relu(64, 192, 3)), ("maxpool2", pool()),
        *blocks(PAPER, {"4a": ("maxpool3", pool()), "5a": ("maxpool4", pool())}),
        *head(1024, 1000), ("fc_relu", relu()))
