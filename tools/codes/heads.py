# Last layers of networks on images: a pointwise convolution, and the means of its channels.
#
# for WIDE: 960 | 1000 | 1280
# for ACT: nn.ReLU() | nn.ReLU6() | nn.SiLU() | nn.Hardswish()
# size BATCH: 1 2
# size SIZE: 4 5 7 8 10 13 14
# input: BATCH 3 2*SIZE 2*SIZE
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.last, self.act = nn.Conv2d(3, 320, 3, 2, 1), nn.Conv2d(320, {WIDE}, 1), {ACT}
        self.head = nn.Linear({WIDE}, 10)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.act(self.last(self.stem(x))), 1)
        return self.head(torch.flatten(x, 1))


net = Net()
