# Losses. reduction: 0 none, 1 mean, 2 sum.

def helper_reduced(out: Tensor, reduction: int) -> Tensor:
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def helper_wide(x: Tensor) -> Tensor:
    out = x
    if x.dtype == torch.half or x.dtype == torch.bfloat16:
        out = x.to(torch.float)
    return out

def mse_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    d = self - target
    out = d * d
    return helper_reduced(out, reduction)

def l1_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    out = torch.abs(self - target)
    return helper_reduced(out, reduction)

def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    if beta < 0.0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if self.dtype == torch.bfloat16 and target.dtype == torch.bfloat16:
        d = torch.abs(self.to(torch.float) - target.to(torch.float))
        kind = self.dtype
    else:
        d = torch.abs(self - target)
        kind = d.dtype
        d = helper_wide(d)
    out = d
    if beta > 0.0:
        out = torch.where(d < beta, d * d * 0.5 / beta, d - 0.5 * beta)
    out = out.to(kind)
    return helper_reduced(out, reduction)

def huber_loss(self: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    if delta <= 0.0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if self.dtype == torch.bfloat16 and target.dtype == torch.bfloat16:
        # Each operation is rounded, and the limit.
        limit = torch.full([1], delta, dtype=self.dtype)
        d = torch.abs(self - target)
        out = torch.where(d < limit, d * 0.5 * d, (d - limit * 0.5) * limit)
    else:
        if self.dtype == torch.half and target.dtype == torch.half:
            d = torch.abs(self.to(torch.float) - target.to(torch.float))
        else:
            d = torch.abs(self - target)
        out = torch.where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta).to(self.dtype)
    return helper_reduced(out, reduction)

def soft_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    # In place, so in the dtype and sizes of self; integers are refused.
    out = torch.neg(self).mul_(target).exp_().log1p_()
    return helper_reduced(out, reduction)

def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    if log_input:
        out = torch.exp(input) - target * input
    else:
        out = input - target * torch.log(input + eps)
    if full:
        stirling = target * torch.log(target) - target + torch.log(target * 6.283185307179586) * 0.5
        out = out + stirling.masked_fill(target <= 1, 0)
    return helper_reduced(out, reduction)

def kl_div(self: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    for x in [self, target]:
        if not (x.is_floating_point() or x.is_complex()):
            raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        out = torch.exp(target) * (target - self)
    else:
        out = torch.xlogy(target, target) - target * self
    return helper_reduced(out, reduction)

def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    zeros = torch.zeros_like(self)
    # The margin is converted to self's dtype.
    negative = torch.where(target != 1, torch.clamp_min(torch.full([], margin, dtype=self.dtype) - self, 0), zeros)
    positive = torch.where(target != -1, self, zeros)
    out = negative + positive
    return helper_reduced(out, reduction)

def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    out = torch.clamp_min(-target * (input1 - input2) + margin, 0)
    return helper_reduced(out, reduction)

def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    dim = target.dim()
    if dim == 1:
        if input1.dim() != 2 or input2.dim() != 2:
            raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs with sizes " + str(input1.size()) + " and " + str(input2.size()) + ".")
    elif dim == 0:
        if input1.dim() != 1 or input2.dim() != 1:
            raise RuntimeError("0D target tensor expects 1D input tensors, but found inputs with sizes " + str(input1.size()) + " and " + str(input2.size()) + ".")
    else:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    product = (input1 * input2).sum([dim])
    norm1 = (input1 * input1).sum([dim]) + 1e-12
    norm2 = (input2 * input2).sum([dim]) + 1e-12
    cosine = product / torch.sqrt(norm1 * norm2)
    zeros = torch.zeros_like(cosine)
    out = torch.where(target == 1, torch.rsub(cosine, 1), zeros) + torch.where(target == -1, torch.clamp_min(cosine - margin, 0), zeros)
    return helper_reduced(out, reduction)

def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool, reduction: int) -> Tensor:
    near = torch.pairwise_distance(anchor, positive, p, eps, False)
    far = torch.pairwise_distance(anchor, negative, p, eps, False)
    if swap:
        far = torch.minimum(far, torch.pairwise_distance(positive, negative, p, eps, False))
    out = torch.clamp_min(near - far + margin, 0)
    return helper_reduced(out, reduction)

