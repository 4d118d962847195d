# Recurrent networks over sequences.
#
# for KIND: nn.LSTM | nn.GRU
# for WIDTH: 32 | 128
# for BOTH: True | False
# size BATCH: 1 2 5
# size LENGTH: 2 20
# input: BATCH LENGTH 40
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = {KIND}(40, {WIDTH}, batch_first=True, bidirectional={BOTH})

    def forward(self, x):
        return self.layers(x)[0]


net = Net()
