# Inverted residuals: a pointwise convolution, a depthwise one, and another pointwise one.
#
# for CHANNELS: 16, 96 | 24, 144 | 32, 192 | 40, 240 | 64, 384
# for LAYER: 3, 1, nn.ReLU6() | 3, 2, nn.ReLU6() | 3, 1, nn.SiLU() | 3, 2, nn.SiLU() | 5, 1, nn.SiLU() | 5, 2, nn.SiLU() | 3, 1, nn.Hardswish() | 3, 2, nn.Hardswish() | 5, 1, nn.Hardswish() | 5, 2, nn.Hardswish()
# size BATCH: 1
# size SIZE: 5 6 7 10 12 14 15 24 28 56 112
# input: BATCH 3 2*SIZE 2*SIZE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        narrow, wide = {CHANNELS}
        kernel, stride, self.act = {LAYER}
        self.stem, self.start = nn.Conv2d(3, 32, 3, 2, 1), nn.Conv2d(32, narrow, 1)
        self.expand, self.project = nn.Conv2d(narrow, wide, 1), nn.Conv2d(wide, narrow, 1)
        self.apart = nn.Conv2d(wide, wide, kernel, 1, kernel // 2, groups=wide)
        self.step = nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide)
        self.last = nn.Conv2d(wide, 1280, 1)

    def forward(self, x):
        x = self.start(self.act(self.stem(x)))
        x = x + self.project(self.act(self.apart(self.act(self.expand(x)))))
        x = self.project(self.act(self.step(self.act(self.expand(x)))))
        return self.act(self.last(self.act(self.expand(x))))


net = Net()