def binary_cross_entropy(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int) -> Tensor:
    torch._assert_async(torch.logical_and(self >= 0, self <= 1).all(), "all elements of input should be between 0 and 1")
    torch._assert_async(torch.logical_and(target >= 0, target <= 1).all(), "all elements of target should be between 0 and 1")
    out = (target - 1) * torch.clamp_min(torch.log1p(-self), -100) - target * torch.clamp_min(torch.log(self), -100)
    if weight is not None:
        out = out * weight
    return helper_reduced(out, reduction)

def binary_cross_entropy_with_logits(self: Tensor, target: Tensor, weight: Optional[Tensor], pos_weight: Optional[Tensor], reduction: int) -> Tensor:
    log_sigmoid = torch.log_sigmoid(self)
    if pos_weight is not None:
        log_sigmoid = log_sigmoid.mul_((pos_weight - 1) * target + 1)
    # In place, so in the dtype of the target.
    out = torch.rsub(target, 1).mul_(self).sub_(log_sigmoid)
    if weight is not None:
        out = out.mul_(weight)
    return helper_reduced(out, reduction)

def helper_target_dtype(x: Tensor) -> str:
    name = "Float"
    if x.dtype == torch.int32:
        name = "Int"
    elif x.dtype == torch.int16:
        name = "Short"
    elif x.dtype == torch.int8:
        name = "Char"
    elif x.dtype == torch.bool:
        name = "Bool"
    elif x.dtype == torch.float64:
        name = "Double"
    elif x.dtype == torch.float16:
        name = "Half"
    elif x.dtype == torch.bfloat16:
        name = "BFloat16"
    return name

def helper_check_nll(self: Tensor, target: Tensor, weight: Optional[Tensor], classes: int) -> None:
    batch = 0
    if target.dim() > 0:
        batch = target.size(0)
    if self.dim() != 1 and self.size(0) != batch:
        raise RuntimeError("Expected input batch_size (" + str(self.size(0)) + ") to match target batch_size (" + str(batch) + ").")
    if self.dim() <= 2:
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() == 1 and self.size(0) != batch:
            raise RuntimeError("size mismatch (got input: " + str(self.size()) + ", target: " + str(target.size()) + ")")
    elif self.dim() == 4:
        if target.dim() != 3:
            raise RuntimeError("only batches of spatial targets supported (3D tensors) but got targets of dimension: " + str(target.dim()))
        if self.size(2) != target.size(1) or self.size(3) != target.size(2):
            raise RuntimeError("size mismatch (got input: " + str(self.size()) + " , target: " + str(target.size()))
    elif self.size()[2:] != target.size()[1:]:
        raise RuntimeError("Expected target size " + str([self.size(0)] + self.size()[2:]) + ", got " + str(target.size()))
    if weight is not None:
        if weight.dim() != 1 or weight.numel() != classes:
            raise RuntimeError("weight tensor should be defined either for all " + str(classes) + " classes or no classes but got weight tensor of shape: " + str(weight.size()))

def nll_loss_nd(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int) -> Tensor:
    dim = 1
    if self.dim() == 1:
        dim = 0
    classes = self.size(dim)
    helper_check_nll(self, target, weight, classes)
    if target.dtype != torch.int64 and target.dtype != torch.uint8:
        raise RuntimeError("expected target dtype to be Long or Byte, but got " + helper_target_dtype(target))
    numbers = target.to(torch.int64)
    kept = numbers != ignore_index
    safe = torch.where(kept, numbers, torch.zeros_like(numbers))
    picked = -torch.gather(self, dim, safe.unsqueeze(dim)).squeeze(dim)
    scale = kept.to(self.dtype)
    if weight is not None:
        scale = scale * torch.index_select(weight, 0, safe.reshape([-1])).reshape(safe.size())
    out = torch.where(kept, picked * scale, torch.zeros_like(picked))
    if reduction == 1:
        out = out.sum() / scale.sum()
    elif reduction == 2:
        out = out.sum()
    return out

def nll_loss(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int) -> Tensor:
    return torch.nll_loss_nd(self, target, weight, reduction, ignore_index)

