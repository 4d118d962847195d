# Pointwise convolutions to few channels, and convolutions of their results that are concatenated.
#
# for CHANNELS: 16, 64 | 32, 128 | 48, 192 | 64, 256
# size BATCH: 1 2
# size SIZE: 5 7 9 13 14 27 55
# input: BATCH 64 SIZE SIZE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        narrow, wide = {CHANNELS}
        self.stem, self.act = nn.Conv2d(64, 128, 1), nn.ReLU()
        self.squeeze, self.one, self.three = nn.Conv2d(128, narrow, 1), nn.Conv2d(narrow, wide, 1), nn.Conv2d(narrow, wide, 3, padding=1)

    def forward(self, x):
        x = self.act(self.squeeze(self.act(self.stem(x))))
        return torch.cat([self.act(self.one(x)), self.act(self.three(x))], 1)


net = Net()
