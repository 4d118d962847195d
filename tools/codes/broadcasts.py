# Operators on tensors of which one is broadcast.
#
# for X: N C | N H C
# for Y: C | N 1 C | H C
# size N: 1 2 17
# size C: 1 3 100
# size H: 1 7
# input: {X}
# input: {Y}
# input: N C H H
# input: N C 1 1
# input: C 1 1
import torch.nn.functional as F


class Net(nn.Module):
    def forward(self, x, y, image, gate, scale):
        a = x + y, x * y, x - y, x / y, x * y + y, F.relu(x + y)
        b = image * gate, image * torch.sigmoid(gate), image + gate, image * scale, image + scale, image * scale + scale, (image - scale) / scale
        return a, b


net = Net()
