import torch
from torch import Tensor


def functions(x: Tensor):
    return torch.softmax(x, 1), torch.nn.functional.gelu(torch.log1p(torch.exp2(x))), torch.expm1(torch.tanh(x))
