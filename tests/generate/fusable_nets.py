"""Larger pieces for `fusable_graphs.py`: layers that follow each other as models' do, recurrent cells, loops and conditions.

Single operators in a row seldom make the regions that native code plans as wholes: images that stay in channel blocks from one
convolution to the next, concatenations whose parts are written in place, attention over heads that are views of one product. Each piece
adds several steps to a scene and gives the text of its last one, or `None` where it does not fit.

Loops and conditions stand in methods of the graph's module, which TorchScript compiles and Python runs.
"""

import torch

CHANNELS = [1, 3, 4, 5, 8, 15, 16, 16, 17, 24, 32, 32, 33]
# Enough of them, and of pixels, for the forms of convolutions that only pay for many.
MANY = [16, 16, 17, 24, 32, 32, 33, 48]
ACTIVATIONS = ["relu({})", "relu({})", "relu6({})", "silu({})", "hardswish({})", "sigmoid({})", "gelu({})", "leaky_relu({}, 0.1)", "tanh({})",
               "clamp({}, -1.0, 2.0)", "elu({})", "mish({})", "hardsigmoid({})", "softplus({})"]


def call(name, *arguments):
    return f"torch.ops.aten.{name}({', '.join(str(a) for a in arguments)})"


def activation(s, n):
    return "torch.ops.aten." + s.rng.choice(ACTIVATIONS).replace("{}", n)


def without_spread(x, rows):
    """Whether elements of one of so many rows are all the same, so that of them and their mean nothing is left but its error."""
    if x.numel() in (0, rows):
        return False
    x = x.reshape(rows, -1).double()
    return bool((x.std(1, False) < 1e-3 * x.mean(1).abs().clamp(min=1.0)).any())


def spatial(s, rank):
    """Numbers for the spatial dimensions: mostly equal ones."""
    return lambda choices: [s.rng.choice(choices)] * rank if s.rng.random() < 0.75 else [s.rng.choice(choices) for _ in range(rank)]


