# Transposed convolutions that double the sides of images, and convolutions of their results beside those of earlier layers.
#
# for WIDTH: 16 | 32 | 64
# for KERNEL: 2, 2, 0 | 4, 2, 1
# size BATCH: 1
# size SIZE: 4 8 14 20 28 32 40 50 56 112
# input: BATCH 3 SIZE SIZE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        kernel, stride, padding = {KERNEL}
        self.stem, self.down = nn.Conv2d(3, {WIDTH}, 3, padding=1), nn.Conv2d({WIDTH}, 2 * {WIDTH}, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * {WIDTH}, {WIDTH}, kernel, stride, padding)
        self.join, self.head = nn.Conv2d(2 * {WIDTH}, {WIDTH}, 3, padding=1), nn.Conv2d({WIDTH}, 2, 1)
        self.act, self.pool = nn.ReLU(), nn.MaxPool2d(2)

    def forward(self, x):
        x = self.act(self.stem(x))
        y = self.up(self.act(self.down(self.pool(x))))
        return self.head(self.act(self.join(torch.cat([x, y], 1))))


net = Net()