def cross_entropy_loss(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int, label_smoothing: float) -> Tensor:
    if label_smoothing < 0.0 or label_smoothing > 1.0:
        raise RuntimeError("label_smoothing must be between 0.0 and 1.0. Got: " + str(label_smoothing))
    dim = 1
    if self.dim() == 1:
        dim = 0
    classes = self.size(dim)
    logs = torch.log_softmax(self, dim)
    shape = [1] * self.dim()
    shape[dim] = classes
    if self.size() == target.size() and self.dim() == target.dim() and torch.is_floating_point(target):
        soft = target
        if label_smoothing > 0.0:
            soft = target * (1.0 - label_smoothing) + label_smoothing / float(classes)
        terms = logs * soft
        if weight is not None:
            terms = terms * weight.reshape(shape)
        out = -terms.sum([dim])
        if reduction == 1:
            out = out.sum() / float(max(1, self.numel() // classes))
        elif reduction == 2:
            out = out.sum()
    else:
        out = torch.nll_loss_nd(logs, target, weight, reduction, ignore_index)
        if label_smoothing > 0.0:
            kept = target != ignore_index
            weighted = logs
            if weight is not None:
                weighted = logs * weight.reshape(shape)
            smooth = -weighted.sum([dim])
            smooth = torch.where(kept, smooth, torch.zeros_like(smooth))
            if reduction == 1:
                if weight is not None:
                    safe = torch.where(kept, target, torch.zeros_like(target))
                    scale = torch.index_select(weight, 0, safe.reshape([-1])).reshape(safe.size())
                    smooth = smooth.sum() / (scale * kept.to(scale.dtype)).sum()
                else:
                    smooth = smooth.sum() / kept.to(self.dtype).sum()
            elif reduction == 2:
                smooth = smooth.sum()
            out = out * (1.0 - label_smoothing) + smooth * (label_smoothing / float(classes))
    return out

def multi_margin_loss(self: Tensor, target: Tensor, p: number, margin: number, weight: Optional[Tensor], reduction: int) -> Tensor:
    power = float(p)
    if power != 1.0 and power != 2.0:
        raise RuntimeError("only p == 1 and p == 2 supported")
    x = torch.atleast_2d(self)
    places = torch.atleast_1d(target).unsqueeze(1)
    classes = x.size(1)
    if target.dim() > 1 or target.numel() != x.size(0):
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target size [" + str(x.size(0)) + "], but got " + str(target.size()) + ". Input has shape " + str(self.size()) + ".")
    if weight is not None:
        if weight.dim() != 1 or weight.numel() != classes:
            raise RuntimeError("inconsistent weight size, expected " + str(classes) + " but got " + str(weight.size()))
    terms = torch.clamp_min(x - torch.gather(x, 1, places) + margin, 0)
    if power == 2.0:
        terms = terms * terms
    if weight is not None:
        terms = terms * torch.index_select(weight, 0, places.squeeze(1)).unsqueeze(1)
    others = torch.arange(classes).unsqueeze(0) != places
    out = torch.where(others, terms, torch.zeros_like(terms)).sum([1]) / float(classes)
    out = helper_reduced(out, reduction)
    if target.dim() == 0 and reduction == 0:
        out = out.squeeze(0)
    return out

def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    if self.size() != target.size():
        raise RuntimeError("inconsistent target size: " + str(target.size()) + " for input of size: " + str(self.size()))
    x = torch.atleast_2d(self)
    labels = torch.atleast_2d(target)
    classes = x.size(1)
    # Labels count up to the first negative one.
    valid = torch.cumsum((labels < 0).to(torch.int64), 1) == 0
    safe = torch.where(valid, labels, torch.zeros_like(labels))
    is_label = torch.zeros_like(labels).scatter_add(1, safe, valid.to(labels.dtype)) > 0
    chosen = torch.gather(x, 1, safe)
    terms = torch.clamp_min(torch.rsub(chosen.unsqueeze(2), 1) + x.unsqueeze(1), 0)
    counted = valid.unsqueeze(2).logical_and(torch.logical_not(is_label).unsqueeze(1))
    out = torch.where(counted, terms, torch.zeros_like(terms)).sum([1, 2]) / float(classes)
    out = helper_reduced(out, reduction)
    if self.dim() < 2 and reduction == 0:
        out = out.squeeze(0)
    return out
