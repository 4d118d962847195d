# Linear layers of sequences, with what is commonly fused into them: no bias, residuals, gates, scales.
#
# for WIDTH: 32 | 64 | 256 | 768 | 1024
# for BIAS: True | False
# size BATCH: 1 2 5
# size LENGTH: 1 2 7 100
# input: BATCH LENGTH {WIDTH}
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear({WIDTH}, 4 * {WIDTH}, bias={BIAS})
        self.b = nn.Linear({WIDTH}, 4 * {WIDTH}, bias={BIAS})
        self.c = nn.Linear(4 * {WIDTH}, {WIDTH}, bias={BIAS})
        self.d = nn.Linear({WIDTH}, {WIDTH}, bias={BIAS})
        self.scale = nn.Parameter(torch.ones({WIDTH}))

    def forward(self, x):
        swiglu = self.c(F.silu(self.a(x)) * self.b(x))
        geglu = self.c(F.gelu(self.a(x)) * self.b(x))
        reglu = self.c(F.relu(self.a(x)) * self.b(x))
        glu = self.c(torch.sigmoid(self.a(x)) * self.b(x))
        gates = swiglu, geglu, reglu, glu, x + swiglu
        fed = self.c(F.gelu(self.a(x), approximate='tanh')), x + self.c(F.gelu(self.a(x)))
        sums = x + self.scale * self.d(x), x + self.d(x), F.relu(x + self.d(x)), self.d(x) + self.d(F.relu(x))
        return gates, fed, sums, self.d(x) * x, self.d(x[:, 0])


net = Net()
