# Embeddings of tokens and of positions.
#
# for WIDTH: 256 | 768
# size BATCH: 1 2 5
# size LENGTH: 1 2 7 100
# input: BATCH LENGTH int64
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions, self.types = nn.Embedding(1000, {WIDTH}), nn.Embedding(512, {WIDTH}), nn.Embedding(2, {WIDTH})
        self.norm = nn.LayerNorm({WIDTH}, eps=1e-12)
        self.table = nn.Parameter(torch.ones(1, 512, {WIDTH}))

    def forward(self, tokens):
        n = tokens.shape[1]
        at = torch.arange(n)
        found = self.tokens(tokens)
        both = found + self.positions(at)
        three = self.norm(found + self.types(torch.zeros_like(tokens)) + self.positions(at))
        kept = (tokens != 0).unsqueeze(-1).float()
        pooled = (found * kept).sum(1) / kept.sum(1).clamp(min=1.0)
        return found, both, three, found * {WIDTH} ** 0.5 + self.table[:, :n], self.tokens(tokens) + self.table[:, :n], pooled


net = Net()
