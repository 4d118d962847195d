"""Blocks of more kinds of models for `fusable_graphs.py`: detectors, segmentation, windows of attention, samplers, tables and masks.

`fusable_nets.py` has what most networks have in common; here stands what only some families do. Images are of any shape (a pixel, a long
thin strip, a batch of several), weights are as small as their fan-in asks, so that deep chains keep their size, and a mask may hide a whole row.
"""

import math

import torch

from fusable_nets import activation, call

CHANNELS = [1, 2, 3, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20, 24, 32, 33]
IMAGES = [[1, 1], [1, 17], [33, 1], [2, 31], [40, 3], [3, 3], [5, 4], [7, 7], [8, 8], [9, 6], [13, 10], [16, 16], [17, 15]]
STRIPS = [[1], [2], [7], [16], [17], [33], [64], [100]]
VOLUMES = [[1, 1, 1], [1, 7, 7], [2, 5, 6], [3, 3, 3], [4, 4, 5], [5, 1, 9], [8, 4, 4]]


def pictures(s, rank=2, channels=None):
    """The name of a new batch of images."""
    rng = s.rng
    sizes = rng.choice({1: STRIPS, 2: IMAGES, 3: VOLUMES}[rank])
    return s.tensor([rng.choice([1, 1, 2, 3, 5]), channels or rng.choice(CHANNELS), *sizes], constant=False, finite=True)


def weight(s, sizes, fan_in, constant=None):
    return s.tensor(sizes, None, s.rng.random() < 0.85 if constant is None else constant, True, max(fan_in, 1) ** -0.5)


def bias(s, count):
    return s.tensor([count], None, s.rng.random() < 0.85, True) if s.rng.random() < 0.6 else "None"


