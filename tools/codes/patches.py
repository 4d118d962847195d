# Images as sequences of patches, with a token in front of them and positions added.
#
# for PATCH: 16 | 14
# for WIDTH: 192 | 384 | 768
# for RESULT: y | self.layer(y) + x
# size BATCH: 1 2
# size SIDE: 7 14 16
# input: BATCH 3 {PATCH}*SIDE {PATCH}*SIDE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, {WIDTH}, {PATCH}, {PATCH})
        self.token, self.positions = nn.Parameter(torch.ones(1, 1, {WIDTH})), nn.Parameter(torch.ones(1, 257, {WIDTH}))
        self.norm, self.layer = nn.LayerNorm({WIDTH}), nn.Linear({WIDTH}, {WIDTH})

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        x = x + self.positions[:, :x.shape[1]]
        y = self.norm(x)
        return {RESULT}


net = Net()
