import torch
from torch import Tensor, nn


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.take = nn.Linear(16, 48)
        self.keep = nn.Linear(16, 48)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        weights = [self.take.weight, self.keep.weight, self.take.bias, self.keep.bias]
        return torch.gru(x, h, weights, True, 1, 0.0, False, False, False)[0]
