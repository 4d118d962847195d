"""Softmax over many classes, of which most are rare."""

import torch
from torch import Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    def __init__(
        self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None
    ):
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rises = all([a < b for a, b in zip(cutoffs, cutoffs[1:])])
        if not rises or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                "where each value is between 1 and n_classes-1"
            )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        torch.jit._unscriptable("Unknown type annotation: '<class 'torch.nn.modules.linear.Linear'>' at")
        return input

    def log_prob(self, input: Tensor) -> Tensor:
        return input

    def predict(self, input: Tensor) -> Tensor:
        return input
