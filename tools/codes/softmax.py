# Softmax and reductions over each dimension.
#
# for DIM: 0 | 1 | 2 | -1 | (2, 3)
# size N: 1 17
# size C: 3 100
# size H: 7 64
# input: N C
# input: N C H
# input: N C H H
class Net(nn.Module):
    def forward(self, x, y, z):
        a = torch.softmax(x, -1), torch.log_softmax(x, -1), x.sum(), x.amax(), x.argmax(-1)
        b = torch.softmax(y, 1), torch.softmax(y, -1), torch.log_softmax(y, -1), y.argmax(-1)
        c = z.sum({DIM}), z.amax({DIM}), z.amin({DIM})
        d = torch.softmax(z, 1), torch.softmax(z, -1)
        return a, b, c, d


net = Net()
