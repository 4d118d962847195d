# Cells of recurrent networks.
#
# for WIDTH: 32 | 64 | 128 | 256 | 512
# size BATCH: 1 2 5 33
# input: BATCH 100
# input: BATCH {WIDTH}
# input: BATCH {WIDTH}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(100, {WIDTH}), nn.GRUCell(100, {WIDTH}), nn.RNNCell(100, {WIDTH})
        self.mixed, self.more = nn.Linear(100, 4 * {WIDTH}), nn.Linear({WIDTH}, 4 * {WIDTH})

    def forward(self, x, h, c):
        i, f, g, o = (self.mixed(x) + self.more(h)).chunk(4, 1)
        state = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return self.lstm(x, (h, c)), self.gru(x, h), self.rnn(x, h), torch.sigmoid(o) * torch.tanh(state), state


net = Net()
