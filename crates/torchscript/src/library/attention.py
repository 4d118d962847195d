"""Attention of several heads, of `torch.nn.functional`."""


def _check_ranks(
    query: Tensor, key: Tensor, value: Tensor, padding: Optional[Tensor], mask: Optional[Tensor], heads: int
) -> bool:
    """Whether there is a batch."""
    rank = query.dim()
    assert rank == 2 or rank == 3, f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
    kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    assert key.dim() == rank and value.dim() == rank, f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
    if padding is not None:
        assert padding.dim() == rank - 1, f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found {padding.dim()}-D tensor instead"
    if mask is not None:
        assert mask.dim() == 2 or mask.dim() == 3, f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {mask.dim()}-D tensor instead"
        if rank == 2 and mask.dim() == 3:
            wanted = (heads, query.size(0), key.size(0))
            assert mask.size() == [heads, query.size(0), key.size(0)], f"Expected `attn_mask` shape to be {wanted} but got {mask.size()}"
    return rank == 3


def _additive_mask(mask: Optional[Tensor], name: str, like: Tensor) -> Optional[Tensor]:
    """What is to be added to scores: minus infinity where a bool leaves something out."""
    result = mask
    if mask is not None:
        is_bool = mask.dtype == torch.bool
        assert is_bool or mask.is_floating_point(), f"only bool and floating types of {name} are supported"
        if is_bool:
            result = torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))
    return result


def _by_head(mask: Tensor, batch: int, heads: int, length: int, source: int) -> Tensor:
    """A mask with dimensions for the batch and the heads."""
    if mask.dim() == 2:
        wanted = (length, source)
        if mask.size(0) != length or mask.size(1) != source:
            raise RuntimeError(f"The shape of the 2D attn_mask is {mask.size()}, but should be {wanted}.")
        result = mask.view(1, 1, length, source)
    else:
        expected = (batch * heads, length, source)
        if mask.size(0) != batch * heads or mask.size(1) != length or mask.size(2) != source:
            raise RuntimeError(f"The shape of the 3D attn_mask is {mask.size()}, but should be {expected}.")
        result = mask.view(batch, heads, length, source)
    return result


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor],
    bias_k: Optional[Tensor],
    bias_v: Optional[Tensor],
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Optional[Tensor],
    training: bool = True,
    key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True,
    attn_mask: Optional[Tensor] = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None,
    k_proj_weight: Optional[Tensor] = None,
    v_proj_weight: Optional[Tensor] = None,
    static_k: Optional[Tensor] = None,
    static_v: Optional[Tensor] = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.size(0), query.size(1), query.size(2)
    source = key.size(0)
    padding = _additive_mask(key_padding_mask, "key_padding_mask", query)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method `generate_square_subsequent_mask` to create this mask.")
    mask = torch.jit.annotate(Optional[Tensor], None)
    # Without weights and padding the flag stands for the mask, which then is not read.
    by_flag = is_causal and padding is None and not need_weights
    if not by_flag:
        mask = _additive_mask(attn_mask, "attn_mask", query)
    assert width == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}"
    size = width // num_heads
    assert size * num_heads == width, f"embed_dim {width} not divisible by num_heads {num_heads}"
    b_q = torch.jit.annotate(Optional[Tensor], None)
    b_k = torch.jit.annotate(Optional[Tensor], None)
    b_v = torch.jit.annotate(Optional[Tensor], None)
    if in_proj_bias is not None:
        b_q, b_k, b_v = in_proj_bias.chunk(3)
    if use_separate_proj_weight:
        assert key.size()[:2] == value.size()[:2], f"key's sequence and batch dims {key.size()[:2]} do not match value's {value.size()[:2]}"
        assert q_proj_weight is not None, "use_separate_proj_weight is True but q_proj_weight is None"
        assert k_proj_weight is not None, "use_separate_proj_weight is True but k_proj_weight is None"
        assert v_proj_weight is not None, "use_separate_proj_weight is True but v_proj_weight is None"
        w_q, w_k, w_v = q_proj_weight, k_proj_weight, v_proj_weight
    else:
        assert key.size() == value.size(), f"key shape {key.size()} does not match value shape {value.size()}"
        assert in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        w_q, w_k, w_v = in_proj_weight.chunk(3)
    q, k, v = torch.linear(query, w_q, b_q), torch.linear(key, w_k, b_k), torch.linear(value, w_v, b_v)
    if mask is not None:
        mask = _by_head(mask, batch, num_heads, length, source)
    extra = 0
    if bias_k is not None and bias_v is not None:
        assert static_k is None, "bias cannot be added to static key."
        assert static_v is None, "bias cannot be added to static value."
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        extra += 1
    else:
        assert bias_k is None, "bias_k is set but bias_v is None"
        assert bias_v is None, "bias_v is set but bias_k is None"
    q = q.contiguous().view(length, batch, num_heads, size).permute(1, 2, 0, 3)
    if static_k is None:
        k = k.contiguous().view(k.size(0), batch, num_heads, size).permute(1, 2, 0, 3)
    else:
        assert static_k.size(0) == batch * num_heads, f"expecting static_k.size(0) of {batch * num_heads}, but got {static_k.size(0)}"
        assert static_k.size(2) == size, f"expecting static_k.size(2) of {size}, but got {static_k.size(2)}"
        k = static_k.view(batch, num_heads, -1, size)
    if static_v is None:
        v = v.contiguous().view(v.size(0), batch, num_heads, size).permute(1, 2, 0, 3)
    else:
        assert static_v.size(0) == batch * num_heads, f"expecting static_v.size(0) of {batch * num_heads}, but got {static_v.size(0)}"
        assert static_v.size(2) == size, f"expecting static_v.size(2) of {size}, but got {static_v.size(2)}"
        v = static_v.view(batch, num_heads, -1, size)
    if add_zero_attn:
        nothing = torch.zeros([batch, num_heads, 1, size], dtype=k.dtype, device=k.device)
        k = torch.cat([k, nothing], 2)
        v = torch.cat([v, nothing], 2)
        extra += 1
    if extra > 0:
        # What was added is never left out.
        if mask is not None:
            mask = torch.constant_pad_nd(mask, [0, extra])
        if padding is not None:
            padding = torch.constant_pad_nd(padding, [0, extra])
    if padding is not None:
        padding = padding.view(batch, 1, 1, k.size(2))
        mask = padding if mask is None else mask + padding
    dropout = dropout_p if training else 0.0
    weights = torch.jit.annotate(Optional[Tensor], None)
    if need_weights:
        scores = torch.matmul(q * math.sqrt(1.0 / float(size)), k.transpose(-2, -1))
        if mask is not None:
            scores = scores + mask
        attention = torch.softmax(scores, -1)
        if dropout > 0.0:
            attention = torch.dropout(attention, dropout, True)
        result = torch.matmul(attention, v)
        attention = attention.mean(dim=1) if average_attn_weights else attention
        weights = attention if batched else attention.squeeze(0)
    else:
        result = torch.scaled_dot_product_attention(q, k, v, mask, dropout, by_flag)
    result = result.permute(2, 0, 1, 3).contiguous().view(length, batch, width)
    result = torch.linear(result, out_proj_weight, out_proj_bias)
    if not batched:
        result = result.squeeze(1)
    return result, weights
