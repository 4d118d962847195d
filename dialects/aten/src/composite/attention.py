# Attention with its projections, and the transformer layer that PyTorch fuses.

def _native_multi_head_attention(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, mask: Optional[Tensor], need_weights: bool, average_attn_weights: bool, mask_type: Optional[int]) -> Tuple[Tensor, Tensor]:
    batch = query.size(0)
    width = embed_dim // num_head
    w_q, w_k, w_v = torch.chunk(qkv_weight, 3, 0)
    b_q, b_k, b_v = torch.chunk(qkv_bias, 3, 0)
    q = torch.linear(query, w_q, b_q).reshape([batch, query.size(1), num_head, width]).transpose(1, 2)
    k = torch.linear(key, w_k, b_k).reshape([batch, key.size(1), num_head, width]).transpose(1, 2)
    v = torch.linear(value, w_v, b_v).reshape([batch, value.size(1), num_head, width]).transpose(1, 2)
    scores = torch.matmul(q * (1.0 / float(width) ** 0.5), k.transpose(-2, -1))
    if mask is not None:
        m = mask
        if mask_type is not None:
            if mask_type == 1:
                m = mask.reshape([batch, 1, 1, mask.size(-1)])
        if m.dtype == torch.bool:
            scores = scores.masked_fill(m, float("-inf"))
        else:
            scores = scores + m
    weights = torch.softmax(scores, -1)
    out = torch.matmul(weights, v).transpose(1, 2).reshape([batch, query.size(1), embed_dim])
    out = torch.linear(out, proj_weight, proj_bias)
    if need_weights:
        if average_attn_weights:
            weights = weights.mean([1])
    else:
        weights = torch.empty([0])
    return out, weights

# A nested tensor is a pair, whatever its type says: the sequences, padded with zeros, and which places are theirs. Operators that do not know of it
# refuse it, because it is no tensor.
def helper_nested(t: Tensor, kept: Tensor) -> Tensor:
    return unchecked_cast(Tensor, (t.masked_fill(torch.logical_not(kept).unsqueeze(2), 0.0), kept))

def helper_parts(nested: Tensor) -> Tuple[Tensor, Tensor]:
    return unchecked_cast(Tuple[Tensor, Tensor], nested)

def helper_check_mask(t: Tensor, mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise RuntimeError("Expected mask to be of ScalarType Bool")
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.dim() != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if t.size(0) != mask.size(0) or t.size(1) != mask.size(1):
        raise RuntimeError("Mask size should match input size")

def helper_encoder_layer(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor, mask: Optional[Tensor], mask_type: Optional[int]) -> Tensor:
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

def _transformer_encoder_layer_fwd(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor, mask: Optional[Tensor], mask_type: Optional[int]) -> Tensor:
    if src.is_nested:
        padded, kept = helper_parts(src)
        absent = torch.logical_not(kept)
        out = helper_encoder_layer(padded, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, absent, 1)
        return helper_nested(out, kept)
    return helper_encoder_layer(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask, mask_type)

# Several sequences of the lengths that a mask tells.
def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool) -> Tensor:
    helper_check_mask(t, mask)
    if mask_check:
        if not torch._nested_tensor_from_mask_left_aligned(t, mask):
            raise RuntimeError("Mask must have left-aligned without gaps")
    places = torch.arange(mask.size(1)).unsqueeze(0)
    return helper_nested(t, places < mask.sum([1], True))

def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    helper_check_mask(t, mask)
    later = mask.narrow(1, 1, mask.size(1) - 1)
    before = mask.narrow(1, 0, mask.size(1) - 1)
    return bool(torch.logical_or(before, torch.logical_not(later)).all())

def to_padded_tensor(self: Tensor, padding: float, output_size: Optional[List[int]]) -> Tensor:
    if not self.is_nested:
        raise RuntimeError("to_padded_tensor: expected a nested tensor")
    padded, kept = helper_parts(self)
    absent = torch.logical_not(kept).unsqueeze(2)
    if output_size is None:
        longest = int(kept.sum([1]).max())
        return padded.masked_fill(absent, padding).narrow(1, 0, longest).clone()
    if output_size == padded.size():
        return padded.masked_fill(absent, padding)
    longest = int(kept.sum([1]).max())
    if output_size[0] < padded.size(0) or output_size[1] < longest or output_size[2] < padded.size(2):
        raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
    out = torch.full(output_size, padding, dtype=padded.dtype)
    filled = padded.masked_fill(absent, padding).narrow(1, 0, longest)
    out.narrow(0, 0, padded.size(0)).narrow(1, 0, longest).narrow(2, 0, padded.size(2)).copy_(filled)
    return out

# With the logarithms of the sums by which the weights are divided, which lie query by query.
def _scaled_dot_product_flash_attention_for_cpu(query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, attn_mask: Optional[Tensor], scale: Optional[float]) -> Tuple[Tensor, Tensor]:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {(B, H, T, K)}")
    if dropout_p != 0.0:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    factor = 1.0 / float(query.size(-1)) ** 0.5
    if scale is not None:
        factor = scale
    wide = query
    if query.dtype != torch.float64:
        wide = query.to(torch.float32)
    scores = torch.matmul(wide, key.to(wide.dtype).transpose(-2, -1)) * factor
    if is_causal:
        seen = torch.tril(torch.ones([query.size(2), key.size(2)], dtype=torch.bool))
        scores = scores.masked_fill(torch.logical_not(seen), float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(torch.logical_not(attn_mask), float("-inf"))
        else:
            scores = scores + attn_mask.to(wide.dtype)
    sums = torch.logsumexp(scores, [-1])
    out = torch.scaled_dot_product_attention(query, key, value, attn_mask, 0.0, is_causal, scale=scale)
    return out, sums.transpose(1, 2).clone(memory_format=0).transpose(1, 2)
