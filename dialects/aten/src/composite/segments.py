# Stretches of tensors, put together or changed row by row.

# Every tensor in chunks along a dimension, padded with zeros where it does not divide; the chunks of all side by side.
def _chunk_cat(tensors: List[Tensor], dim: int, num_chunks: int) -> Tensor:
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if len(tensors) == 0:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    pieces: List[Tensor] = []
    along = dim
    if dim < 0:
        along = dim + tensors[0].dim()
    for t in tensors:
        if t.dim() <= along or along < 0:
            raise RuntimeError("_chunk_cat expects dim to be a dimension of each tensor")
        if t.numel() == 0 or t.dtype != tensors[0].dtype:
            raise RuntimeError("_chunk_cat expects tensors with elements, of one dtype")
        size = t.size(along)
        missing = (size + num_chunks - 1) // num_chunks * num_chunks - size
        padded = torch.constant_pad_nd(t, [0, 0] * (t.dim() - 1 - along) + [0, missing], 0)
        shape: List[int] = []
        for d in range(along):
            if t.size(d) != tensors[0].size(d):
                raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
            shape.append(t.size(d))
        pieces.append(padded.reshape(shape + [num_chunks, -1]))
    return torch.cat(pieces, along + 1)

# Rows that are longer than `max_norm` are scaled to it.
def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    if self.dim() != 2:
        raise RuntimeError("Expected 2-dimensional tensor for argument #1 'self' of embedding_renorm_")
    if indices.dtype != torch.int64 and indices.dtype != torch.int32:
        raise RuntimeError("Expected tensor for argument #2 'indices' to have scalar type Long or Int")
    rows = torch.zeros([self.size(0)], dtype=torch.bool).index_fill(0, indices.reshape([-1]), 1).nonzero().reshape([-1])
    vectors = torch.index_select(self, 0, rows)
    norms = torch.norm(vectors, norm_type, [1], True).to(torch.float64)
    scale = torch.where(norms > max_norm, max_norm / (norms + 1e-7), torch.ones_like(norms))
    self.index_copy_(0, rows, (vectors * scale).to(self.dtype))
    return self
