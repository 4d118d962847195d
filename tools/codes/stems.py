# First layers of networks on images, with pooling.
#
# for LAYER: 64, 7, 2, 3 | 64, 3, 1, 1 | 32, 3, 1, 1 | 64, 3, 2, 0 | 32, 3, 2, 0 | 64, 3, 2, 1 | 32, 3, 2, 1
# for ACT: nn.ReLU() | nn.SiLU()
# size BATCH: 1 2
# size SIZE: 32 56 150 224
# input: BATCH 3 SIZE SIZE
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        width, kernel, stride, padding = {LAYER}
        self.stem = nn.Sequential(nn.Conv2d(3, width, kernel, stride, padding), {ACT}, nn.MaxPool2d(3, 2, 1))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.stem(x), 1), 1))


net = Net()
