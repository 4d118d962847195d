# Decoder blocks with causal attention over a joint projection.
#
# for WIDTH: 256 | 768
# for ACT: nn.GELU() | nn.GELU('tanh')
# size BATCH: 1 2
# size LENGTH: 1 2 7 100
# input: BATCH LENGTH {WIDTH}
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm({WIDTH}), nn.LayerNorm({WIDTH})
        self.qkv, self.out = nn.Linear({WIDTH}, 3 * {WIDTH}), nn.Linear({WIDTH}, {WIDTH})
        self.up, self.down, self.act = nn.Linear({WIDTH}, 4 * {WIDTH}), nn.Linear(4 * {WIDTH}, {WIDTH}), {ACT}

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, n, 3, c // 64, 64).permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(b, n, c))
        return x + self.down(self.act(self.up(self.between(x))))


net = Net()
