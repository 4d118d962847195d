# Gates of channels, computed from the means of images: two layers, and a product.
#
# for CHANNELS: 32, 8 | 96, 4 | 144, 6 | 240, 10 | 480, 20 | 672, 28 | 1152, 48
# for ACT: nn.SiLU(), nn.Sigmoid() | nn.ReLU(), nn.Hardsigmoid()
# size BATCH: 1 2
# size SIZE: 7 14 28 56
# input: BATCH 32 SIZE SIZE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        channels, few = {CHANNELS}
        self.act, self.gate = {ACT}
        self.stem, self.apart = nn.Conv2d(32, channels, 1), nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.mean, self.fewer, self.more = nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, few, 1), nn.Conv2d(few, channels, 1)
        self.project = nn.Conv2d(channels, 32, 1)

    def forward(self, x):
        y = self.act(self.apart(self.act(self.stem(x))))
        y = self.gate(self.more(self.act(self.fewer(self.mean(y))))) * y
        return self.project(y) + x


net = Net()
