"""Graphs of what native code fuses, for `random_graphs.py --fusable`.

Chains of pointwise operators, reductions, norms, softmax, products, convolutions, pooling, attention and views, and of any other operators
that are compiled, on sizes that leave odd tails (1, 7, 8, 15, 17, 33), on constants as well as on inputs, with NaN and infinities among the
elements of every third graph. A quarter of them have pieces of networks in them (`fusable_nets.py`), a quarter blocks that only some families of
models have (`fusable_layers.py`), and a quarter rows that are read through views (`fusable_views.py`). What is not a result may vanish into other
kernels, so only values that nothing else reads are results, and a few others.

Left to chance by PyTorch, and so not made: convolutions whose weights are not finite (whether their products with the padding count
depends on the kernel that it takes) and of no channels, products and convolutions of bfloat16 that is not finite (`by_pairs`), transposed
convolutions to images without elements (one of its libraries refuses them, the other does not), norms of elements that are all equal
(what is left of large numbers that cancel), and attention, group norms and bilinear resizing of what is not finite.
"""

import math
import re
import textwrap

import torch

from fusable_layers import LAYERS
from fusable_nets import NETS, spatial, without_spread
from fusable_views import VIEWS

SIZES = [1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65]
DTYPES = [torch.float32] * 24 + [torch.float64] * 6 + [torch.float16, torch.bfloat16] * 4 + [torch.int64, torch.int32] * 2 + [
    torch.int16, torch.int8, torch.uint8, torch.bool]
MOST = 24_000

UNARY = ("relu neg abs exp sigmoid tanh gelu silu sqrt rsqrt reciprocal erf sin cos floor ceil round trunc sign log1p expm1 hardswish "
         "hardsigmoid hardtanh leaky_relu elu softplus mish log_sigmoid square relu6 isnan logical_not selu log exp2 frac tan sinh cosh asin "
         "acos atan asinh acosh atanh erfc log2 log10 celu hardshrink logit rad2deg sgn sinc isinf bitwise_not").split()
BINARY = ("add sub mul div maximum minimum fmax fmin eq lt ge ne pow atan2 remainder fmod floor_divide logical_and hypot xlogy bitwise_and "
          "bitwise_or bitwise_xor logical_or logaddexp gt le heaviside").split()
REDUCTIONS = "sum mean amax amin prod logsumexp any all nansum argmax argmin var std norm max min count_nonzero cumsum".split()


