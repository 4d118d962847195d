# Losses. reduction: 0 none, 1 mean, 2 sum.

def mse_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    d = self - target
    out = d * d
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def l1_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    out = torch.abs(self - target)
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    d = torch.abs(self - target)
    out = d
    if beta > 0.0:
        out = torch.where(d < beta, d * d * 0.5 / beta, d - 0.5 * beta)
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def huber_loss(self: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    if delta <= 0.0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    d = torch.abs(self - target)
    out = torch.where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta)
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def soft_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    out = torch.log1p(torch.exp(-target * self))
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    if log_input:
        out = torch.exp(input) - target * input
    else:
        out = input - target * torch.log(input + eps)
    if full:
        stirling = target * torch.log(target) - target + torch.log(target * 6.283185307179586) * 0.5
        out = out + stirling.masked_fill(target <= 1, 0)
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def kl_div(self: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    if log_target:
        out = torch.exp(target) * (target - self)
    else:
        out = torch.xlogy(target, target) - target * self
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    zeros = torch.zeros_like(self)
    negative = torch.where(target != 1, torch.clamp_min(torch.rsub(self, margin), 0), zeros)
    positive = torch.where(target != -1, self, zeros)
    out = negative + positive
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    out = torch.clamp_min(-target * (input1 - input2) + margin, 0)
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    dim = target.dim()
    product = (input1 * input2).sum([dim])
    norm1 = (input1 * input1).sum([dim]) + 1e-12
    norm2 = (input2 * input2).sum([dim]) + 1e-12
    cosine = product / torch.sqrt(norm1 * norm2)
    zeros = torch.zeros_like(cosine)
    out = torch.where(target == 1, torch.rsub(cosine, 1), zeros) + torch.where(target == -1, torch.clamp_min(cosine - margin, 0), zeros)
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool, reduction: int) -> Tensor:
    near = torch.pairwise_distance(anchor, positive, p, eps, False)
    far = torch.pairwise_distance(anchor, negative, p, eps, False)
    if swap:
        far = torch.minimum(far, torch.pairwise_distance(positive, negative, p, eps, False))
    out = torch.clamp_min(near - far + margin, 0)
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def binary_cross_entropy(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int) -> Tensor:
    out = (target - 1) * torch.clamp_min(torch.log1p(-self), -100) - target * torch.clamp_min(torch.log(self), -100)
    if weight is not None:
        out = out * weight
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def binary_cross_entropy_with_logits(self: Tensor, target: Tensor, weight: Optional[Tensor], pos_weight: Optional[Tensor], reduction: int) -> Tensor:
    log_sigmoid = torch.log_sigmoid(self)
    if pos_weight is not None:
        scale = (pos_weight - 1) * target + 1
        out = torch.rsub(target, 1) * self - scale * log_sigmoid
    else:
        out = torch.rsub(target, 1) * self - log_sigmoid
    if weight is not None:
        out = out * weight
    if reduction == 1:
        out = out.mean()
    elif reduction == 2:
        out = out.sum()
    return out

def nll_loss_nd(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int) -> Tensor:
    dim = 1
    if self.dim() == 1:
        dim = 0
    classes = self.size(dim)
    kept = target != ignore_index
    safe = torch.where(kept, target, torch.zeros_like(target))
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
