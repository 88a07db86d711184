"""Deep residual networks: He et al. 2015, their pre-activation form of 2016, and Darknet-53."""

from torch import nn

from torch_nets.layers import Add, Chain, head, relu

BASIC, BOTTLENECK = [3, 3], [1, 3, 1]
RESNETS = {
    "resnet18": ((2, 2, 2, 2), BASIC), "resnet34": ((3, 4, 6, 3), BASIC), "resnet50": ((3, 4, 6, 3), BOTTLENECK),
    "resnet101": ((3, 4, 23, 3), BOTTLENECK), "resnet152": ((3, 8, 36, 3), BOTTLENECK),
}


def conv(c, k, window, stride=1):
    return nn.Conv2d(c, k, window, stride, window // 2, bias=False)


class Block(nn.Module):
    """Post-activation block: convolutions of the given windows; the stride is in the first 3x3 ("v1.5")."""

    def __init__(self, c, width, windows, stride):
        super().__init__()
        out = width * (4 if len(windows) == 3 else 1)
        k = [width] * (len(windows) - 1) + [out]
        strided = windows.index(3)
        self.count = len(windows)
        for i, window in enumerate(windows):
            self.add_module(f"conv{i + 1}", conv(c if i == 0 else k[i - 1], k[i], window,
                                                 stride if i == strided else 1))
            self.add_module(f"bn{i + 1}", nn.BatchNorm2d(k[i]))
        self.relu, self.add = relu(), Add()
        self.downsample = None
        if stride != 1 or c != out:
            self.downsample = nn.Sequential(conv(c, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.count:
                y = self.relu(y)
        return self.relu(self.add(y, x if self.downsample is None else self.downsample(x)))


class PreactBlock(nn.Module):
    """Full pre-activation bottleneck. `bare`: no leading norm; `projects`: the shortcut convolves what conv1 reads."""

    def __init__(self, c, width, stride, bare, projects):
        super().__init__()
        if not bare:
            self.bn1 = nn.BatchNorm2d(c)
        self.bare, self.projects = bare, projects
        self.conv1, self.bn2 = conv(c, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn3 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3 = conv(width, 4 * width, 1)
        self.relu, self.add = relu(), Add()
        if projects:
            self.downsample = nn.Sequential(conv(c, 4 * width, 1, stride))

    def forward(self, x):
        y = x if self.bare else self.relu(self.bn1(x))
        shortcut = self.downsample(y) if self.projects else x
        y = self.conv2(self.relu(self.bn2(self.conv1(y))))
        return self.add(self.conv3(self.relu(self.bn3(y))), shortcut)


def stem():
    return [("conv1", nn.Conv2d(3, 64, 7, 2, 3, bias=False)), ("bn1", nn.BatchNorm2d(64)), ("relu", relu()),
            ("maxpool", nn.MaxPool2d(3, 2, 1))]


def stages(counts, expansion, make):
    """The stem, and blocks in four stages. `make` gets a block's channels, width, stride, stage and number there."""
    layers, c = stem(), 64
    for stage, count in enumerate(counts):
        width, made = 64 << stage, []
        for i in range(count):
            made.append(make(c, width, 2 if stage > 0 and i == 0 else 1, stage, i))
            c = width * expansion
        layers.append((f"layer{stage + 1}", nn.Sequential(*made)))
    return layers


def resnet(counts, windows):
    expansion = 4 if len(windows) == 3 else 1
    layers = stages(counts, expansion, lambda c, width, stride, *_: Block(c, width, windows, stride))
    return Chain(*layers, *head(512 * expansion, 1000))


class Resnet200(Chain):
    """fb.resnet.torch, models/preresnet.lua: blocks 3, 24, 36, 3; shortcuts without batch norm; one norm at the end."""

    def __init__(self):
        layers = stages((3, 24, 36, 3), 4, lambda c, width, stride, stage, i: PreactBlock(
            c, width, stride, bare=stage == 0 and i == 0, projects=i == 0))
        super().__init__(*layers, ("bn_last", nn.BatchNorm2d(2048)), *head(2048, 1000))

    def forward(self, x):
        for name, module in self.named_children():
            x = module(x)
            if name == "bn_last":
                x = self.relu(x)  # the ReLU of the stem, a second time
        return x


def resnet200():
    return Resnet200()


def unit(c, k, window, stride=1):
    return Chain(("conv", conv(c, k, window, stride)), ("bn", nn.BatchNorm2d(k)),
                 ("act", nn.LeakyReLU(0.1, inplace=True)))


class DarkBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1, self.conv2 = unit(c, c // 2, 1), unit(c // 2, c, 3)

    def forward(self, x):
        return self.conv2(self.conv1(x)) + x  # not over the ReLU's values, which its gradient needs


def darknet53():
    """pjreddie/darknet, cfg/darknet53.cfg, in timm's names."""
    stages = []
    for i, count in enumerate((1, 2, 8, 8, 4)):
        c = 64 << i
        stages.append(Chain(("conv_down", unit(c // 2, c, 3, 2)),
                            ("blocks", nn.Sequential(*(DarkBlock(c) for _ in range(count))))))
    return Chain(("stem", Chain(("conv1", unit(3, 32, 3)))), ("stages", nn.Sequential(*stages)),
                 ("avgpool", nn.AdaptiveAvgPool2d(1)), ("flatten", nn.Flatten()),
                 ("head", Chain(("fc", nn.Linear(1024, 1000)))))
