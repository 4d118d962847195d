# Dropout and its kin: identities when evaluating.

def helper_checked(p: float) -> float:
    if not (p >= 0.0 and p <= 1.0):
        raise RuntimeError("dropout probability has to be between 0 and 1, but got " + str(p))
    return p

# Ones and zeros, zero with probability p; one a channel where `feature`.
def helper_kept(input: Tensor, p: float, feature: bool) -> Tensor:
    if feature:
        if input.dim() < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        shape = [input.size(0), input.size(1)]
        for d in range(2, input.dim()):
            shape.append(1)
        kept = torch.empty(shape, dtype=input.dtype)
    else:
        kept = torch.empty_like(input)
    return torch.bernoulli_(kept, 1.0 - p)

def helper_dropout(input: Tensor, p: float, train: bool, feature: bool) -> Tensor:
    out = input
    rate = helper_checked(p)
    if train and rate > 0.0 and input.numel() > 0:
        if p == 1.0:
            out = input * torch.zeros([], dtype=input.dtype)
        else:
            out = input * (helper_kept(input, p, feature) / (1.0 - p))
    return out

def helper_alpha_dropout(input: Tensor, p: float, train: bool, feature: bool) -> Tensor:
    out = input
    rate = helper_checked(p)
    if train and rate > 0.0 and input.numel() > 0:
        if p == 1.0:
            out = input * torch.zeros([], dtype=input.dtype)
        else:
            # Dropped elements get SELU's negative limit; scale and shift keep mean and variance.
            alpha = 1.7580993408473766
            a = 1.0 / ((alpha * alpha * p + 1.0) * (1.0 - p)) ** 0.5
            kept = helper_kept(input, p, feature)
            out = input * (kept * a) + ((kept - 1) * (alpha * a) + alpha * a * p)
    return out

def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return helper_dropout(input, p, train, False)

def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return helper_dropout(input, p, train, True)

def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return helper_alpha_dropout(input, p, train, False)

def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return helper_alpha_dropout(input, p, train, True)

def native_dropout(input: Tensor, p: float, train: Optional[bool]) -> Tuple[Tensor, Tensor]:
    training = True
    if train is not None:
        training = train
    if training and input.numel() > 0:
        kept = torch.bernoulli_(torch.empty_like(input), 1.0 - helper_checked(p))
        scale = 0.0
        if p < 1.0:
            scale = 1.0 / (1.0 - p)
        out = input * kept * scale
        mask = kept.to(torch.bool)
    else:
        out = input.clone()
        mask = torch.ones_like(input, dtype=torch.bool)
    return out, mask

# Where it is not positive, each element gets a slope of its own in training, and else the mean of the bounds.
def rrelu(self: Tensor, lower: number, upper: number, training: bool, generator: Optional[Generator]) -> Tensor:
    low = float(lower)
    high = float(upper)
    if low > high:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return torch.leaky_relu(self, (low + high) / 2)
    if self.dtype == torch.float16:
        raise RuntimeError("\"rrelu_with_noise_out_cpu\" not implemented for 'Half'")
    slopes = torch.uniform(torch.empty_like(self), low, high)
    return torch.where(self <= 0, self * slopes, self)