class Scene:
    """A graph that grows: its values, and what it is made of."""

    def __init__(self, rng, seed, graph, constants, any_call):
        self.rng, self.graph, self.constants, self.any_call = rng, graph, constants, any_call
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = rng.choice(DTYPES)
        self.salt = rng.random() < 0.35
        # Few different sizes, so that tensors fit each other.
        self.sizes = [rng.choice(SIZES) for _ in range(3)]
        if rng.random() < 0.05:
            self.sizes.append(0)
        # `kept` are results though others read them.
        self.env, self.read, self.kept, self.steps = {}, set(), [], 0

    def size(self):
        return self.rng.choice(self.sizes)

    def tensor(self, sizes, dtype=None, constant=None, finite=False, scale=1.0):
        """The name of a new input or constant, whose numbers are about as large as `scale`."""
        rng, dtype = self.rng, dtype or self.dtype
        if math.prod(sizes) > MOST:
            raise ValueError("too large")
        if dtype.is_floating_point:
            t = torch.randn(sizes, generator=self.generator, dtype=torch.float32) * scale
            if self.salt and not finite and rng.random() < 0.5:
                for place in range(rng.randrange(5), t.numel(), rng.choice([3, 5, 17, 40])):
                    t.view(-1)[place] = rng.choice([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 100.0])
            t = t.to(dtype)
        elif dtype == torch.bool:
            t = torch.randint(0, 2, sizes, generator=self.generator) > 0
        else:
            t = torch.randint(-8, 9, sizes, generator=self.generator).to(dtype)
        constant = rng.random() < 0.4 if constant is None else constant
        if constant and self.constants:
            name = f"w{len(self.graph.constants)}"
            self.graph.constants[name] = t
        else:
            name = f"a{len(self.graph.inputs)}"
            self.graph.inputs.append(t)
        self.env[name] = t.clone()
        return name

    def places(self, sizes, extent):
        """The name of a tensor of numbers below `extent`."""
        name = self.tensor(sizes, torch.int64)
        t = self.env[name]
        t.remainder_(max(extent, 1))
        (self.graph.constants.__setitem__(name, t.clone()) if name in self.graph.constants
         else self.graph.inputs.__setitem__(int(name[1:]), t.clone()))
        return name

    def partner(self, sizes):
        """The name of a tensor that broadcasts to `sizes`."""
        rng = self.rng
        fit = [n for n, v in self.env.items() if isinstance(v, torch.Tensor) and v.dtype != torch.bool and v.dim() <= len(sizes)
               and all(a in (1, b) for a, b in zip(reversed(v.shape), reversed(sizes)))]
        if fit and rng.random() < 0.6:
            return rng.choice(fit)
        own = [1 if rng.random() < 0.3 else s for s in sizes]
        return self.tensor(own[rng.randint(0, len(own)) if rng.random() < 0.3 else 0:])

    def add(self, text, writes=False):
        result = self.graph.value(text, self.env)
        for t in result if isinstance(result, (list, tuple)) else [result]:
            if not isinstance(t, torch.Tensor) or t.numel() > MOST:
                raise ValueError("not a tensor, or too large")
            if "conv_transpose" in text and 0 in t.shape[2:]:
                raise ValueError("refused or not by the library that PyTorch takes")
        name = f"t{len(self.graph.steps)}"
        self.graph.steps.append((name, text, writes))
        self.env[name] = result
        for other in re.findall(r"\b[atw]\d+\b", text):
            self.read.add(other)
        return name

    def method(self, parameters, body, arguments):
        """The text of a call of a new method."""
        name = self.graph.define(f"(self, {parameters}) -> Tensor:\n{textwrap.indent(body, '    ')}")
        return f"self.{name}({', '.join(arguments)})"

    def state(self):
        """What [`Scene.restore`] goes back to."""
        g = self.graph
        return len(g.inputs), len(g.steps), dict(g.constants), dict(g.methods), dict(self.env), set(self.read)

    def restore(self, state):
        """Takes back what has been made since."""
        inputs, steps, self.graph.constants, self.graph.methods, self.env, self.read = state
        del self.graph.inputs[inputs:], self.graph.steps[steps:]


def unary(s, n, x):
    name = s.rng.choice(UNARY)
    if name == "gelu":
        if x.isinf().any():
            return None
        return f"torch.ops.aten.gelu({n}, approximate={s.rng.choice(['none', 'tanh'])!r})"
    return f"torch.ops.aten.{name}({n})"


def binary(s, n, x):
    name, other = s.rng.choice(BINARY), s.partner(list(x.shape))
    if s.rng.random() < 0.2:
        other = repr(s.rng.choice([0.5, 2.0, -1.0, 3.0, 0.0])) if x.is_floating_point() else s.rng.choice("123")
        if name in ("maximum", "minimum", "fmax", "fmin", "atan2", "logical_and", "hypot"):
            name = "mul"
    elif s.rng.random() < 0.3:
        return f"torch.ops.aten.{name}({other}, {n})"
    return f"torch.ops.aten.{name}({n}, {other})"


def choose(s, n, x):
    form = s.rng.randrange(6)
    if form == 0:
        return f"torch.ops.aten.clamp({n}, {s.rng.choice(['-1.0', 'None'])}, 1.0)"
    if form == 1:
        return f"torch.ops.aten.where({n} > 0, {n}, {s.partner(list(x.shape))})"
    if form == 2:
        mask = s.tensor(list(x.shape), torch.bool)
        return f"torch.ops.aten.masked_fill({n}, {mask}, {s.rng.choice(['0.0', '-1.0', 'float(-10000)'])})"
    if form == 3:
        return f"torch.ops.aten.tril({n}, {s.rng.randint(-2, 2)})" if x.dim() >= 2 else None
    if form == 4:
        return f"torch.ops.aten.addcmul({n}, {s.partner(list(x.shape))}, {s.partner(list(x.shape))}, value=0.5)"
    return f"torch.ops.aten.lerp({n}, {s.tensor(list(x.shape), x.dtype)}, 0.25)"


