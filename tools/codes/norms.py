# Normalisations over the last dimension. Its size is a constant of the code.
#
# for WIDTH: 64 | 128 | 256 | 384 | 512 | 768 | 1024
# for EPS: 1e-5 | 1e-6
# size BATCH: 1 2
# size LENGTH: 1 2 100
# input: BATCH LENGTH {WIDTH}
# input: BATCH LENGTH {WIDTH}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm({WIDTH}, eps={EPS})

    def forward(self, x, y):
        total = x + y
        return self.norm(x), self.norm(total), total


net = Net()
