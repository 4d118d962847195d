"""Rows read through views, for `fusable_graphs.py`: results of reductions, scans, norms, softmaxes and products that what follows takes in
another order, in part, or several times.

Native code computes such results a row at a time where their readers allow it, in memory that is used again for the next row. Whether they do
depends on what their index maps say of every dimension, the shared ones too: a diagonal reads another element of each row, a flip another
row, a window of strides of one's own several at once. Each piece makes rows, takes views of them and views of views, often two of the same
rows, reads these together, and may begin again with what that gives. Sizes are often equal, so that diagonals are whole and a transposed tensor
fits itself.
"""

import math

import torch

from fusable_nets import call, without_spread


def fresh(s):
    """A new tensor of few different sizes."""
    rng = s.rng
    sizes = [rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33]) for _ in range(2)] + [s.size()]
    rank = rng.choice([1, 2, 2, 3, 3, 3, 3, 4, 4])
    own = [sizes[0] if rng.random() < 0.5 else rng.choice(sizes) for _ in range(rank)]
    return s.tensor(own, constant=False)


def late(s, rank, count):
    """Different dimensions, mostly the last ones: rows share what stands before those."""
    rng = s.rng
    return rng.sample(range(max(0, rank - 2 if rng.random() < 0.5 and count <= 2 <= rank else 0), rank), count)


def some_dims(s, x):
    if s.rng.random() < 0.4:
        return late(s, x.dim(), 1)
    return sorted(s.rng.sample(range(x.dim()), s.rng.randint(1, x.dim())))


