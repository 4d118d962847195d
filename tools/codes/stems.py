# First layers of networks on images, with pooling.
#
# for CONV: 3, 1 | 3, 2 | 7, 2
# for ACT: nn.ReLU() | nn.SiLU()
# for BIAS: True | False
# size BATCH: 1 2
# size SIZE: 32 56 224
# input: BATCH 3 SIZE SIZE
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        kernel, stride = {CONV}
        self.stem = nn.Sequential(nn.Conv2d(3, 64, kernel, stride, kernel // 2, bias={BIAS}), {ACT}, nn.MaxPool2d(3, 2, 1))
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.stem(x), 1), 1))


net = Net()
