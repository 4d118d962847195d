# Normalisations over the last dimension. Its size is a constant of the code.
#
# for WIDTH: 32 | 64 | 96 | 128 | 192 | 256 | 320 | 384 | 512 | 640 | 768 | 1024 | 1280 | 1536 | 2048 | 3072 | 4096
# for EPS: 1e-5 | 1e-6 | 1e-12
# size BATCH: 1 2
# size LENGTH: 1 2 100
# input: BATCH LENGTH {WIDTH}
# input: BATCH LENGTH {WIDTH}
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm({WIDTH}, eps={EPS})
        self.scale = nn.Parameter(torch.ones({WIDTH}))

    def forward(self, x, y):
        rms = self.scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + {EPS}))
        total = x + y
        return self.norm(x), self.norm(total), rms, total, self.norm(x)[:, 0]


net = Net()
