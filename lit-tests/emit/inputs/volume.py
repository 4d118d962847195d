import torch
from torch import Tensor, nn


class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(16, 32, (3, 5, 5), padding=(1, 2, 2), stride=(2, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.conv(x))
