"""Activations, and attention."""

import math
import torch
from torch import Tensor
import torch.nn as nn
import torch.nn.functional as F


class _InPlace(Module):
    __constants__ = ["inplace"]

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class _Exponential(Module):
    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = float(alpha)
        self.inplace = inplace


class _AlongDim(Module):
    __constants__ = ["dim"]

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim


class _Shrink(Module):
    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = float(lambd)


class ReLU(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class ReLU6(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)


class LeakyReLU(Module):
    __constants__ = ["negative_slope", "inplace"]

    def __init__(self, negative_slope=1e-2, inplace=False):
        super().__init__()
        self.negative_slope = float(negative_slope)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Exponential):
    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Exponential):
    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardswish(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardtanh(Module):
    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False):
        super().__init__()
        self.min_val = float(min_val)
        self.max_val = float(max_val)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class GELU(Module):
    __constants__ = ["approximate"]

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class Sigmoid(Module):
    def forward(self, input: Tensor) -> Tensor:
        return torch.sigmoid(input)


class Tanh(Module):
    def forward(self, input: Tensor) -> Tensor:
        return torch.tanh(input)


class LogSigmoid(Module):
    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Softplus(Module):
    __constants__ = ["beta", "threshold"]

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = float(beta)
        self.threshold = float(threshold)

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Softshrink(_Shrink):
    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Hardshrink(_Shrink):
    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Threshold(Module):
    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold = float(threshold)
        self.value = float(value)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class GLU(Module):
    __constants__ = ["dim"]

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class Softmax(_AlongDim):
    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_AlongDim):
    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class PReLU(Module):
    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = torch.nn.Parameter(torch.full((num_parameters,), float(init)))

    def forward(self, input: Tensor) -> Tensor:
        return torch.prelu(input, self.weight)


class Softmax2d(Module):
    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class RReLU(Module):
    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower = float(lower)
        self.upper = float(upper)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


def _float_mask(mask: Optional[Tensor], like: Tensor) -> Optional[Tensor]:
    """What is to be added to scores: minus infinity where a truth value leaves something out."""
    result = mask
    if mask is not None and mask.dtype == torch.bool:
        result = torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))
    return result


class MultiheadAttention(Module):
    __constants__ = ["batch_first", "_qkv_same_embed_dim"]

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError("embed_dim and num_heads must be greater than 0")
        if add_bias_kv or add_zero_attn:
            raise ValueError("add_bias_kv and add_zero_attn are not supported")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = float(dropout)
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        assert self.head_dim * num_heads == embed_dim, "embed_dim must be divisible by num_heads"
        if self._qkv_same_embed_dim:
            weight = torch.empty(3 * embed_dim, embed_dim, dtype=dtype)
            self.in_proj_weight = nn.Parameter(nn.init.xavier_uniform_(weight))
            self.register_parameter("q_proj_weight", None)
            self.register_parameter("k_proj_weight", None)
            self.register_parameter("v_proj_weight", None)
        else:
            self.q_proj_weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(embed_dim, embed_dim, dtype=dtype)))
            self.k_proj_weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(embed_dim, self.kdim, dtype=dtype)))
            self.v_proj_weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(embed_dim, self.vdim, dtype=dtype)))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed_dim, dtype=dtype))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        if bias:
            nn.init.zeros_(self.out_proj.bias)

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        if self._qkv_same_embed_dim:
            weight = self.in_proj_weight
            assert weight is not None
            w_q, w_k, w_v = weight.chunk(3)
        else:
            w_q, w_k, w_v = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
            assert w_q is not None and w_k is not None and w_v is not None
        bias = self.in_proj_bias
        if bias is not None:
            b_q, b_k, b_v = bias.chunk(3)
            q, k, v = F.linear(query, w_q, b_q), F.linear(key, w_k, b_k), F.linear(value, w_v, b_v)
        else:
            q, k, v = F.linear(query, w_q), F.linear(key, w_k), F.linear(value, w_v)
        return q, k, v

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True,
        attn_mask: Optional[Tensor] = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        batched = query.dim() == 3
        if not batched:
            query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        elif self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        length, batch = query.size(0), query.size(1)
        source = key.size(0)
        heads, size = self.num_heads, self.head_dim
        q, k, v = self._project(query, key, value)
        q = q.contiguous().view(length, batch, heads, size).permute(1, 2, 0, 3)
        k = k.contiguous().view(source, batch, heads, size).permute(1, 2, 0, 3)
        v = v.contiguous().view(source, batch, heads, size).permute(1, 2, 0, 3)
        mask = _float_mask(attn_mask, query)
        if mask is not None:
            if mask.dim() == 3:
                mask = mask.view(batch, heads, length, source)
            else:
                mask = mask.view(1, 1, length, source)
        padding = _float_mask(key_padding_mask, query)
        if padding is not None:
            padding = padding.view(batch, 1, 1, source)
            mask = padding if mask is None else mask + padding
        dropout = self.dropout if self.training else 0.0
        weights: Optional[Tensor] = None
        if need_weights:
            scores = torch.matmul(q * math.sqrt(1.0 / float(size)), k.transpose(-2, -1))
            if mask is not None:
                scores = scores + mask
            attention = F.softmax(scores, dim=-1)
            if dropout > 0.0:
                attention = F.dropout(attention, p=dropout)
            result = torch.matmul(attention, v)
            attention = attention.mean(dim=1) if average_attn_weights else attention
            weights = attention if batched else attention.squeeze(0)
        else:
            result = F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal and mask is None)
        result = result.permute(2, 0, 1, 3).contiguous().view(length, batch, self.embed_dim)
        result = self.out_proj(result)
        if not batched:
            result = result.squeeze(1)
        elif self.batch_first:
            result = result.transpose(1, 0)
        return result, weights