def conv(s, n, out, kernel, groups=1, stride=1, padding=None, dilation=1):
    """Adds a convolution, which keeps the images' size if nothing else is said."""
    x = s.env[n]
    rank = x.dim() - 2
    kernel = [kernel] * rank if isinstance(kernel, int) else kernel
    padding = [dilation * (k // 2) for k in kernel] if padding is None else [padding] * rank
    inner = x.shape[1] // groups
    w = weight(s, [out, inner, *kernel], inner * math.prod(kernel))
    return s.add(call(f"conv{rank}d", n, w, bias(s, out), [stride] * rank, padding, [dilation] * rank, groups))


def transposed(s, n, out, kernel, groups, stride, padding, beyond, dilation=1):
    x = s.env[n]
    rank = x.dim() - 2
    w = weight(s, [x.shape[1], out // groups, *[kernel] * rank], x.shape[1] // groups * kernel ** rank)
    return s.add(call(f"conv_transpose{rank}d", n, w, bias(s, out), [stride] * rank, [padding] * rank, [beyond] * rank, groups, [dilation] * rank))


def dense(s, n, width):
    inner = s.env[n].shape[-1]
    return s.add(call("linear", n, weight(s, [width, inner], inner), bias(s, width)))


def batch_norm(s, n):
    c = s.env[n].shape[1]
    own = lambda: s.tensor([c], None, True, True)
    return s.add(call("batch_norm", n, own(), own(), own(), f"torch.ops.aten.abs({own()}) + 0.5", False, 0.1, 1e-5, False))


def divisor(s, count):
    return s.rng.choice([g for g in range(1, count + 1) if count % g == 0])


def resized(s, n, sizes):
    """Another size by some way of resizing images."""
    rng, x = s.rng, s.env[n]
    rank = x.dim() - 2
    none = ["None"] * rank
    names = {1: ["linear1d"], 2: ["bilinear2d", "bicubic2d"], 3: ["trilinear3d"]}[rank] + [f"nearest{rank}d", f"nearest_exact{rank}d"]
    name = rng.choice(names)
    if name.startswith("nearest_exact"):
        return s.add(call("_upsample_" + name, n, sizes, *none))
    return s.add(call("upsample_" + name, n, sizes, *([] if name.startswith("nearest") else [rng.random() < 0.5]), *none))


def pyramid(s):
    """Stages of smaller and smaller images, brought back to the first size and joined: U-Nets, pyramids of features, heads of segmentation."""
    rng = s.rng
    rank = rng.choice([1, 2, 2, 2, 3])
    n = pictures(s, rank, rng.choice([3, 4, 8, 16, 17]))
    width, levels = rng.choice([4, 8, 12, 16, 17]), []
    for level in range(rng.randint(1, 2)):
        n = s.add(activation(s, batch_norm(s, conv(s, n, width, 3))))
        levels.append(n)
        if min(s.env[n].shape[2:]) < 2:
            break
        down = [2] * rank
        n = (s.add(call(f"max_pool{rank}d", n, down)) if rng.random() < 0.5 else conv(s, n, width, 3, stride=2, padding=1))
    n = conv(s, n, width, 3)
    for level in reversed(levels):
        sizes = list(s.env[level].shape[2:])
        if rng.random() < 0.3 and all(2 * a == b for a, b in zip(s.env[n].shape[2:], sizes)):
            n = transposed(s, n, width, 2, divisor(s, width), 2, 0, 0)
        else:
            n = resized(s, n, sizes)
        if rng.random() < 0.5:
            n = s.add(call("add", n, level))
        else:
            n = s.add(call("cat", f"[{n}, {level}]", 1))
        n = s.add(activation(s, conv(s, n, width, rng.choice([1, 3]))))
    return call("sigmoid", n) if rng.random() < 0.5 else call("softmax", n, 1)


def contexts(s):
    """Parallel branches over the same images, joined by channels: dilations, pools of one size after the other, kernels of several shapes."""
    rng = s.rng
    rank = rng.choice([1, 2, 2, 2])
    n, parts = pictures(s, rank), []
    sizes, out = list(s.env[n].shape[2:]), rng.choice([3, 4, 8, 16, 17])
    for form in rng.sample(range(6), rng.randint(2, 4)):
        if form == 0:
            parts.append(conv(s, n, out, 1))
        elif form == 1:
            parts.append(s.add(activation(s, conv(s, n, out, 3, dilation=rng.choice([2, 3, 6])))))
        elif form == 2:
            pooled = s.add(call(f"adaptive_avg_pool{rank}d", n, [1] * rank))
            parts.append(resized(s, s.add(call("relu", conv(s, pooled, out, 1))), sizes))
        elif form == 3:
            p = n
            for _ in range(rng.randint(1, 3)):
                p = s.add(call(f"max_pool{rank}d", p, [5] * rank, [1] * rank, [2] * rank))
                parts.append(p)
        elif form == 4 and rank == 2:
            parts.append(conv(s, conv(s, n, out, [1, 7]), out, [7, 1]))
        else:
            p = s.add(call(f"avg_pool{rank}d", n, [3] * rank, [1] * rank, [1] * rank, rng.random() < 0.5, rng.random() < 0.5))
            parts.append(conv(s, p, out, 1))
    n = s.add(call("cat", f"[{', '.join(parts)}]", 1))
    if rng.random() < 0.4:
        c = s.env[n].shape[1]
        n = s.add(call("channel_shuffle", n, divisor(s, c))) if rank == 2 else n
    return activation(s, conv(s, n, out, 1))


def grouped_norm(s):
    """Norms over groups of channels, instances, all channels of a pixel, or neighbouring channels, between convolutions."""
    rng = s.rng
    rank = rng.choice([1, 2, 2, 3])
    n = conv(s, pictures(s, rank), rng.choice(CHANNELS), rng.choice([1, 3]))
    x = s.env[n]
    c = x.shape[1]
    own = lambda count: s.tensor([count], None, True, True)
    form = rng.randrange(6)
    if form <= 1:
        groups = divisor(s, c)
        if x[0:1].numel() == groups:
            return None
        n = s.add(call("group_norm", n, groups, own(c), own(c), 1e-5))
    elif form == 2:
        if x[0, 0].numel() == 1:
            return None
        affine = rng.random() < 0.5
        n = s.add(call("instance_norm", n, *([own(c), own(c)] if affine else ["None"] * 2), "None", "None", True, 0.1, 1e-5, False))
    elif form == 3 and c > 1:
        # Of each pixel, with channels last and back.
        last = [0, *range(2, rank + 2), 1]
        back = [0, rank + 1, *range(1, rank + 1)]
        n = s.add(call("layer_norm", call("permute", n, last), [c], own(c), own(c), 1e-6))
        if rng.random() < 0.6:
            n = dense(s, s.add(activation(s, dense(s, n, 2 * c))), c)
        n = s.add(call("permute", n, back))
    elif form == 4 and c > 1:
        mean = s.add(call("mean", n, [1], True))
        square = s.add(f"({n} - {mean}).pow(2).mean(1, keepdim=True)")
        scale = s.tensor([c] + [1] * rank, None, True, True)
        n = s.add(f"({n} - {mean}) / torch.ops.aten.sqrt({square} + 1e-3) * {scale}")
    elif rank == 2:
        # Over neighbouring channels.
        padded = f"torch.ops.aten.constant_pad_nd(({n} * {n}).unsqueeze(1), [0, 0, 0, 0, 2, 2])"
        pooled = f"torch.ops.aten.avg_pool3d({padded}, [5, 1, 1], [1, 1, 1]).squeeze(1)"
        n = s.add(f"{n} / ({pooled} * 0.1 + 1.0).pow(0.75)")
    n = s.add(activation(s, n))
    return call("add", n, conv(s, n, c, 3)) if rng.random() < 0.6 else activation(s, conv(s, n, c, 1))


def upwards(s):
    """Transposed convolutions of all kinds, and other ways to larger images."""
    rng = s.rng
    rank = rng.choice([1, 2, 2, 2, 3])
    c = rng.choice([2, 4, 6, 8, 9, 16, 24])
    n = pictures(s, rank, c)
    for _ in range(rng.randint(1, 2)):
        c = s.env[n].shape[1]
        groups = rng.choice([1, c, divisor(s, c)])
        stride, kernel, dilation = rng.choice([1, 2, 2, 3]), rng.choice([1, 2, 3, 4, 5]), rng.choice([1, 1, 1, 2])
        if rng.random() < 0.7:
            padding = rng.randint(0, max(0, (kernel - 1) // 2))
            n = transposed(s, n, groups * rng.choice([1, 2, 3]), kernel, groups, stride, padding, rng.randint(0, stride - 1), dilation)
        elif rank == 2:
            n = s.add(call("pixel_shuffle", conv(s, n, 4 * rng.choice([1, 3, 4]), 3), 2))
        else:
            n = resized(s, n, [2 * k for k in s.env[n].shape[2:]])
        n = s.add(activation(s, batch_norm(s, n) if rng.random() < 0.4 else n))
    return call("tanh", conv(s, n, rng.choice([1, 3, 8]), 3))


def weighed(s):
    """Convolutions whose weights are computed: standardised, normed, made of the images themselves (as many groups as images), or blurs."""
    rng, form = s.rng, s.rng.randrange(5)
    n = pictures(s)
    b, c, h, w = s.env[n].shape
    out = rng.choice([1, 4, 8, 16, 17])
    own = weight(s, [out, c, 3, 3], 9 * c)
    last = ["None", [1, 1], [1, 1], [1, 1]]
    if form == 0:
        mean = s.add(call("mean", own, [1, 2, 3], True))
        v = s.add(f"{own} - {mean}")
        v = s.add(f"{v} / ({v}.reshape([{out}, -1]).std(1).reshape([{out}, 1, 1, 1]) + 0.1)")
        return call("conv2d", n, v, *last, 1)
    if form == 1:
        gain = s.tensor([out, 1, 1, 1], None, True, True)
        v = s.add(f"{gain} * {own} / torch.ops.aten.sqrt(torch.ops.aten.sum({own} * {own}, [1, 2, 3], True) + 0.01)")
        return activation(s, s.add(call("conv2d", n, v, *last, 1)))
    if form == 2:
        style = dense(s, s.tensor([b, 5], None, False, True), c)
        v = s.add(f"{own}.unsqueeze(0) * {style}.reshape([{b}, 1, {c}, 1, 1])")
        v = s.add(f"{v} * torch.ops.aten.rsqrt(torch.ops.aten.sum({v} * {v}, [2, 3, 4], True) + 0.01)")
        joined = s.add(call("conv2d", f"{n}.reshape([1, {b * c}, {h}, {w}])", f"{v}.reshape([{b * out}, {c}, 3, 3])", *last, b))
        return f"{joined}.reshape([{b}, {out}, {h}, {w}])"
    if form == 3:
        if min(h, w) < 2:
            return None
        row = s.add(f"torch.ops.aten.ones([3], dtype={s.dtype}) * 0.25 + 0.0833")
        v = s.add(f"({row}[:, None] * {row}[None, :]).expand([{c}, 1, 3, 3])")
        return call("conv2d", call("reflection_pad2d", n, [1, 1, 1, 1]), v, "None", [2, 2], [0, 0], [1, 1], c)
    # Several sets of weights, mixed by attention of each image.
    many = weight(s, [3, out, c, 3, 3], 9 * c)
    share = s.add(call("softmax", dense(s, s.add(f"{n}.mean([2, 3])"), 3), 1))
    v = s.add(f"torch.ops.aten.matmul({share}, {many}.reshape([3, -1])).reshape([{b * out}, {c}, 3, 3])")
    return f"torch.ops.aten.conv2d({n}.reshape([1, {b * c}, {h}, {w}]), {v}, None, [1, 1], [1, 1], [1, 1], {b}).reshape([{b}, {out}, {h}, {w}])"


def patches(s):
    """Images as rows of windows, and back."""
    rng, form = s.rng, s.rng.randrange(5)
    if form <= 1:
        side, own, rows, columns = rng.choice([2, 3, 4]), rng.choice([4, 6, 8, 16]), rng.randint(1, 3), rng.randint(1, 4)
        b, c, h, w = rng.choice([1, 2]), rng.choice([4, 8, 12]), side * rows, side * columns
        n = s.tensor([b, h, w, c], None, False, True)
        shift = rng.choice([0, side // 2])
        t = s.add(call("roll", n, [-shift, -shift], [1, 2])) if shift else n
        t = s.add(f"{t}.reshape([{b}, {rows}, {side}, {columns}, {side}, {c}]).permute([0, 1, 3, 2, 4, 5]).reshape([-1, {side * side}, {c}])")
        q, k, v = (s.add(f"{dense(s, t, 2 * own)}.reshape([-1, {side * side}, 2, {own}]).transpose(1, 2)") for _ in range(3))
        scores = s.add(call("matmul", f"({q} * {own ** -0.5!r})", f"{k}.transpose(-2, -1)"))
        table = s.tensor([(2 * side - 1) ** 2, 2], None, True, True)
        at = s.places([side * side * side * side], (2 * side - 1) ** 2)
        scores = s.add(f"{scores} + {table}[{at}].reshape([{side * side}, {side * side}, 2]).permute([2, 0, 1]).unsqueeze(0)")
        if shift:
            mask = s.tensor([rows * columns, side * side, side * side], torch.bool, True)
            none = f"torch.ops.aten.zeros([{rows * columns}, 1, {side * side}, {side * side}])"
            hidden = f"torch.ops.aten.masked_fill({none}, {mask}.unsqueeze(1), -100.0)"
            scores = s.add(f"{scores}.reshape([{b}, {rows * columns}, 2, {side * side}, {side * side}]) + {hidden}.to({n}.dtype)")
            scores = s.add(f"{scores}.reshape([-1, 2, {side * side}, {side * side}])")
        t = s.add(call("matmul", s.add(call("softmax", scores, -1)), v))
        t = dense(s, s.add(f"{t}.transpose(1, 2).reshape([-1, {side * side}, {2 * own}])"), c)
        t = s.add(f"{t}.reshape([{b}, {rows}, {columns}, {side}, {side}, {c}]).permute([0, 1, 3, 2, 4, 5]).reshape([{b}, {h}, {w}, {c}])")
        return f"{n} + " + (call("roll", t, [shift, shift], [1, 2]) if shift else t)
    n = pictures(s)
    b, c, h, w = s.env[n].shape
    kernel, stride = rng.choice([1, 2, 3]), rng.choice([1, 1, 2])
    padding = rng.randint(0, kernel // 2)
    columns = s.add(call("im2col", n, [kernel] * 2, [1, 1], [padding] * 2, [stride] * 2))
    if form == 2:
        return call("col2im", s.add(f"{columns} * 0.5 + 1"), [h, w], [kernel] * 2, [1, 1], [padding] * 2, [stride] * 2)
    if form == 3:
        out = rng.choice([1, 8, 17])
        return call("matmul", weight(s, [out, c * kernel * kernel], c * kernel * kernel), columns)
    # Weights of each place.
    own = s.add(call("softmax", s.tensor([b, 1, kernel * kernel, s.env[columns].shape[-1]], None, False, True), 2))
    return f"torch.ops.aten.sum({columns}.reshape([{b}, {c}, {kernel * kernel}, -1]) * {own}, [2])"


def sampled(s):
    """Images that are read at computed places."""
    rng = s.rng
    if s.dtype not in (torch.float32, torch.float64):
        return None
    n = pictures(s)
    b, c, h, w = s.env[n].shape
    form, corners = rng.randrange(3), rng.random() < 0.5
    out = rng.choice([[1, 1], [h, w], [5, 7], [2 * h, 3]])
    if form == 0:
        turn = s.tensor([b, 2, 3], None, False, True)
        grid = s.add(call("affine_grid_generator", turn, [b, c, *out], corners))
    elif form == 1:
        grid = s.add(call("tanh", s.tensor([b, *out, 2], None, False, True)))
    else:
        flow = s.add(f"{conv(s, n, 2, 3)}.permute([0, 2, 3, 1]) * 0.1")
        ys, xs = f"torch.ops.aten.linspace(-1, 1, {h})", f"torch.ops.aten.linspace(-1, 1, {w})"
        base = s.add(f"torch.ops.aten.stack([torch.ops.aten.meshgrid([{ys}, {xs}])[1], torch.ops.aten.meshgrid([{ys}, {xs}])[0]], -1)")
        grid = s.add(f"{base}.to({n}.dtype) + {flow}")
    t = s.add(call("grid_sampler_2d", n, grid, 0, rng.choice([0, 0, 1]), corners))
    return activation(s, conv(s, t, rng.choice([1, 8, 17]), rng.choice([1, 3]))) if rng.random() < 0.5 else t


EQUATIONS = ["bhid,bhjd->bhij", "bij,bjk->bik", "bi,bj->bij", "bij,bij->b", "bii->b", "bij->bji", "bij->i", "bhij,bjhd->bihd", "nchw,kc->nkhw",
             "nchw,nkhw->nck", "bqc,bchw->bqhw", "bi,ij,bj->b", "bld,hdk->bhlk", "ij,j->i", "i,j->ij", "bthd,bThd->bhtT", "abc,cd->abd",
             "bhwc,hkc->bhwk", "ijk,jil->kl", "bnm,m->bn", "blhn,bln->blh", "bcij,bcjk->bcik"]


def equation(s):
    rng, text = s.rng, s.rng.choice(EQUATIONS)
    sizes = {letter: rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 16, 17]) for letter in text if letter.isalpha()}
    terms = text.split("->")[0].split(",")
    given = [s.tensor([sizes[k] for k in term], None, i > 0 and rng.random() < 0.5, True) for i, term in enumerate(terms)]
    t = s.add(call("einsum", repr(text), f"[{', '.join(given)}]"))
    return activation(s, t) if rng.random() < 0.5 else f"{t} * 0.5 + 1"


def hidden(s):
    """Attention and pooling over sequences of which each has a length of its own; rows may be hidden altogether."""
    rng = s.rng
    b, heads, length, own = rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([1, 3, 7, 8, 16, 17]), rng.choice([4, 5, 8, 16])
    lengths = s.places([b], length + 1)
    at = f"torch.ops.aten.arange({length})"
    if rng.random() < 0.7:
        shown = s.add(f"{at}[None, :] < {lengths}[:, None]")
    else:
        shown = s.tensor([b, length], torch.bool, False)
    form = rng.randrange(6)
    if form <= 2:
        q, k, v = (s.tensor([b, heads, length, own], None, False, True) for _ in range(3))
        scores = s.add(f"torch.ops.aten.matmul({q}, {k}.transpose(-2, -1)) / {math.sqrt(own)!r}")
        mask = f"{shown}[:, None, None, :]"
        if rng.random() < 0.4:
            mask = f"({mask} & torch.ops.aten.tril(torch.ops.aten.ones([{length}, {length}], dtype=torch.bool)))"
        if form == 0:
            scores = s.add(f"torch.ops.aten.masked_fill({scores}, ~{mask}, float('-inf'))")
        elif form == 1:
            scores = s.add(f"{scores} + (1.0 - {mask}.to({q}.dtype)) * -10000.0")
        else:
            scores = s.add(f"torch.ops.aten.where({mask}, {scores}, torch.ops.aten.full([], -1e4, dtype={s.dtype}))")
        share = s.add(call("softmax", scores, -1))
        if form == 0 and rng.random() < 0.6:
            share = s.add(call("masked_fill", share, f"torch.ops.aten.isnan({share})", "0.0"))
        return call("matmul", share, v)
    x = s.tensor([b, length, own], None, False, True)
    m = f"{shown}.unsqueeze(-1)"
    if form == 3:
        # The mean of what is shown.
        return f"torch.ops.aten.sum({x} * {m}, [1]) / torch.ops.aten.clamp({m}.sum(1), min=1)"
    if form == 4:
        return f"torch.ops.aten.amax(torch.ops.aten.masked_fill({x}, ~{m}, float('-inf')), [1])"
    # The element before the end, by a number of each row.
    last = f"torch.ops.aten.clamp({lengths} - 1, min=0)"
    return f"torch.ops.aten.gather({x}, 1, {last}.reshape([{b}, 1, 1]).expand([{b}, 1, {own}])).squeeze(1)"


def counted(s):
    """Whole numbers: positions from masks, buckets of distances, tables, one for each class."""
    rng = s.rng
    b, length, width = rng.choice([1, 2, 3]), rng.choice([1, 5, 8, 17]), rng.choice([1, 4, 9, 16])
    ids = s.places([b, length], rng.choice([3, 7, 12]))
    table = s.tensor([length + 20, width], None, rng.random() < 0.7, True)
    form = rng.randrange(9)
    if form == 0:
        # Positions go on where the padding does not stand.
        here = s.add(f"({ids} != 1).to(torch.int32)")
        return call("embedding", table, f"(torch.ops.aten.cumsum({here}, 1).to(torch.int32) * {here}).to(torch.int64) + 1")
    if form == 1:
        # Buckets of distances, finer for the near ones.
        d = s.add(f"torch.ops.aten.arange({length})[None, :] - torch.ops.aten.arange({length})[:, None]")
        far = f"4 + (torch.ops.aten.log(torch.ops.aten.clamp({d}.abs(), min=1).to(torch.float32) / 4.3) / 1.37 * 4.0).to(torch.int64)"
        near = s.add(f"torch.ops.aten.where({d}.abs() < 4, {d}.abs(), torch.ops.aten.minimum({far}, torch.ops.aten.full_like({d}, 7)))")
        return f"torch.ops.aten.embedding({table}, {near} + ({d} > 0).to(torch.int64) * 8).permute([2, 0, 1])"
    if form == 2:
        hot = f"({ids}.unsqueeze(-1) == torch.ops.aten.arange(12))"
        return f"torch.ops.aten.matmul({hot}.to({table}.dtype), {table}[:12])"
    if form == 3:
        return f"torch.ops.aten.one_hot({ids}, 12).to({table}.dtype).sum(1)"
    if form == 4:
        # Wrapping, shifting, dividing.
        i = s.tensor([b, length], rng.choice([torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]), False)
        texts = ["{} * 37 + 11", "{} << 2", "{} >> 1", "{} & 6", "{} ^ 5", "{} // 3", "{} % 5", "-{}", "~{}", "{} - 200", "{} * {}",
                 "torch.ops.aten.clamp({}, -3, 4)", "{}.abs()", "{}.to(torch.int32)", "{} // 2 * 2", "torch.ops.aten.cumsum({}, 1)",
                 "torch.ops.aten.maximum({}, {}.flip([1]))", "torch.ops.aten.remainder({}, -4)", "torch.ops.aten.div({}, 3, rounding_mode='trunc')"]
        for _ in range(rng.randint(2, 5)):
            i = s.add(rng.choice(texts).replace("{}", i))
        return rng.choice(["{}.to(torch.float32) / 7", "{}.sum(0)", "{} == 1", "{} + 0.5"]).replace("{}", i)
    if form == 5:
        order = [list(range(width)), [(k // 2) % width for k in range(width)]][rng.randrange(2)]
        return f"torch.ops.aten.index_select({table}, 1, torch.tensor({order}))"
    if form == 6:
        # Into places that may be the same.
        rows = s.tensor([b, length, width], None, False, True)
        zero = s.add(f"torch.ops.aten.zeros([{b}, 12, {width}], dtype={s.dtype})")
        return call("scatter_add", zero, 1, f"{ids}.unsqueeze(-1).expand([{b}, {length}, {width}])", rows)
    if form == 7:
        slower = f"torch.ops.aten.exp(torch.ops.aten.arange(0, {2 * width}, 2) * {-math.log(100.0) / width!r})"
        a = s.add(f"torch.ops.aten.arange({length}).unsqueeze(1) * {slower}")
        t = s.add(f"torch.ops.aten.stack([torch.ops.aten.sin({a}), torch.ops.aten.cos({a})], -1).flatten(1)")
        return f"{t}.to({table}.dtype) + {s.tensor([b, length, 2 * width], None, False, True)}"
    repeated = s.places([length], 4)
    return f"torch.ops.aten.repeat_interleave({s.tensor([length, width], None, False, True)}, {repeated}, 0) * 2"


def boxes(s):
    """Heads of detectors: distributions of distances to boxes, overlaps of pairs, scores of the best."""
    rng = s.rng
    b, count, classes = rng.choice([1, 2]), rng.choice([1, 5, 16, 17, 33]), rng.choice([1, 3, 8])
    form = rng.randrange(4)
    if form == 0:
        bins = rng.choice([4, 7, 16])
        n = s.tensor([b, 4 * bins + classes, count], None, False, True)
        box, scores = (s.add(f"torch.ops.aten.split_with_sizes({n}, [{4 * bins}, {classes}], 1)[{i}]") for i in range(2))
        share = s.add(call("softmax", f"{box}.reshape([{b}, 4, {bins}, {count}]).transpose(2, 1)", 1))
        steps = s.add(f"torch.ops.aten.arange({bins}).to({n}.dtype).reshape([1, {bins}, 1, 1])")
        far = s.add(f"torch.ops.aten.conv2d({share}, {steps}).reshape([{b}, 4, {count}])")
        middle = s.tensor([2, count], None, True, True)
        low, high = s.add(f"{middle} - torch.ops.aten.chunk({far}, 2, 1)[0]"), s.add(f"{middle} + torch.ops.aten.chunk({far}, 2, 1)[1]")
        return f"torch.ops.aten.cat([({low} + {high}) / 2, {high} - {low}, torch.ops.aten.sigmoid({scores})], 1)"
    if form == 1:
        m = rng.choice([1, 4, 9])
        one, other = s.tensor([count, 2, 2], None, False, True), s.tensor([m, 2, 2], None, False, True)
        corners = lambda t: s.add(f"torch.ops.aten.cat([{t}[:, 0], {t}[:, 0] + {t}[:, 1].abs() + 0.1], 1)")
        one, other = corners(one), corners(other)
        low = f"torch.ops.aten.maximum({one}[:, None, :2], {other}[None, :, :2])"
        high = f"torch.ops.aten.minimum({one}[:, None, 2:], {other}[None, :, 2:])"
        sides = s.add(f"torch.ops.aten.clamp({high} - {low}, min=0)")
        common = s.add(f"{sides}[..., 0] * {sides}[..., 1]")
        areas = [s.add(f"({t}[:, 2] - {t}[:, 0]) * ({t}[:, 3] - {t}[:, 1])") for t in (one, other)]
        return f"{common} / ({areas[0]}[:, None] + {areas[1]} - {common})"
    if form == 2:
        n = s.tensor([b, count, classes], None, False, True)
        best = s.add(f"torch.ops.aten.amax(torch.ops.aten.sigmoid({n}), [-1])")
        first = s.add(f"torch.ops.aten.topk({best}, {rng.randint(1, count)}, 1)[1]")
        return f"torch.ops.aten.gather({n}, 1, {first}.unsqueeze(-1).expand([-1, -1, {classes}]))"
    n = s.tensor([b, 3 * (5 + classes), rng.choice([1, 4, 7]), rng.choice([1, 4, 5])], None, False, True)
    h, w = s.env[n].shape[2:]
    t = s.add(f"{n}.reshape([{b}, 3, {5 + classes}, {h}, {w}]).permute([0, 1, 3, 4, 2]).contiguous()")
    y = s.add(call("sigmoid", t))
    lines = f"torch.ops.aten.meshgrid([torch.ops.aten.arange({h}), torch.ops.aten.arange({w})])"
    grid = s.add(f"torch.ops.aten.stack([{lines}[1], {lines}[0]], 2).to({n}.dtype)")
    sizes = s.tensor([1, 3, 1, 1, 2], None, True, True)
    parts = f"({y}[..., 0:2] * 2.0 - 0.5 + {grid}) * 8, ({y}[..., 2:4] * 2) ** 2 * {sizes}, {y}[..., 4:]"
    return f"torch.ops.aten.cat([{parts}], 4).reshape([{b}, -1, {5 + classes}])"


def recurrent_layers(s):
    """Layers of recurrent operators, forwards and back, in both orders of dimensions; cells."""
    rng = s.rng
    if s.dtype not in (torch.float32, torch.float64):
        return None
    batch, length, inner, width = rng.choice([1, 2, 3]), rng.choice([1, 2, 5]), rng.choice([1, 4, 7]), rng.choice([1, 5, 8])
    layers, both, first = rng.choice([1, 2]), rng.random() < 0.5, rng.random() < 0.5
    name, gates = rng.choice([("lstm", 4), ("gru", 3), ("rnn_tanh", 1)])
    if rng.random() < 0.25:
        x, h = s.tensor([batch, inner], None, False, True), s.tensor([batch, width], None, False, True)
        own = [weight(s, [gates * width, inner], inner), weight(s, [gates * width, width], width), bias(s, gates * width), bias(s, gates * width)]
        if "None" in own:
            own[2:] = ["None", "None"]
        state = f"[{h}, {s.tensor([batch, width], None, False, True)}]" if name == "lstm" else h
        return call(name + "_cell", x, state, *own) + ("[0]" if name == "lstm" else "")
    sides, biased = 2 if both else 1, rng.random() < 0.7
    weights = []
    for layer in range(layers):
        for _ in range(sides):
            k = inner if layer == 0 else sides * width
            weights += [weight(s, [gates * width, k], k, True), weight(s, [gates * width, width], width, True)]
            weights += [s.tensor([gates * width], None, True, True) for _ in range(2)] if biased else []
    x = s.tensor([batch, length, inner] if first else [length, batch, inner], None, False, True)
    zero = lambda: s.add(f"torch.ops.aten.zeros([{layers * sides}, {batch}, {width}], dtype={s.dtype})")
    state = f"[{zero()}, {zero()}]" if name == "lstm" else zero()
    out = s.add(call(name, x, state, f"[{', '.join(weights)}]", biased, layers, 0.0, False, both, first) + "[0]")
    return dense(s, out, rng.choice([1, 5])) + ".relu()"


def streams(s):
    """One-dimensional networks: causal and gated convolutions, scans, mixtures of experts."""
    rng = s.rng
    b, length, width = rng.choice([1, 2]), rng.choice([1, 5, 8, 16, 17, 33]), rng.choice([2, 4, 7, 8, 16])
    form = rng.randrange(5)
    if form == 0:
        n = s.tensor([b, width, length], None, False, True)
        d = rng.choice([1, 2, 4])
        padded = s.add(call("constant_pad_nd", n, [2 * d, 0]))
        a, g = (conv(s, padded, width, 3, padding=0, dilation=d) for _ in range(2))
        t = s.add(f"torch.ops.aten.tanh({a}) * torch.ops.aten.sigmoid({g})")
        return call("add", n, conv(s, t, width, 1))
    n = s.tensor([b, length, width], None, False, True)
    if form == 1:
        # Gated, mixed along the sequence.
        t = s.add(f"torch.ops.aten.glu({dense(s, n, 2 * width)}, -1)")
        t = s.add(f"{conv(s, s.add(f'{t}.transpose(1, 2)'), width, rng.choice([3, 5]), groups=width)}.transpose(1, 2)")
        return f"{n} + " + activation(s, t)
    if form == 2:
        # Of what decays.
        a = s.add(f"torch.ops.aten.sigmoid({dense(s, n, width)})")
        decay = s.add(f"torch.ops.aten.exp(torch.ops.aten.cumsum(torch.ops.aten.log({a}), 1))")
        return f"torch.ops.aten.cumsum({n} * {a}, 1) * {decay}"
    if form == 3:
        # Each by its best experts.
        count = rng.choice([2, 4])
        gate = s.add(call("softmax", dense(s, n, count), -1))
        ways = weight(s, [count, width, width], width)
        every = s.add(f"torch.ops.aten.einsum('bli,eij->blej', [{n}, {ways}])")
        best = s.add(f"torch.ops.aten.amax({gate}, [-1], True)")
        return f"torch.ops.aten.sum({every} * torch.ops.aten.where({gate} >= {best}, {gate}, torch.ops.aten.zeros_like({gate})).unsqueeze(-1), [2])"
    # Keys and values are those of groups of heads.
    own, groups, times = rng.choice([2, 4, 5]), rng.choice([1, 2]), rng.choice([1, 2, 3])
    q = s.add(f"{dense(s, n, own * groups * times)}.reshape([{b}, {length}, {groups * times}, {own}]).transpose(1, 2)")
    k, v = (s.add(f"{dense(s, n, own * groups)}.reshape([{b}, {length}, {groups}, {own}]).transpose(1, 2)") for _ in range(2))
    spread = lambda t: f"{t}[:, :, None].expand([{b}, {groups}, {times}, {length}, {own}]).reshape([{b}, {groups * times}, {length}, {own}])"
    return call("scaled_dot_product_attention", q, spread(k), spread(v), "None", 0.0, rng.random() < 0.5)


FORMS = [(pyramid, 3), (contexts, 3), (grouped_norm, 3), (upwards, 2), (weighed, 2), (patches, 3), (sampled, 1), (equation, 2), (hidden, 3),
         (counted, 3), (boxes, 2), (recurrent_layers, 2), (streams, 2)]


def layers(s, n, x):
    """One of the blocks, on tensors of its own."""
    if not s.dtype.is_floating_point:
        return None
    return s.rng.choices([f for f, _ in FORMS], [w for _, w in FORMS])[0](s)


LAYERS = [(layers, 12)]
