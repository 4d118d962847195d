# Common pointwise operators, and chains of them.
#
# for SHAPE: N C | N C H H
# size N: 1 2 17
# size C: 1 3 100
# size H: 1 7
# input: {SHAPE}
# input: {SHAPE}
import torch.nn.functional as F


class Net(nn.Module):
    def forward(self, x, y):
        a = x.relu(), x.sigmoid(), x.tanh(), x.exp(), x.log(), x.sqrt(), x.rsqrt(), x.abs(), x.neg(), x.square(), x.reciprocal()
        b = F.gelu(x), F.gelu(x, approximate='tanh'), F.silu(x), F.softplus(x), F.leaky_relu(x), F.elu(x), F.hardswish(x), F.hardsigmoid(x), F.mish(x)
        c = x + 1.0, x * 2.0, x - 1.0, x / 2.0, 1.0 - x, x * 0.5, x.clamp(0.0, 1.0), x.clamp(min=1e-6), x ** 3, (x - 0.5) / 0.5
        d = x + y, x - y, x * y, x / y, torch.maximum(x, y), torch.minimum(x, y), x * y.sigmoid(), F.relu(x + y), x + y * x, torch.where(x > y, x, y)
        e = x > y, x == y, x > 0.0, x.isnan(), (x > 0.0).float(), x.round(), x.sin(), x.cos(), x.erf(), x.floor()
        return a, b, c, d, e


net = Net()