def reduction(s, n, x):
    name = s.rng.choice(REDUCTIONS)
    if x.dim() == 0:
        return f"torch.ops.aten.sum({n})"
    dim, keep = s.rng.randint(-x.dim(), x.dim() - 1), s.rng.random() < 0.5
    if name in ("sum", "mean", "amax", "amin", "logsumexp", "nansum", "norm", "var", "std") and s.rng.random() < 0.4:
        dims = sorted(s.rng.sample(range(x.dim()), s.rng.randint(1, x.dim())))
        if name == "norm":
            return f"torch.ops.aten.norm({n}, 2, {dims}, {keep})"
        if name in ("var", "std"):
            return f"torch.ops.aten.{name}({n}, {dims}, correction={s.rng.randint(0, 1)}, keepdim={keep})"
        return f"torch.ops.aten.{name}({n}, {dims}, {keep})"
    if name == "cumsum":
        return f"torch.ops.aten.cumsum({n}, {dim})"
    if name in ("amax", "amin", "logsumexp"):
        return f"torch.ops.aten.{name}({n}, [{dim}], {keep})"
    if name == "norm":
        return f"torch.ops.aten.norm({n}, {s.rng.choice([1, 2, 3, float('inf')])!r}, [{dim}], {keep})".replace("inf", "float('inf')")
    if name in ("max", "min"):
        return f"torch.ops.aten.{name}({n}, {dim}, {keep})[{s.rng.randint(0, 1)}]"
    if name == "count_nonzero":
        return f"torch.ops.aten.count_nonzero({n}, [{dim}])"
    if name in ("var", "std"):
        return f"torch.ops.aten.{name}({n}, [{dim}], True, {keep})"
    if name in ("sum", "mean", "nansum"):
        return f"torch.ops.aten.{name}({n}, [{dim}], {keep})"
    return f"torch.ops.aten.{name}({n}, {dim}, {keep})"