def convolved(s, n, out=None, kernel=None, stride=None, depthwise=False):
    """The text of a convolution of images whose size it keeps, divided by the stride."""
    x, rng = s.env[n], s.rng
    if out is None and not depthwise and x.shape[1] >= MANY[0] and rng.random() < 0.6:
        out, kernel, ones = rng.choice(MANY), [3] * (x.dim() - 2), [1] * (x.dim() - 2)
        weight = s.tensor([out, x.shape[1]] + kernel, x.dtype, s.rng.random() < 0.9, True)
        bias = s.tensor([out], x.dtype, True, True) if rng.random() < 0.6 else "None"
        return call(f"conv{x.dim() - 2}d", n, weight, bias, ones, rng.choice([ones, ones, [0] * len(ones)]), ones, 1)
    channels, rank = x.shape[1], x.dim() - 2
    every = spatial(s, rank)
    groups = channels if depthwise else rng.choice([1, 1, 1, 1] + [g for g in (2, 3, 4) if channels % g == 0])
    out = out or (channels if depthwise else groups * max(1, rng.choice(CHANNELS) // groups))
    if out % groups:
        groups = 1
    kernel = kernel or every([1, 3, 3, 3, 5])
    dilation = every([1, 1, 1, 2])
    padding = [d * (k // 2) for k, d in zip(kernel, dilation)]
    stride = stride or every([1, 1, 1, 2])
    weight = s.tensor([out, channels // groups] + kernel, x.dtype, s.rng.random() < 0.9, True)
    bias = s.tensor([out], x.dtype, True, True) if rng.random() < 0.6 else "None"
    return call(f"conv{rank}d", n, weight, bias, stride, padding, dilation, groups)


def normalised(s, n):
    x = s.env[n]
    of_channels = lambda: s.tensor([x.shape[1]], x.dtype, True, True)
    weight, bias = (of_channels() if s.rng.random() < 0.8 else "None" for _ in range(2))
    return call("batch_norm", n, weight, bias, of_channels(), f"torch.ops.aten.abs({of_channels()}) + 0.1", False, 0.1, 1e-5, False)


def gated(s, n):
    """Squeeze and excitation."""
    x, rank = s.env[n], s.env[n].dim() - 2
    dims = list(range(2, 2 + rank))
    pooled = s.add(call("mean", n, dims, True) if s.rng.random() < 0.5 else call(f"adaptive_avg_pool{rank}d", n, [1] * rank))
    inner = s.add(activation(s, s.add(convolved(s, pooled, s.rng.choice([1, 4, 8]), [1] * rank, [1] * rank))))
    outer = s.add(convolved(s, inner, x.shape[1], [1] * rank, [1] * rank))
    return call("mul", n, s.add(call(s.rng.choice(["sigmoid", "hardsigmoid"]), outer)))


def images(s, n, x):
    """A network of convolutions over images of its own, or over those that are there."""
    rng = s.rng
    rank = rng.choice([1, 2, 2, 2, 2, 2, 3])
    fits = x.dim() == rank + 2 and x.is_floating_point() and 0 not in x.shape and x.isfinite().all() and x.shape[1] <= 40
    if not s.dtype.is_floating_point:
        return None
    if not fits or rng.random() < 0.5:
        sizes, channels = {1: [7, 16, 17, 33], 2: [4, 7, 8, 9, 13, 16, 20], 3: [3, 4, 5, 6]}[rank], CHANNELS
        if rank == 2 and rng.random() < 0.4:
            sizes, channels = [8, 12, 13, 16, 19, 20], MANY
        n = s.tensor([rng.choice([1, 1, 1, 2, 3]), rng.choice(channels)] + spatial(s, rank)(sizes), constant=False, finite=True)
    seen = [n]
    for _ in range(rng.randint(2, 6)):
        form, x = rng.randrange(14), s.env[n]
        mates = [m for m in seen if s.env[m].shape == x.shape]
        beside = [m for m in seen if s.env[m].shape[2:] == x.shape[2:] and s.env[m].shape[0] == x.shape[0]]
        if form <= 4:
            n = s.add(convolved(s, n))
            if rng.random() < 0.4:
                n = s.add(normalised(s, n))
            if rng.random() < 0.6:
                n = s.add(activation(s, n))
        elif form == 5:
            n = s.add(activation(s, s.add(convolved(s, n, depthwise=True))))
        elif form == 6:
            text = call(rng.choice(["add", "add", "mul", "sub"]), n, s.add(convolved(s, n, x.shape[1], stride=[1] * rank)))
            n = s.add(activation(s, s.add(text)) if rng.random() < 0.5 else text)
        elif form == 7:
            n = s.add(call("add", n, rng.choice(mates), f"alpha={rng.choice([1, 1, 2, -0.5])}"))
        elif form == 8:
            n = s.add(call("cat", "[" + ", ".join(rng.choice(beside) for _ in range(rng.randint(2, 3))) + "]", 1))
        elif form == 9:
            every = spatial(s, rank)
            kernel, stride = every([2, 3, 3]), every([1, 2, 2])
            padding = [rng.randint(0, k // 2) for k in kernel]
            pooled = (kernel, stride, padding, every([1, 1, 2]), rng.random() < 0.3)
            average = (kernel, stride, padding, rng.random() < 0.3, rng.random() < 0.5)
            n = s.add(call(f"max_pool{rank}d", n, *pooled) if rng.random() < 0.6 else call(f"avg_pool{rank}d", n, *average))
        elif form == 10:
            sizes = [2 * k for k in x.shape[2:]]
            name = rng.choice(["nearest", "nearest", {1: "linear", 2: "bilinear", 3: "trilinear"}[rank]])
            flags = "" if name == "nearest" else f"{rng.random() < 0.5}, "
            n = s.add(f"torch.ops.aten.upsample_{name}{rank}d({n}, {sizes}, {flags}{', '.join(['None'] * rank)})")
        elif form == 11:
            n = s.add(gated(s, n))
        elif form == 12:
            first = rng.randint(0, x.shape[1] - 1)
            n = s.add(call("slice", n, 1, first, rng.randint(first + 1, x.shape[1])))
        else:
            stride = rng.choice([1, 2, 2, 3])
            kernel = rng.choice([stride, 2, 3, 4])
            weight = s.tensor([x.shape[1], rng.choice([1, 3, 8, 16, 17])] + [kernel] * rank, x.dtype, True, True)
            n = s.add(call(f"conv_transpose{rank}d", n, weight, "None", [stride] * rank, [rng.randint(0, (kernel - 1) // 2)] * rank,
                           [rng.choice([0, 0, stride - 1])] * rank, 1, [1] * rank))
        seen.append(n)
    x = s.env[n]
    if rng.random() < 0.3:
        n = s.add(call("flatten", s.add(call(f"adaptive_avg_pool{rank}d", n, [rng.choice([1, 1, 2])] * rank)), 1))
        weight = s.tensor([rng.choice([1, 5, 10, 17]), s.env[n].shape[1]], x.dtype, True, True)
        return call("linear", n, weight, s.tensor([s.env[weight].shape[0]], x.dtype, True, True))
    return activation(s, n)


def dense(s, n, width):
    x = s.env[n]
    bias = s.tensor([width], x.dtype, True, True) if s.rng.random() < 0.7 else "None"
    return call("linear", n, s.tensor([width, x.shape[-1]], x.dtype, s.rng.random() < 0.9, True), bias)


def transformer(s, n, x):
    """A layer of a transformer: attention over heads, then two products, each with its norm and residual."""
    rng = s.rng
    if not s.dtype.is_floating_point:
        return None
    batch, length = rng.choice([1, 1, 2, 3]), rng.choice([1, 2, 5, 8, 15, 16, 17, 33])
    heads, own = rng.choice([1, 2, 2, 3, 4]), rng.choice([1, 4, 5, 8, 8, 16, 17])
    width = heads * own
    if rng.random() < 0.3:
        table = s.tensor([rng.choice([3, 10, 50]), width], None, True, True)
        n = s.add(call("embedding", table, s.places([batch, length], s.env[table].shape[0])))
        if rng.random() < 0.5:
            n = s.add(call("add", n, s.tensor([length, width], None, True, True)))
    else:
        n = s.tensor([batch, length, width], constant=False, finite=True)
    norm = lambda n: call("layer_norm", n, [width], s.tensor([width], None, True, True), s.tensor([width], None, True, True), 1e-5)
    first = rng.random() < 0.6
    h = s.add(norm(n)) if first else n
    split = lambda t: call("transpose", call("reshape", t, [batch, length, heads, own]), 1, 2)
    if rng.random() < 0.5:
        qkv = s.add(dense(s, h, 3 * width))
        if rng.random() < 0.5:
            q, k, v = (s.add(split(f"torch.ops.aten.chunk({qkv}, 3, -1)[{i}]")) for i in range(3))
        else:
            r = s.add(call("permute", call("reshape", qkv, [batch, length, 3, heads, own]), [2, 0, 3, 1, 4]))
            q, k, v = (s.add(call("select", r, 0, i)) for i in range(3))
    else:
        q, k, v = (s.add(split(s.add(dense(s, h, width)))) for _ in range(3))
    if rng.random() < 0.2:
        # Positions by rotation.
        half = lambda t: f"torch.ops.aten.cat([-{t}[..., {own // 2}:], {t}[..., :{own // 2}]], -1)"
        turn = s.tensor([length, own], None, True, True)
        q, k = (s.add(f"{t} * torch.ops.aten.cos({turn}) + {half(t)} * torch.ops.aten.sin({turn})") for t in (q, k))
    form = rng.randrange(4)
    if form == 0:
        h = s.add(call("scaled_dot_product_attention", q, k, v, "None", 0.0, rng.random() < 0.5))
    else:
        scores = s.add(f"torch.ops.aten.matmul({q}, {k}.transpose(-2, -1)) * {own ** -0.5!r}")
        if form == 1:
            scores = s.add(call("add", scores, s.tensor([1, heads, length, length][rng.randint(0, 2):], None, None, True)))
        elif form == 2:
            mask = f"torch.ops.aten.triu(torch.ops.aten.ones([{length}, {length}], dtype=torch.bool), 1)"
            scores = s.add(call("masked_fill", scores, mask, rng.choice(["-10000.0", "float('-inf')"])))
        h = s.add(call("matmul", s.add(call("softmax", scores, -1)), v))
    h = s.add(call("reshape", call("transpose", h, 1, 2), [batch, length, width]))
    n = s.add(call("add", n, s.add(dense(s, h, width))))
    if not first:
        n = s.add(norm(n))
    h = s.add(dense(s, s.add(norm(n)) if first else n, rng.choice([width, 2 * width, 4 * width])))
    if rng.random() < 0.25:
        gate = s.add(dense(s, n, s.env[h].shape[-1]))
        h = s.add(f"{activation(s, gate)} * {h}")
    else:
        h = s.add(activation(s, h))
    return call("add", n, s.add(dense(s, h, width)))


def recurrent(s, n, x):
    """A recurrent operator, or a cell in a loop."""
    rng = s.rng
    if s.dtype not in (torch.float32, torch.float64):
        return None
    length, batch, inner, hidden = rng.choice([1, 2, 3, 5]), rng.choice([1, 1, 2, 3]), rng.choice([1, 4, 7, 16]), rng.choice([1, 5, 8, 16, 17])
    x = s.tensor([length, batch, inner], constant=False, finite=True)
    form = rng.randrange(4)
    gates = [4, 3, 1, 4][form] * hidden
    weights = [s.tensor(size, None, rng.random() < 0.8, True) for size in ([gates, inner], [gates, hidden], [gates], [gates])]
    state = lambda *lead: s.tensor([*lead, batch, hidden], None, False, True)
    if form == 0:
        given = f"[{state(1)}, {state(1)}], [{', '.join(weights)}], True, 1, 0.0, False, False, False"
        return f"torch.ops.aten.lstm({x}, {given})[{rng.randint(0, 2)}]"
    if form <= 2:
        name = ["gru", rng.choice(["rnn_tanh", "rnn_relu"])][form - 1]
        return f"torch.ops.aten.{name}({x}, {state(1)}, [{', '.join(weights)}], True, 1, 0.0, False, False, False)[{rng.randint(0, 1)}]"
    body = ("out = []\n"
            "for i in range(x.size(0)):\n"
            "    g = torch.nn.functional.linear(x[i], w, b) + torch.nn.functional.linear(h, u, d)\n"
            "    a, f, k, o = torch.chunk(g, 4, 1)\n"
            "    c = torch.sigmoid(f) * c + torch.sigmoid(a) * torch.tanh(k)\n"
            "    h = torch.sigmoid(o) * torch.tanh(c)\n"
            "    out.append(h)\n"
            "return torch.stack(out)\n")
    w, u, b, d = weights
    return s.method("x: Tensor, h: Tensor, c: Tensor, w: Tensor, u: Tensor, b: Tensor, d: Tensor", body, [x, state(), state(), w, u, b, d])


# What a step of a loop does to `h`, given the loop's number and a part of the other tensor.
ROUNDS = ["h = torch.tanh(h * 0.5 + v)", "h = torch.maximum(h, v)", "h = h + v * i", "h = torch.where(v > 0, h, v)",
          "h = torch.relu(h) + 0.5", "if i % 2 == 0:\n        h = -h", "h[0] = h[0] * 0.5", "h += v", "h = torch.cat([h[1:], h[:1]])",
          "if i > 0:\n        kept.append(h)", "h = h.flip([0])", "h.mul_(0.5)", "if bool((v > 0).any()):\n        h = h + 1",
          "if bool(torch.isnan(v).any()):\n        h = v", "h = torch.softmax(h, 0)"]


def loop(s, n, x):
    """A loop over the first dimension, or until something is large, with a state of one of its slices."""
    rng = s.rng
    if x.dim() < 2 or not 1 <= x.shape[0] <= 9 or 0 in x.shape or not x.is_floating_point():
        x = s.tensor([rng.randint(1, 6), *[s.size() for _ in range(rng.randint(1, 2))]], rng.choice([torch.float32, torch.float64]), False)
        n, x = x, s.env[x]
        if 0 in x.shape:
            return None
    rounds = "".join(f"    {rng.choice(ROUNDS)}\n" for _ in range(rng.randint(1, 3)))
    form = rng.randrange(4)
    head = ["for i in range(x.size(0)):\n    v = x[i]\n", "for i, v in enumerate(torch.unbind(x)):\n",
            "i = 0\nwhile i < x.size(0) and bool((h.abs() < 50).all()):\n    v = x[i]\n    i += 1\n",
            "for i in range(0, int((x[:, 0] > 0).sum())):\n    v = x[i]\n"][form]
    last = rng.choice(["h", "h + torch.stack(kept).sum(0)", "torch.stack(kept)"])
    body = f"h = x[0] * 1\nkept = [h]\n{head}{rounds}return {last}\n"
    return s.method("x: Tensor", body, [n])


def course(s, n, x):
    """What depends on elements: conditions, numbers and sizes."""
    rng = s.rng
    if x.dim() == 0 or x.dtype == torch.bool:
        return None
    condition = rng.choice([f"bool(torch.any({n} > 1))", f"float(torch.sum({n})) > 0", f"int(torch.argmax({n})) % 2 == 0", f"{n}.size(0) > 3",
                            f"bool(torch.all({n} == {n}))"])
    form = rng.randrange(7)
    if form == 0:
        return f"({n} + 1 if {condition} else torch.ops.aten.relu({n}))"
    if form == 1:
        return f"({n}.sum(0) if {condition} else {n})"
    if form == 2:
        return f"torch.ops.aten.masked_select({n}, {n} > {rng.choice(['0', '1', '-1'])})"
    if form == 3:
        return f"{n}[{n} > 0] * 2"
    if form == 4:
        return f"torch.ops.aten.nonzero({n} > 0)"
    if form == 5:
        return f"torch.ops.aten.slice({n}, 0, 0, int(torch.sum({n} > 0)))"
    return f"({n} * float(torch.ops.aten.amax({n})) if {condition} else {n} - 1)"


NETS = [(images, 12), (transformer, 5), (recurrent, 2), (loop, 2), (course, 2)]
