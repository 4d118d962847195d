import torch
from torch import Tensor


def upsample(x: Tensor) -> Tensor:
    weight = torch.ones([32, 16, 3, 2])
    return torch.relu(torch.conv_transpose2d(torch.relu(x), weight, None, [2, 2]))
