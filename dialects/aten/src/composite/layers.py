# Layers and small rearrangements.

def prelu(self: Tensor, weight: Tensor) -> Tensor:
    w = weight
    if weight.numel() != 1:
        shape = [1] * self.dim()
        if self.dim() > 1:
            shape[1] = weight.numel()
        else:
            shape[0] = weight.numel()
        w = weight.reshape(shape)
    elif self.dim() != weight.dim():
        w = weight.reshape([])
    return torch.where(self > 0, self, self * w)

def glu(self: Tensor, dim: int) -> Tensor:
    if self.size(dim) % 2 != 0:
        raise RuntimeError("Halving dimension must be even")
    a, b = torch.chunk(self, 2, dim)
    return a * torch.sigmoid(b)

def nanmean(self: Tensor, dim: Optional[List[int]], keepdim: bool, dtype: Optional[int]) -> Tensor:
    count = torch.logical_not(torch.isnan(self)).sum(dim, keepdim)
    return torch.nansum(self, dim, keepdim, dtype=dtype) / count

def allclose(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> bool:
    return bool(torch.all(torch.isclose(self, other, rtol, atol, equal_nan)))

def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    out = self.clone()
    out.select(dim, index).copy_(src)
    return out

def slice_scatter(self: Tensor, src: Tensor, dim: int, start: Optional[int], end: Optional[int], step: int) -> Tensor:
    out = self.clone()
    torch.slice(out, dim, start, end, step).copy_(src)
    return out

def diagonal_scatter(self: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    out = self.clone()
    torch.diagonal(out, offset, dim1, dim2).copy_(src)
    return out

def diag(self: Tensor, diagonal: int) -> Tensor:
    if self.dim() == 1:
        out = torch.diag_embed(self, diagonal)
    else:
        out = torch.diagonal(self, diagonal).clone()
    return out

def diagflat(self: Tensor, offset: int) -> Tensor:
    return torch.diag_embed(self.reshape([-1]), offset)

def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    return self.narrow(dim, start, length).clone()

def unsafe_chunk(self: Tensor, chunks: int, dim: int) -> List[Tensor]:
    return torch.chunk(self, chunks, dim)

def unsafe_split__Tensor(self: Tensor, split_size: int, dim: int) -> List[Tensor]:
    return torch.split(self, split_size, dim)

def _native_multi_head_attention(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, mask: Optional[Tensor], need_weights: bool, average_attn_weights: bool, mask_type: Optional[int]) -> Tuple[Tensor, Tensor]:
    batch = query.size(0)
    width = embed_dim // num_head
    w_q, w_k, w_v = torch.chunk(qkv_weight, 3, 0)
    b_q, b_k, b_v = torch.chunk(qkv_bias, 3, 0)
    q = torch.linear(query, w_q, b_q).reshape([batch, -1, num_head, width]).transpose(1, 2)
    k = torch.linear(key, w_k, b_k).reshape([batch, -1, num_head, width]).transpose(1, 2)
    v = torch.linear(value, w_v, b_v).reshape([batch, -1, num_head, width]).transpose(1, 2)
    scores = torch.matmul(q * (1.0 / float(width) ** 0.5), k.transpose(-2, -1))
    if mask is not None:
        m = mask
        if mask_type is not None:
            if mask_type == 1:
                m = mask.reshape([batch, 1, 1, -1])
        if m.dtype == torch.bool:
            scores = scores.masked_fill(m, float("-inf"))
        else:
            scores = scores + m
    weights = torch.softmax(scores, -1)
    out = torch.matmul(weights, v).transpose(1, 2).reshape([batch, -1, embed_dim])
    out = torch.linear(out, proj_weight, proj_bias)
    if need_weights:
        if average_attn_weights:
            weights = weights.mean([1])
    else:
        weights = torch.empty([0])
    return out, weights

def _transformer_encoder_layer_fwd(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor, mask: Optional[Tensor], mask_type: Optional[int]) -> Tensor:
    x = src
    if norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
    attended, _ = torch._native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)
    x = src + attended
    if not norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
    residual = x
    if norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)
    x = torch.linear(x, ffn_weight_1, ffn_bias_1)
    if use_gelu:
        x = torch.gelu(x)
    else:
        x = torch.relu(x)
    x = residual + torch.linear(x, ffn_weight_2, ffn_bias_2)
    if not norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)
    return x
