# Pooling, normalisation and gates of images.
#
# for WIDTH: 16 | 64 | 96
# size BATCH: 1 2
# size SIZE: 8 15 56
# input: BATCH {WIDTH} SIZE SIZE
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.group, self.batch = nn.GroupNorm(8, {WIDTH}), nn.BatchNorm2d({WIDTH})
        self.fewer, self.more = nn.Linear({WIDTH}, {WIDTH} // 4), nn.Linear({WIDTH} // 4, {WIDTH})

    def forward(self, x):
        gate = torch.sigmoid(self.more(F.relu(self.fewer(x.mean([2, 3])))))
        pooled = F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 3, 2), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 1)
        return pooled, F.silu(self.group(x)), F.relu(self.batch(x)), x * gate[:, :, None, None], x.flatten(2).mean(-1), x.amax([2, 3])


net = Net()
