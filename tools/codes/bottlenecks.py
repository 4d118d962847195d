# Residual blocks of three convolutions, of which the first and the last are pointwise, with a projection of the input.
#
# for CHANNELS: 64, 256 | 128, 512 | 256, 1024 | 512, 2048
# size BATCH: 1 2
# size SIZE: 5 7 10 14 28 56
# input: BATCH 3 SIZE SIZE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        narrow, wide = {CHANNELS}
        self.stem, self.act = nn.Conv2d(3, wide // 2, 1), nn.ReLU()
        self.first, self.next, self.last = nn.Conv2d(wide // 2, narrow, 1), nn.Conv2d(narrow, narrow, 3, 2, 1), nn.Conv2d(narrow, wide, 1)
        self.skip = nn.Conv2d(wide // 2, wide, 1, 2)

    def forward(self, x):
        x = self.act(self.stem(x))
        return self.act(self.last(self.act(self.next(self.act(self.first(x))))) + self.skip(x))


net = Net()
