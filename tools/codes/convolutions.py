# Convolutions with batch normalisation, activations and residuals. Numbers of channels are arguments of the code.
#
# for KERNEL: 1 | 3 | 5 | 7
# for STRIDE: 1 | 2
# for ACT: nn.ReLU() | nn.SiLU() | nn.Hardswish()
# for WIDTH: 16 | 64
# size BATCH: 1 2
# size SIZE: 8 15 56
# input: BATCH 3 SIZE SIZE
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        half, act = {KERNEL} // 2, {ACT}
        self.stem = nn.Sequential(nn.Conv2d(3, {WIDTH}, {KERNEL}, {STRIDE}, half), nn.BatchNorm2d({WIDTH}), act)
        self.body = nn.Sequential(nn.Conv2d({WIDTH}, {WIDTH}, {KERNEL}, 1, half, bias=False), nn.BatchNorm2d({WIDTH}))
        self.apart = nn.Sequential(nn.Conv2d({WIDTH}, {WIDTH}, {KERNEL}, {STRIDE}, half, groups={WIDTH}), act)
        self.next = nn.Sequential(nn.Conv2d({WIDTH}, 2 * {WIDTH}, {KERNEL}, {STRIDE}, half), act)
        self.act, self.head = act, nn.Linear(2 * {WIDTH}, 10)

    def forward(self, x):
        x = self.stem(x)
        x = self.act(x + self.body(x))
        x = self.next(self.apart(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


net = Net()
