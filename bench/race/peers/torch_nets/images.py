"""Networks that work on images at several sizes: U-Net, and generator and discriminator of DCGAN."""

import torch
from torch import nn
from torch.nn import functional

from torch_nets.layers import Chain, relu


def double_conv(c, k):
    return Chain(("double_conv", nn.Sequential(
        nn.Conv2d(c, k, 3, 1, 1, bias=False), nn.BatchNorm2d(k), relu(),
        nn.Conv2d(k, k, 3, 1, 1, bias=False), nn.BatchNorm2d(k), relu())))


class Beside(nn.Module):
    """Concatenates the copy and x. x is padded by zeros for a row or a column that a pooling has dropped."""

    def forward(self, copy, x):
        (rows, columns), (h, w) = copy.shape[2:], x.shape[2:]
        return torch.cat((copy, functional.pad(x, (0, columns - w, 0, rows - h))), 1)


class Up(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up, self.concat = nn.ConvTranspose2d(c, c // 2, 2, 2), Beside()
        self.conv = double_conv(c, c // 2)

    def forward(self, x, copy):
        return self.conv(self.concat(copy, self.up(x)))


class Unet(nn.Module):
    """U-Net of milesial/Pytorch-UNet, unet/unet_model.py, bilinear=False, two classes."""

    def __init__(self):
        super().__init__()
        self.inc = double_conv(3, 64)
        for i in range(4):
            down = nn.Sequential(nn.MaxPool2d(2), double_conv(64 << i, 128 << i))
            self.add_module(f"down{i + 1}", Chain(("maxpool_conv", down)))
            self.add_module(f"up{i + 1}", Up(1024 >> i))
        self.outc = Chain(("conv", nn.Conv2d(64, 2, 1)))

    def forward(self, x):
        maps = [self.inc(x)]
        for i in range(4):
            maps.append(getattr(self, f"down{i + 1}")(maps[-1]))
        x = maps.pop()
        for i in range(4):
            x = getattr(self, f"up{i + 1}")(x, maps.pop())
        return self.outc(x)


unet = Unet


def dcgan_generator():
    """The generator of pytorch/examples, dcgan/main.py (from soumith/dcgan.torch): 100 random numbers to an image."""
    layers = [nn.ConvTranspose2d(100, 512, 4, 1, 0, bias=False), nn.BatchNorm2d(512), relu()]
    for k in (256, 128, 64):
        layers += [nn.ConvTranspose2d(2 * k, k, 4, 2, 1, bias=False), nn.BatchNorm2d(k), relu()]
    return Chain(("main", nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())))


def dcgan_discriminator():
    """The discriminator of pytorch/examples, dcgan/main.py, without the final sigmoid."""
    layers = [nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
    for k in (128, 256, 512):
        layers += [nn.Conv2d(k // 2, k, 4, 2, 1, bias=False), nn.BatchNorm2d(k), nn.LeakyReLU(0.2, inplace=True)]
    return Chain(("main", nn.Sequential(*layers, nn.Conv2d(512, 1, 4, 1, 0, bias=False))))
