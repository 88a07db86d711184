"""A PyTorch network in one mode and layout, to be timed pass by pass."""

import contextlib
import copy

import child
import networks
import torch
import torch_nets
from timers import EventTimer, WallTimer

FORMATS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}


class TimedNetwork:
    """A network with the settings of a variant (torch_settings.py), on the variant's device."""
    # On a GPU, an untimed pass runs right before every timed pass, as in Lamina. So clocks and caches are as in a
    # sequence of passes.

    def __init__(self, name, mode, layout, batch, variant, shape=None):
        """`shape`: shape of the images. Without it, the batch and the network's protocol give their extents."""
        its, device = networks.protocol_of(name), variant.device
        self.name, self.training, self.variant = name, mode == "training", variant
        self.net = torch_nets.randomise(torch_nets.build(name), seed=1).to(device, memory_format=FORMATS[layout])
        self.net.train(self.training)
        shape = shape or (batch, its.channels, its.image, its.image)
        self.x = torch.empty(shape, device=device, memory_format=FORMATS[layout])
        self.wants_dx = its.input_gradient and self.training
        self.overwrites = not its.accumulate
        self.timer = EventTimer(torch.cuda) if device.type == "cuda" else WallTimer()
        self.call = variant.callable(self.net)
        self.input = self.y = self.dy = None
        if self.training and not self.overwrites:
            for parameter in self.net.parameters():  # so the first pass adds, too, and the memory never moves
                parameter.grad = torch.zeros_like(parameter)

    def load(self, weights):
        try:
            torch_nets.load(self.net, weights)
        except RuntimeError as error:  # its message has several lines
            if not self.name.endswith(".onnx"):
                raise
            raise child.Refused("torchvision's network has other parameters than this file: export that network by "
                                "dynamo=False for training, as docs/peers.md shows "
                                f"({' '.join(str(error).split())[:160]})") from error

    def computed(self, x, trained):
        """The output for x, as an array. `trained`: computed as in a training pass; otherwise as in inference."""
        self.net.train(self.training and trained)
        self.input = self.x.detach().copy_(x).requires_grad_(self.wants_dx)
        with torch.set_grad_enabled(self.training and trained), self.variant.context():
            y = self.call(self.input).detach().float().cpu().numpy()
        self.net.train(self.training)
        self.forget()
        return y

    def rounding(self, x, trained):
        """The difference between the outputs for x in the variant's precision and in f64. Both run eagerly."""
        net = copy.deepcopy(self.net).train(self.training and trained)
        with torch.no_grad():
            with self.variant.context():
                rounded = net(self.x.detach().copy_(x)).float().cpu().numpy()
            return child.difference(rounded, net.double()(x.to(self.x.device).double()).cpu().numpy())

    def draw_input(self):
        self.input = self.x.detach().normal_().requires_grad_(self.wants_dx)
        self.variant.begin_pass()

    def forward(self):
        with contextlib.ExitStack() as stack:
            if not self.training:
                stack.enter_context(torch.no_grad())
            stack.enter_context(self.variant.context())
            self.y = self.call(self.input)

    def draw_gradient(self):
        self.dy = torch.randn_like(self.y)
        if self.overwrites:
            self.net.zero_grad(set_to_none=True)

    def backward(self):
        self.y.backward(self.dy)

    def forget(self):
        """Frees the tensors that only this pass needed."""
        self.input = self.y = self.dy = None

    def run(self):
        """Runs one pass. Returns its seconds by the timer and by the process's CPU clock."""
        if self.variant.warms_each_pass:
            self.draw_input()
            self.forward()
            if self.training:
                self.draw_gradient()
                self.backward()
        self.draw_input()
        sample = self.timer.time("forward" if self.training else "inference", self.forward)[1]
        if self.training:
            self.draw_gradient()
            sample |= self.timer.time("backward", self.backward)[1]
        self.forget()
        return sample
