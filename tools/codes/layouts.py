# Copies: transposes, concatenations, slices, padding, repetitions.
#
# size N: 1 2 17
# size C: 2 3 100
# size H: 2 7 64
# input: N C
# input: N H C
# input: N C H H
import torch.nn.functional as F


class Net(nn.Module):
    def forward(self, x, y, z):
        a = x.t().contiguous(), torch.cat([x, x], 0), torch.cat([x, x], 1), torch.stack([x, x]), torch.stack([x, x], 1), x[:, 1:].contiguous(), x.flip(0), x.flip(1)
        b = y.transpose(1, 2).contiguous(), y.permute(1, 0, 2).contiguous(), torch.cat([y, y], 1), torch.cat([y, y], 2), y[:, 0].contiguous(), y[:, -1].contiguous(), y[:, 1:].contiguous()
        c = z.flatten(2).transpose(1, 2).contiguous(), z.permute(0, 2, 3, 1).contiguous(), torch.cat([z, z], 1), F.pad(z, [1, 1, 1, 1]), z[:, :, ::2, ::2].contiguous(), z.roll(1, 2)
        d = F.pad(y, [0, 0, 1, 0]), F.pad(x, [1, 1]), x.repeat(2, 3), F.interpolate(z, scale_factor=2.0, mode='nearest')
        return a, b, c, d


net = Net()
