# Convolutions over time, with layers that take their results with the steps as rows.
#
# for CONV: 3, 1 | 3, 2 | 5, 1
# for ACT: nn.ReLU() | nn.GELU()
# size BATCH: 1 2
# size STEPS: 8 11 14 20 28 50 99 200 400
# input: BATCH 80 STEPS


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        kernel, stride = {CONV}
        self.first, self.next = nn.Conv1d(80, 256, kernel, stride, kernel // 2), nn.Conv1d(256, 256, kernel, stride, kernel // 2)
        self.head, self.act = nn.Linear(256, 1024), {ACT}

    def forward(self, x):
        return self.head(self.act(self.next(self.act(self.first(x)))).transpose(1, 2))


net = Net()
