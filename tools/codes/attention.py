# Encoder blocks with attention, as they are commonly written.
#
# for DEPTH: 32 | 64
# for SCALED: q @ k.transpose(-2, -1) / root | q @ k.transpose(-2, -1) * (1.0 / root) | (q * (1.0 / root)) @ k.transpose(-2, -1)
# for ACT: gelu | relu
# size BATCH: 1 2 5
# size LENGTH: 1 2 7 32 100 197
# input: BATCH LENGTH 4*{DEPTH}
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        width = 4 * {DEPTH}
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attended(self, q, k, v):
        b, h, n, d = q.shape
        root = {DEPTH} ** 0.5
        weights = torch.softmax({SCALED}, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, h * d))

    def fed(self, x):
        return self.down(F.{ACT}(self.up(x)))

    def joint(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, 4, {DEPTH}).permute(2, 0, 3, 1, 4).unbind(0)
        return self.attended(q, k, v)

    def split(self, x):
        b, n, c = x.shape
        q = self.q(x).view(b, n, 4, {DEPTH}).transpose(1, 2)
        k = self.k(x).view(b, n, 4, {DEPTH}).transpose(1, 2)
        v = self.v(x).view(b, n, 4, {DEPTH}).transpose(1, 2)
        return self.attended(q, k, v)

    def forward(self, x):
        first = x + self.joint(self.before(x))
        first = first + self.fed(self.between(first))
        second = self.before(x + self.split(x))
        second = self.between(second + self.fed(second))
        return first, second


net = Net()
