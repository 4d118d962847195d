# Convolutions of many channels, as in the last stages of networks on images.
#
# for CONV: 1, 1 | 3, 1 | 3, 2
# size BATCH: 1 2
# size SIZE: 3 4 5 7 8 10 14 20 28
# input: BATCH 3 SIZE SIZE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        kernel, stride = {CONV}
        half = kernel // 2
        self.stem, self.first = nn.Conv2d(3, 256, 1), nn.Conv2d(256, 256, kernel, 1, half)
        self.next, self.last = nn.Conv2d(256, 512, kernel, stride, half), nn.Conv2d(512, 512, kernel, 1, half)
        self.skip, self.narrow = nn.Conv2d(256, 512, 1, stride), nn.Conv2d(512, 256, 1)
        self.act = nn.ReLU()

    def forward(self, x):
        x = self.act(self.stem(x))
        x = self.act(self.first(x) + x)
        x = self.act(self.last(self.act(self.next(x))) + self.skip(x))
        return self.act(self.narrow(self.act(self.last(x)))), self.narrow(x)


net = Net()
