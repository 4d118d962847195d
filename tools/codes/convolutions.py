# Convolutions with activations and residuals. Channels are arguments of the code; their numbers matter only for the choice of tiles. Convolutions without a
# bias share the code of those with one.
#
# for CONV: 1, 1 | 3, 1 | 3, 2
# for ACT: nn.ReLU() | nn.SiLU()
# size BATCH: 1 2
# size SIZE: 8 10 13 15 20 28 35 56
# input: BATCH 3 SIZE SIZE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        kernel, stride = {CONV}
        half = kernel // 2
        self.stem, self.first = nn.Conv2d(3, 64, kernel, 1, half), nn.Conv2d(64, 64, kernel, 1, half)
        self.next, self.last = nn.Conv2d(64, 128, kernel, stride, half), nn.Conv2d(128, 128, kernel, 1, half)
        self.skip, self.act = nn.Conv2d(64, 128, 1, stride), {ACT}

    def forward(self, x):
        x = self.act(self.stem(x))
        x = self.act(self.first(x) + x)
        y = self.last(self.act(self.next(x)))
        x = self.act(y + self.skip(x))
        return self.act(self.last(self.act(self.last(x))) + x)


net = Net()
