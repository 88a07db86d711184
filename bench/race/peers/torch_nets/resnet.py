"""Deep residual networks: the pre-activation form of He et al. 2016, and Darknet-53."""

from torch import nn

from torch_nets.layers import Chain, head, relu


def conv(c, k, window, stride=1):
    return nn.Conv2d(c, k, window, stride, window // 2, bias=False)


class PreactBlock(nn.Module):
    """Full pre-activation bottleneck. `bare`: no leading norm. `projects`: the shortcut convolves conv1's input."""

    def __init__(self, c, width, stride, bare, projects):
        super().__init__()
        if not bare:
            self.bn1 = nn.BatchNorm2d(c)
        self.bare, self.projects = bare, projects
        self.conv1, self.bn2 = conv(c, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn3 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3 = conv(width, 4 * width, 1)
        self.relu = relu()
        if projects:
            self.downsample = nn.Sequential(conv(c, 4 * width, 1, stride))

    def forward(self, x):
        y = x if self.bare else self.relu(self.bn1(x))
        shortcut = self.downsample(y) if self.projects else x
        y = self.conv3(self.relu(self.bn3(self.conv2(self.relu(self.bn2(self.conv1(y)))))))
        y += shortcut  # in place: no gradient needs the old values of y
        return y


class Resnet200(Chain):
    """fb.resnet.torch, models/preresnet.lua. Blocks 3, 24, 36, 3; shortcuts without batch norm; one norm at the end."""

    def __init__(self):
        layers, c = [("conv1", nn.Conv2d(3, 64, 7, 2, 3, bias=False)), ("bn1", nn.BatchNorm2d(64)), ("relu", relu()),
                     ("maxpool", nn.MaxPool2d(3, 2, 1))], 64
        for stage, count in enumerate((3, 24, 36, 3)):
            width, made = 64 << stage, []
            for i in range(count):
                made.append(PreactBlock(c, width, 2 if stage > 0 and i == 0 else 1, bare=stage == 0 and i == 0,
                                        projects=i == 0))
                c = 4 * width
            layers.append((f"layer{stage + 1}", nn.Sequential(*made)))
        super().__init__(*layers, ("bn_last", nn.BatchNorm2d(2048)), *head(2048, 1000))

    def forward(self, x):
        for name, module in self.named_children():
            x = module(x)
            if name == "bn_last":
                x = self.relu(x)  # the ReLU module of the stem is used a second time
        return x


resnet200 = Resnet200


def unit(c, k, window, stride=1):
    return Chain(("conv", conv(c, k, window, stride)), ("bn", nn.BatchNorm2d(k)),
                 ("act", nn.LeakyReLU(0.1, inplace=True)))


class DarkBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1, self.conv2 = unit(c, c // 2, 1), unit(c // 2, c, 3)

    def forward(self, x):
        return self.conv2(self.conv1(x)) + x  # not in place: the gradient of the leaky ReLU needs its output


def darknet53():
    """pjreddie/darknet, cfg/darknet53.cfg, with the module names of timm."""
    stages = []
    for i, count in enumerate((1, 2, 8, 8, 4)):
        c = 64 << i
        stages.append(Chain(("conv_down", unit(c // 2, c, 3, 2)),
                            ("blocks", nn.Sequential(*(DarkBlock(c) for _ in range(count))))))
    return Chain(("stem", Chain(("conv1", unit(3, 32, 3)))), ("stages", nn.Sequential(*stages)),
                 ("avgpool", nn.AdaptiveAvgPool2d(1)), ("flatten", nn.Flatten()),
                 ("head", Chain(("fc", nn.Linear(1024, 1000)))))