def normalise(s, n, x):
    form, rng = s.rng.randrange(6), s.rng
    if x.dim() == 0 or not x.is_floating_point():
        return None
    weight = lambda k: s.tensor([k], x.dtype) if rng.random() < 0.7 else "None"
    if form == 0:
        return f"torch.ops.aten.softmax({n}, {rng.randint(-x.dim(), x.dim() - 1)})"
    if form == 1:
        return f"torch.ops.aten.log_softmax({n}, {rng.randint(-x.dim(), x.dim() - 1)})"
    if form == 2:
        k = rng.randint(1, min(2, x.dim()))
        own = list(x.shape[-k:])
        if x.numel() and without_spread(x, x.numel() // math.prod(own)):
            return None
        scale = lambda: s.tensor(own, x.dtype) if rng.random() < 0.7 else "None"
        return f"torch.ops.aten.layer_norm({n}, {own}, {scale()}, {scale()}, 1e-5)"
    if x.dim() < 2:
        return None
    c = x.shape[1]
    if form == 3:
        if not x.isfinite().all():
            return None
        groups = rng.choice([g for g in range(1, max(c, 1) + 1) if c % g == 0])
        if x[0:1].numel() == groups or without_spread(x, x.shape[0] * groups):
            return None
        weight, bias = (s.tensor([c], x.dtype, finite=True) if rng.random() < 0.7 else "None" for _ in range(2))
        return f"torch.ops.aten.group_norm({n}, {groups}, {weight}, {bias}, 1e-5)"
    if form == 4:
        mean, var = s.tensor([c], x.dtype), s.tensor([c], x.dtype)
        return f"torch.ops.aten.batch_norm({n}, {weight(c)}, {weight(c)}, {mean}, torch.ops.aten.abs({var}), False, 0.1, 1e-5, False)"
    return f"torch.ops.aten.rms_norm({n}, [{x.shape[-1]}], {s.tensor([x.shape[-1]], x.dtype)})"


def by_pairs(x):
    """Whether PyTorch's instructions multiply pairs of elements, of which one may be another result's, or none, and counts as zero."""
    return x.dtype == torch.bfloat16 and not x.isfinite().all()


def product(s, n, x):
    rng, form = s.rng, s.rng.randrange(12)
    if x.dim() == 0 or x.dtype == torch.bool or by_pairs(x):
        return None
    k = x.shape[-1]
    factor = lambda sizes, constant=None: s.tensor(sizes, x.dtype, constant, x.dtype == torch.bfloat16)
    if form <= 1:
        m = s.size()
        bias = s.tensor([m], x.dtype) if rng.random() < 0.7 else "None"
        return f"torch.ops.aten.linear({n}, {factor([m, k], constant=rng.random() < 0.7)}, {bias})"
    if form == 2:
        lead = list(x.shape[:-2]) if rng.random() < 0.5 else []
        lead = [1 if rng.random() < 0.2 else v for v in lead]
        return f"torch.ops.aten.matmul({n}, {factor(lead + [k, s.size()])})"
    if form == 3:
        return f"torch.ops.aten.matmul({n}, {factor([k])})"
    if form == 4 and x.dim() >= 2:
        return f"torch.ops.aten.matmul({n}, {n}.transpose(-1, -2))"
    if form == 5 and x.dim() == 2:
        other = factor([k, s.size()])
        alpha, beta = rng.choice([1, 2, -1]), rng.choice([1, 1, 0, 3])
        return f"torch.ops.aten.addmm({s.partner([x.shape[0], s.env[other].shape[1]])}, {n}, {other}, beta={beta}, alpha={alpha})"
    if form == 6 and x.dim() == 3:
        other = factor([x.shape[0], k, s.size()])
        return f"torch.ops.aten.baddbmm({s.partner([1, s.env[other].shape[2]])}, {n}, {other})"
    if form == 7:
        # Into a transposed result, or over a dimension in the middle.
        letters = "bcdef"[:x.dim()]
        summed = rng.choice(letters)
        left = list(letters.replace(summed, "") + "z")
        rng.shuffle(left)
        other = factor([x.shape[letters.index(summed)], s.size()], constant=rng.random() < 0.5)
        return f"torch.ops.aten.einsum('{letters},{summed}z->{''.join(left)}', [{n}, {other}])"
    if form == 8 and x.dim() >= 2:
        return f"torch.ops.aten.matmul({factor([s.size(), x.shape[-2]], constant=rng.random() < 0.5)}, {n})"
    if form == 9 and x.dim() >= 2:
        return f"torch.ops.aten.matmul({n}.transpose(-1, -2), {factor([x.shape[-2], s.size()])}).transpose(-1, -2)"
    if form == 10:
        return f"torch.ops.aten.matmul({n}, {factor([s.size(), k], constant=rng.random() < 0.7)}.t())"
    if form == 11 and x.dim() == 1:
        return f"torch.ops.aten.outer({n}, {factor([s.size()])})"
    return None


def convolution(s, n, x):
    rng, rank = s.rng, x.dim() - 2
    if not 1 <= rank <= 3 or x.dtype == torch.bool or x.shape[1] == 0 or by_pairs(x):
        return None
    c = x.shape[1]
    groups = rng.choice([1, 1, 1] + [g for g in range(1, c + 1) if c % g == 0])
    out = rng.choice([1, 2, 3, 7, 8, 16, 17, 32])
    out = groups * max(1, out // groups) if rng.random() < 0.8 else groups * rng.randint(1, 2)
    kernel = [rng.choice([1, 3, 3, 2, 5]) for _ in range(rank)]
    if rng.random() < 0.6:
        kernel = kernel[:1] * rank
    every = spatial(s, rank)
    stride, padding, dilation = every([1, 1, 2, 3]), every([0, 1, 1, 2]), every([1, 1, 1, 2])
    bias = s.tensor([out], x.dtype) if rng.random() < 0.7 else "None"
    constant = rng.random() < 0.8
    if rng.random() < 0.2:
        weight = s.tensor([c, out // groups] + kernel, x.dtype, constant, True)
        beyond = [rng.choice([0, 0, k - 1]) for k in stride]
        return f"torch.ops.aten.conv_transpose{rank}d({n}, {weight}, {bias}, {stride}, {padding}, {beyond}, {groups}, {dilation})"
    weight = s.tensor([out, c // groups] + kernel, x.dtype, constant, True)
    if rng.random() < 0.1:
        stride, padding = [1] * rank, repr(rng.choice(["same", "valid"]))
    return f"torch.ops.aten.conv{rank}d({n}, {weight}, {bias}, {stride}, {padding}, {dilation}, {groups})"


def pool(s, n, x):
    rng, rank = s.rng, x.dim() - 2
    if not 1 <= rank <= 3:
        return None
    form, every = rng.randrange(9), spatial(s, rank)
    kernel, stride = every([1, 2, 3, 3]), every([1, 2, 2, 3])
    padding, ceil = [rng.randint(0, k // 2) for k in kernel], rng.random() < 0.3
    if form == 0:
        return f"torch.ops.aten.max_pool{rank}d({n}, {kernel}, {stride}, {padding}, {every([1, 1, 2])}, {ceil})"
    if form == 1:
        return f"torch.ops.aten.avg_pool{rank}d({n}, {kernel}, {stride}, {padding}, {ceil}, {rng.random() < 0.5})"
    if form == 2:
        return f"torch.ops.aten.adaptive_avg_pool{rank}d({n}, {every([1, 1, 2, 3])})"
    if form == 3:
        part = rng.randint(0, 1)
        return f"torch.ops.aten.max_pool{rank}d_with_indices({n}, {kernel}, {stride}, {padding}, {every([1, 1, 2])}, {ceil})[{part}]"
    if form == 4:
        mode = rng.choice(["reflection", "replication"])
        return f"torch.ops.aten.{mode}_pad{rank}d({n}, {[rng.randint(0, 2) for _ in range(2 * rank)]})"
    if form == 5 and rank == 2:
        if rng.random() < 0.5:
            return f"torch.ops.aten.im2col({n}, {kernel}, {every([1, 2])}, {padding}, {stride})"
        return f"torch.ops.aten.{rng.choice(['pixel_shuffle', 'pixel_unshuffle', 'channel_shuffle'])}({n}, {rng.choice([2, 3, 4])})"
    sizes = [max(1, rng.choice([2 * k, k + 3, k // 2])) for k in x.shape[2:]]
    none = ", ".join(["None"] * rank)
    if form == 6:
        return f"torch.ops.aten.upsample_nearest{rank}d({n}, {sizes}, {none})"
    if not x.isfinite().all():
        return None
    if form == 7:
        name = rng.choice(["bilinear", "bicubic"]) if rank == 2 else ["linear", "trilinear"][rank // 2]
        return f"torch.ops.aten.upsample_{name}{rank}d({n}, {sizes}, {rng.random() < 0.5}, {none})"
    if x.shape[0] == 0 or without_spread(x, x.shape[0] * x.shape[1]):
        return None
    return f"torch.ops.aten.instance_norm({n}, None, None, None, None, True, 0.1, 1e-5, False)"


def view(s, n, x):
    rng, form, rank = s.rng, s.rng.randrange(20), x.dim()
    if rank == 0:
        return f"{n}.unsqueeze(0)"
    d = rng.randint(-rank, rank - 1)
    if form == 0:
        return f"{n}.transpose({d}, {rng.randint(-rank, rank - 1)})"
    if form == 1:
        return f"{n}.permute({rng.sample(range(rank), rank)})"
    if form == 2:
        return f"{n}.reshape([-1])" if rng.random() < 0.3 else f"{n}.flatten({rng.randrange(rank)})"
    if form == 3:
        first = rng.randint(0, max(x.shape[d] // 2, 0))
        return f"torch.ops.aten.slice({n}, {d}, {first}, {rng.randint(first, x.shape[d])}, {rng.choice([1, 1, 2, 3])})"
    if form == 4:
        return f"{n}.unsqueeze({d})"
    if form == 5:
        return f"torch.ops.aten.flip({n}, [{d}])" if rng.random() < 0.5 else f"torch.ops.aten.roll({n}, [{rng.randint(-3, 3)}], [{d}])"
    if form == 6:
        return f"torch.ops.aten.cat([{n}, {s.tensor(list(x.shape), x.dtype)}, {n}][:{rng.randint(1, 3)}], {d})"
    if form == 7:
        return f"torch.ops.aten.stack([{n}, {n}], {d})"
    if form == 8:
        pads = [rng.randint(-1, 3) for _ in range(2 * rng.randint(1, min(rank, 2)))]
        return f"torch.ops.aten.constant_pad_nd({n}, {pads}, {rng.choice([0.0, 1.5])})"
    if form == 9:
        return f"torch.ops.aten.chunk({n}, 2, {d})[{rng.randint(0, 1)}]"
    if form == 10:
        return f"torch.ops.aten.select({n}, {d}, {rng.randrange(max(x.shape[d], 1))})"
    if form == 11:
        parts = [k for k in (2, 3, 4, 8) if x.shape[d] % k == 0 and x.shape[d]]
        return f"torch.ops.aten.unflatten({n}, {d}, [{parts[-1]}, -1])" if parts else f"{n}.contiguous()"
    if form == 12:
        return f"torch.ops.aten.expand({n}, {[-1 if k > 1 or rng.random() < 0.5 else s.size() for k in x.shape]})"
    if form == 13:
        return f"torch.ops.aten.repeat({n}, {[rng.choice([1, 1, 2, 3]) for _ in range(rank + rng.randint(0, 1))]})"
    if form == 14:
        size = rng.randint(1, max(min(x.shape[d], 5), 1))
        return f"torch.ops.aten.unfold({n}, {d}, {size}, {rng.randint(1, 3)})"
    if form == 15 and rank > 1:
        a, b = rng.sample(range(rank), 2)
        return f"torch.ops.aten.diagonal({n}, {rng.randint(-1, 1)}, {a}, {b})"
    if form == 16:
        first = rng.randint(0, x.shape[d])
        return f"torch.ops.aten.split_with_sizes({n}, {[first, x.shape[d] - first]}, {d})[{rng.randint(0, 1)}]"
    if form == 17:
        other = list(x.shape)
        other[d] = s.size()
        return f"torch.ops.aten.cat([{', '.join(rng.sample([n, s.tensor(other), n], 3))}], {d})"
    if form == 18 and rank > 1:
        return f"torch.ops.aten.cat([{n}.transpose(0, 1), {n}.transpose(0, 1)], {d}).transpose(0, 1)"
    return f"torch.ops.aten.index_select({n}, {d}, {s.places([s.size()], x.shape[d])})"


def gathered(s, n, x):
    form = s.rng.randrange(7)
    if x.dim() == 0:
        return None
    d = s.rng.randrange(x.dim())
    if form == 0:
        return f"torch.ops.aten.gather({n}, {d}, {s.places(list(x.shape), x.shape[d])})"
    if form == 1 and x.dim() == 2:
        return f"torch.ops.aten.embedding({n}, {s.places([s.size(), s.size()], x.shape[0])})"
    if form == 2:
        return f"torch.ops.aten.cumprod({n}, {d})"
    if form == 3:
        return f"torch.ops.aten.sort({n}, {d})[0]"
    if form == 4:
        return f"torch.ops.aten.scatter({n}, {d}, {s.places([1] * x.dim(), x.shape[d])}, {s.tensor([1] * x.dim(), x.dtype)})"
    if form == 5:
        return f"{n}[..., {s.places([s.size()], x.shape[-1])}]"
    return f"{n}[{s.places([s.size()], x.shape[0])}]"


def attention(s, n, x):
    if x.dim() not in (3, 4) or not x.is_floating_point() or x.numel() == 0 or s.salt or not x.isfinite().all():
        return None
    length, width = s.size(), s.size()
    lead = list(x.shape[:-2])
    key, value = s.tensor(lead + [length, x.shape[-1]], x.dtype), s.tensor(lead + [length, width], x.dtype)
    mask = s.tensor([x.shape[-2], length], s.rng.choice([torch.bool, x.dtype])) if s.rng.random() < 0.4 else "None"
    causal = mask == "None" and s.rng.random() < 0.4
    if s.rng.random() < 0.5:
        return f"torch.ops.aten.scaled_dot_product_attention({n}, {key}, {value}, {mask}, 0.0, {causal})"
    return f"torch.ops.aten.matmul(torch.ops.aten.softmax(torch.ops.aten.matmul({n}, {key}.transpose(-1, -2)) * 0.5, -1), {value})"


def converted(s, n, x):
    kinds = ["float32", "float32", "float64", "int32", "int64", "bfloat16", "float16", "uint8", "int8", "int16", "bool"]
    return f"{n}.to(torch.{s.rng.choice(kinds)})"


def overlap(t):
    """Whether indices name the same memory, other than by strides of zero, through which in-place calls refuse to write."""
    at = torch.zeros(t.shape, dtype=torch.int64)
    for dim, (size, stride) in enumerate(zip(t.shape, t.stride())):
        at = at + (torch.arange(size) * stride).reshape([-1] + [1] * (t.dim() - dim - 1))
    return 0 not in t.stride() and at.unique().numel() < t.numel()


def written(s, n, x):
    """An in-place form, perhaps of a part."""
    # Elements that share memory are written one after the other, or several at once.
    if n[0] != "t" or x.dim() == 0 or overlap(x):
        return None
    target = n
    if s.rng.random() < 0.6:
        d = s.rng.randrange(x.dim())
        first = s.rng.randint(0, x.shape[d] // 2)
        target = f"torch.ops.aten.slice({n}, {d}, {first}, {s.rng.randint(first, x.shape[d])})"
    form = s.rng.randrange(4)
    if form == 0:
        return f"torch.ops.aten.mul_({target}, 0.5)"
    if form == 1:
        return f"torch.ops.aten.relu_({target})"
    if form == 2:
        return f"torch.ops.aten.fill_({target}, 1)"
    return f"torch.ops.aten.copy_({target}, {s.tensor([1] * (x.dim() - 1) + [1], x.dtype)})"


def listed(s, n, x):
    """Any operator that is compiled, with arguments by its schema, the newest values among them more often."""
    values = [(n, v) for n, v in s.env.items() if isinstance(v, torch.Tensor)]
    for _ in range(12):
        text = s.any_call(values + values[-2:] * 3)
        if text is not None:
            try:
                s.graph.value(text, {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in s.env.items()})
                return text
            except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
                pass
    return None


KINDS = [(unary, 6), (binary, 6), (choose, 2), (reduction, 4), (normalise, 3), (product, 4), (convolution, 4), (pool, 2), (view, 6),
         (gathered, 1), (attention, 1), (converted, 1), (written, 1), (listed, 5)]


def grow(rng, seed, steps, graph, constants, any_call):
    """Grows `graph`, which is empty; gives its values. Without `constants` all weights are inputs. `any_call` gives the text of a call of
    some operator on some of the values that it is given."""
    s = Scene(rng, seed, graph, constants, any_call)
    # Most graphs have larger pieces in them, mostly as their beginning.
    pieces = rng.choice([NETS, LAYERS, VIEWS, []])
    if pieces and rng.random() < 0.7:
        s.dtype = torch.float32
    kinds = KINDS + pieces
    rank = rng.choice([1, 2, 2, 3, 3, 4, 4, 4, 5])
    first = [s.size() for _ in range(rank)]
    while math.prod(first) > MOST:
        first[rng.randrange(rank)] = rng.choice([1, 2, 3, 7])
    s.tensor(first, constant=False)
    wanted, tries = rng.randint(2, steps), 0
    # A piece is many steps, of which there may be few more.
    while (len(graph.steps) < wanted or pieces and tries < 3) and tries < 12 * steps:
        tries += 1
        values = [(n, v) for n, v in s.env.items() if isinstance(v, torch.Tensor) and n[0] != "w"]
        # Mostly the last: chains.
        name, x = values[-1] if rng.random() < 0.3 else rng.choice(values[-4:])
        made = [n for n, v in values if n[0] == "t"]
        if made and rng.random() < 0.6:
            name, x = made[-1], s.env[made[-1]]
        chosen = pieces if pieces and not graph.steps and rng.random() < 0.8 else kinds
        kind = rng.choices([k for k, _ in chosen], [w for _, w in chosen])[0]
        if x.dtype == torch.bool and kind not in (view, choose, converted, reduction, listed):
            continue
        before = s.state()
        try:
            text = kind(s, name, x)
            if text is None:
                raise ValueError("does not fit")
            s.add(text, kind is written)
        except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
            if kind is written:
                raise
            s.restore(before)
    graph.results = [n for n in s.env if n[0] == "t" and (n not in s.read or n in s.kept or rng.random() < 0.15)]
    if not graph.results:
        raise ValueError("nothing computed")
    return s.env