def rows(s, n, x):
    """The text of a call that computes rows of `n`, mostly of its shape or with a dimension less."""
    rng, d, keep = s.rng, late(s, x.dim(), 1)[0] - s.rng.choice([0, x.dim()]), s.rng.random() < 0.4
    whole = x.is_floating_point()
    form = rng.randrange(20)
    if form <= 1:
        return call(rng.choice(["sum", "mean"] if whole else ["sum"]), n, some_dims(s, x), keep)
    if form == 2:
        return call(rng.choice(["amax", "amin"]), n, some_dims(s, x), keep)
    if form == 3 and whole:
        return call("norm", n, rng.choice([1, 2, 3]), [d], keep)
    if form == 4:
        return call(rng.choice(["cumsum", "cumprod"]), n, d)
    if form == 5 and whole:
        return call(rng.choice(["var", "std"]), n, [d], rng.random() < 0.5, keep)
    if form == 6:
        return f"torch.ops.aten.{rng.choice(['max', 'min'])}({n}, {d}, {keep})[{rng.choice([0, 0, 1])}]"
    if form == 7:
        return call(rng.choice(["argmax", "argmin"]), n, d, keep)
    if form <= 9 and whole:
        return call(rng.choice(["softmax", "softmax", "log_softmax"]), n, d)
    if form <= 11 and whole:
        own = list(x.shape[-rng.randint(1, min(2, x.dim())):])
        if x.numel() and without_spread(x, x.numel() // math.prod(own)):
            return None
        scale = lambda: s.tensor(own, x.dtype, finite=True) if rng.random() < 0.5 else "None"
        return call("layer_norm", n, own, scale(), scale(), 1e-5)
    if form == 12 and whole:
        return call("rms_norm", n, [x.shape[-1]], s.tensor([x.shape[-1]], x.dtype, finite=True))
    if form == 13 and whole:
        return call("logsumexp", n, some_dims(s, x), keep)
    if form == 14:
        # Rows of two stages, written out.
        text = f"torch.ops.aten.{rng.choice(['sum', 'amax', 'cumsum'])}({n}, {d}"
        return f"{n} {rng.choice('-+*')} {text})" if "cumsum" in text else f"{n} {rng.choice('-+*')} {text.replace(f', {d}', f', [{d}], True')})"
    if not whole or x.dtype == torch.bfloat16:
        return call("sum", n, [d], keep)
    if form == 15 and x.dim() >= 2:
        return f"torch.ops.aten.matmul({n}, {n}.transpose(-1, -2))"
    if form == 16:
        return call("linear", n, s.tensor([rng.choice([x.shape[-1], s.size()]), x.shape[-1]], x.dtype, finite=True))
    if form == 17 and x.dim() >= 2:
        return call("matmul", s.tensor([x.shape[-2], x.shape[-2]], x.dtype, finite=True), n)
    if form == 18 and x.dim() == 3 and 0 not in x.shape:
        c = x.shape[1]
        return call("conv1d", n, s.tensor([c, c, 3], x.dtype, True, True), "None", [1], [1], [1], 1)
    return f"torch.ops.aten.matmul({n}, {s.tensor([x.shape[-1]], x.dtype, finite=True)})"


def strided(s, n, x):
    """A window of strides of its own, within what there is."""
    rng, left, sizes, strides = s.rng, max(x.numel() - 1, 0), [], []
    for _ in range(rng.randint(1, 3)):
        stride = rng.choice([0, 1, 1, 2, 3, x.shape[-1], x.shape[-1] + 1])
        size = rng.randint(1, min(left // stride + 1 if stride else 3, 17))
        left -= stride * (size - 1)
        sizes.append(size)
        strides.append(stride)
    if x.numel() == 0:
        return None
    return call("as_strided", n if x.is_contiguous() else f"{n}.contiguous()", sizes, strides, rng.randint(0, left))


def seen(s, n, x):
    """The text of a view, or of a copy in another order."""
    rng, rank = s.rng, x.dim()
    if rank == 0:
        return f"{n}.expand([{s.size()}])"
    form, d = rng.randrange(27), late(s, rank, 1)[0]
    size = x.shape[d]
    if form <= 3 and rank > 1:
        a, b = late(s, rank, 2)
        return call("diagonal", n, rng.choice([0, 0, 0, 1, -1, 2]), a, b)
    if form == 4 and x.numel() < 900:
        return call("diag_embed", n, rng.choice([0, 0, 1, -1]), *rng.choice([(-2, -1), (0, 1), (-1, 0)]))
    if form == 5 and rng.random() < 0.4:
        return strided(s, n, x)
    if form <= 7:
        return call("flip", n, some_dims(s, x))
    if form == 8:
        return call("slice", n, d, rng.randint(0, size // 2), 2 ** 40, rng.choice([2, 2, 3, 5]))
    if form == 9:
        return f"{n}[::2]" if rng.random() < 0.5 else f"{n}[..., 1::2]"
    if form == 10:
        return f"{n}.unsqueeze({d}).expand({[k for i, k in enumerate(x.shape) for k in ([rng.choice([2, 3]), k] if i == d else [k])]})"
    if form <= 12 and rank > 1:
        return f"{n}.permute({rng.sample(range(rank), rank)})"
    if form == 13 and rank > 1:
        return call("transpose", n, *late(s, rank, 2))
    if form == 14:
        return call("unfold", n, d, rng.randint(1, max(min(size, 5), 1)), rng.randint(1, 3))
    if form == 15:
        first = rng.randint(0, size)
        return call("narrow", n, d, first, rng.randint(0 if rng.random() < 0.1 else min(1, size - first), size - first))
    if form == 16:
        return call("select", n, d, rng.randint(-size, size - 1)) if size else None
    if form == 17:
        return f"{n}.reshape([-1])" if rng.random() < 0.3 else f"{n}.flatten({rng.randrange(rank)})"
    if form == 18:
        parts = [k for k in (2, 3, 4, 5, 7) if size and size % k == 0]
        if parts and rng.random() < 0.6:
            return call("unflatten", n, d, [rng.choice(parts), -1])
        # Sizes that have nothing to do with those that are there.
        total = x.numel()
        a = rng.choice([k for k in range(1, 18) if total % k == 0] if total else [1])
        return f"{n}.reshape([{a}, {total // a}])"
    if form == 19:
        return call("roll", n, [rng.randint(-3, 3)], [d]) if rng.random() < 0.6 else call("roll", n, [rng.randint(-5, 5)])
    if form == 20:
        return call("gather", n, d, s.places(list(x.shape), size)) if size else None
    if form == 21:
        return call("index_select", n, d, s.places([s.size()], size)) if size else None
    if form == 22 and rank > 1 and size and x.shape[0]:
        places = s.places([s.size()], min(x.shape[0], x.shape[1]))
        return rng.choice([f"{n}[{places}]", f"{n}[:, {places}]", f"{n}[{places}, {places}]"])
    if form <= 23:
        if rng.random() < 0.15:
            return call("repeat_interleave", n, 2, d)
        return call("repeat", n, [rng.choice([1, 2]) for _ in range(rank)])
    if form == 24 and rank > 1:
        return call("rot90", n, rng.randint(1, 3), late(s, rank, 2))
    if form == 25:
        return call("constant_pad_nd", n, [rng.randint(-2, 2), rng.randint(-2, 2)], 0.5 if x.is_floating_point() else 1)
    return call("movedim", n, d, rng.randrange(rank))


def attempt(s, make, n):
    """The name of what `make` gives of `n`; `n` itself where it does not fit."""
    before = s.state()
    try:
        text = make(s, n, s.env[n])
        if text is not None:
            return s.add(text)
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
        pass
    s.restore(before)
    return n


def together(s, a, b):
    """The text of a function of two values, as much of each as the other has."""
    rng, x, y = s.rng, s.env[a], s.env[b]
    if x.dim() != y.dim():
        form = rng.randrange(3)
        if form == 0:
            (a, x), (b, y) = ((f"{t}.reshape([-1])", v.reshape([-1])) for t, v in ((a, x), (b, y)))
        elif form == 1:
            # A number for each row.
            while x.dim() < y.dim():
                a, x = f"{a}.unsqueeze(-1)", x.unsqueeze(-1)
            while y.dim() < x.dim():
                b, y = f"{b}.unsqueeze(-1)", y.unsqueeze(-1)
        else:
            # The dimensions that come last.
            while x.dim() > y.dim():
                a, x = f"{a}[{x.shape[0] // 2}]", x[x.shape[0] // 2]
            while y.dim() > x.dim():
                b, y = f"{b}[{y.shape[0] // 2}]", y[y.shape[0] // 2]
    for d, (k, l) in enumerate(zip(x.shape, y.shape)):
        least = min(k, l)
        if k != l and (least != 1 or rng.random() < 0.5):
            # From the beginning, or to the end.
            if k > l:
                a = f"{a}.narrow({d}, {rng.choice([0, k - least])}, {least})"
            else:
                b = f"{b}.narrow({d}, {rng.choice([0, l - least])}, {least})"
    return f"torch.ops.aten.{rng.choice(['add', 'sub', 'mul', 'mul', 'maximum', 'ge'])}({a}, {b})"


def viewed(s, n, x):
    """Rows, views of them, and what reads these."""
    rng = s.rng
    if x.dim() == 0 or x.dtype == torch.bool or 0 in x.shape and rng.random() < 0.8 or rng.random() < 0.5:
        n = fresh(s)
    own = n
    for _ in range(rng.randint(1, 3)):
        if s.env[n].dim() == 0 or s.env[n].dtype == torch.bool:
            break
        row = attempt(s, rows, n)
        if rng.random() < 0.3:
            row = s.add(rng.choice(["torch.ops.aten.relu({})", "{} * 2", "{} + 1", "torch.ops.aten.neg({})"]).replace("{}", row))
        views = []
        for _ in range(rng.choice([1, 1, 2, 2, 3])):
            v = row
            for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
                v = attempt(s, seen, v)
            views.append(v)
        if rng.random() < 0.3:
            views.append(rng.choice([row, own]))
        n = views[0]
        for v in views[1:]:
            n = s.add(together(s, n, v))
        if rng.random() < 0.3:
            # What is read through views is a result as well.
            s.kept.append(row)
    return rng.choice(["{}", "{} + 1", "torch.ops.aten.sigmoid({})", "torch.ops.aten.sum({})", "{}.contiguous()"]).replace("{}", n)


VIEWS = [(viewed, 12)]
