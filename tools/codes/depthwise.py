# Inverted residuals: a pointwise convolution, a depthwise one, and another pointwise one.
#
# for CONV: 3, 1 | 3, 2 | 5, 1 | 5, 2
# for ACT: nn.ReLU6() | nn.SiLU() | nn.Hardswish()
# for BIAS: True | False
# size BATCH: 1
# size SIZE: 8 15 28 56 224
# input: BATCH 3 SIZE SIZE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        kernel, stride = {CONV}
        self.stem, self.act = nn.Conv2d(3, 24, 3, 2, 1, bias={BIAS}), {ACT}
        self.expand = nn.Conv2d(24, 144, 1, bias={BIAS})
        self.apart = nn.Conv2d(144, 144, kernel, 1, kernel // 2, groups=144, bias={BIAS})
        self.project = nn.Conv2d(144, 24, 1, bias={BIAS})
        self.wider = nn.Conv2d(24, 64, 1, bias={BIAS})
        self.step = nn.Conv2d(64, 64, kernel, stride, kernel // 2, groups=64, bias={BIAS})
        self.last = nn.Conv2d(64, 320, 1, bias={BIAS})

    def forward(self, x):
        x = self.act(self.stem(x))
        x = x + self.project(self.act(self.apart(self.act(self.expand(x)))))
        return self.last(self.act(self.step(self.act(self.wider(x)))))


net = Net()
