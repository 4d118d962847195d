#!/usr/bin/env python3
"""Writes random expression graphs and what PyTorch computes for them, as cases for `tests/tests/operators.rs`.

    random_graphs.py OUT [--count=N] [--seed=N] [--steps=N] [--strides] [--fusable [--no-constants]]

A graph is a TorchScript method: some inputs of mixed dtypes and layouts (also empty, zero-dimensional, transposed, broadcast), then
calls of operators that `docs/operators.md` says the interpreter runs, with arguments made up by the types and names of their
schemas; with `--fusable` they aim at what native code fuses (`fusable_graphs.py`), with `--no-constants` on inputs alone. Calls that PyTorch refuses are tried again with others; one graph in thirty ends with a call that it refuses, which has to
raise. In-place forms write through views that are kept. All values are results, at the end and so after all writes.

Left out is also what PyTorch itself leaves to chance (`by_chance`): an operand that a call overwrites while it reads it, signs of NaN,
and the parts of spectra and of solutions that are NaN once something is not finite.

A graph counts only where its results are those of the same graph under errors of rounding: with an error of a few units in the last
place of each result nothing may change by more than the tolerance. So a floor of what is nearly whole tells nothing. Spectra and what
comes of factorisations are off by units of the largest element that went in or came out, as their algorithms are: zeros of theirs may
be of either sign, and not quite zero.
"""

import argparse
import functools
import io
import json
import math
import os
import random
import re
import sys
import types
import warnings

import torch
from safetensors.torch import save_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "fixtures"))
import fusable_graphs  # noqa: E402
from make_operators import encode, save  # noqa: E402

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
# Each graph runs once: nothing is gained by watching it first.
torch._C._jit_set_profiling_executor(False)

DTYPES = [torch.float32] * 6 + [torch.int64] * 3 + [torch.bool] * 2 + [
    torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int16, torch.int8, torch.uint8, torch.complex64]
TOLERANCE = {torch.float64: (1e-6, 1e-6), torch.float32: (1e-4, 1e-4), torch.complex64: (1e-4, 1e-4), torch.float16: (1e-2, 4e-3),
             torch.bfloat16: (8e-2, 3e-2)}
# Random numbers, results that no rule fixes (uninitialised memory, the order of equals), other devices, and what changes the world.
SKIPPED = re.compile(
    r"^(rand|normal|bernoulli|multinomial|.*dropout|empty|new_empty|resize|set_|_?(pack|pad)_p|unique|_unique|sort|argsort|msort|topk|"
    r"kthvalue|mode|median|nanmedian|rrelu|cuda|cpu|pin_memory|requires_grad|to$|item|equal|allclose|is_|size|stride|dim|numel|"
    r"lstm|gru|rnn|quantized|_native|_transformer|_convolution|_batch_norm|cudnn|mkldnn|_cdist|_pdist|_prelu|_shape|_upsample|"
    r"tensor$|as_tensor|scalar_tensor|Float|Int|Bool|ScalarImplicit|FloatImplicit|IntImplicit|geqrf|max_unpool|as_strided|"
    r"native_|special_erfcx|embedding_bag|fractional|ctc|grid_sampler|block_diag|cartesian|combinations|lift|data|detach_copy|"
    r"linspace|logspace|arange|range|poisson_nll|multi|nll|cross_entropy|binary_cross|triplet|cosine_embedding|histc|bincount|"
    r"erfinv|digamma|lgamma|nextafter|float_power|_weight_norm|meshgrid|exponential|cauchy|geometric|log_normal|random|uniform|put$|take_along_dim|"
    # Its vectors of eight take NaN and infinity otherwise than its single elements.
    r"_add_relu$|"
    # Trust that shapes, strides, indices, offsets and pivots are those of each other, and write beyond their memory where they are not.
    r"_(log_)?softmax_backward_data$|(adaptive_)?max_pool.*_backward$|segment_reduce|linalg_ldl_solve$|ormqr|orgqr|"
    r"_scaled_dot_product_flash|embedding_renorm|"
    # Vectors that are right up to a sign, eigenvalues in any order, how many values are just not zero, and what a factorisation that failed leaves behind.
    r"_?(linalg_)?(svd|matrix_rank|eig|eigh|eigvals|qr|cholesky_ex|inv_ex|ldl_factor.*|lu_factor.*|lu|lu_solve|lu_unpack|_lu_with_info)$)")
SIZES = [[], [1], [3], [0], [2, 3], [3, 1], [1, 3], [2, 0], [4, 2, 3], [2, 1, 3], [1, 2, 2, 3], [2, 3, 4, 4], [3, 3], [5]]


def operators(page, compiled=False):
    """The operators that the page of operators lists, with those of their overloads that can be called with made-up arguments; `compiled`:
    those that native code is made of."""
    names = re.findall(r"^\| `aten::(\w+)` \|" + (r" \w+ \| \d+ \| (?!no\b)" if compiled else ""), open(page).read(), re.M)
    found = []
    for name in names:
        if SKIPPED.match(name):
            continue
        for form in (name, name + "_"):
            for schema in torch._C._jit_get_schemas_for_operator("aten::" + form):
                if any(a.is_out for a in schema.arguments) or not all(known(a) for a in schema.arguments):
                    continue
                if all(str(r.type) in ("Tensor", "List[Tensor]") for r in schema.returns) and schema.returns:
                    found.append((form, schema))
    # Every operator as often as another, whatever the number of its overloads.
    by_name = {}
    for form, schema in found:
        by_name.setdefault(form, []).append(schema)
    return sorted(by_name.items())


PLAIN = ("Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]", "number", "Optional[number]", "int", "Optional[int]",
         "bool", "Optional[bool]", "float", "Optional[float]", "List[int]", "Optional[List[int]]", "str", "Optional[str]")
LEFT = ("layout", "device", "pin_memory", "generator", "memory_format")


# Read while they are written: whole matrices, and elements in another order; of the others what lies elsewhere in the same memory.
WRITES_FIRST = re.compile(r"^(add(mm|bmm|mv|r)|baddbmm|masked_scatter|index_\w+|scatter\w*)_$")
OF_FINITE = re.compile(r"^_?(fft_|linalg_|stft|istft|pinverse|lu|triangular_solve|cholesky|det$|logdet|slogdet|inverse|matrix_exp)")
# What is off by units of the largest element.
OF_LARGEST = re.compile(OF_FINITE.pattern + r"|^(logaddexp|lerp|special_\w+_polynomial|det|logdet|slogdet|inverse|matrix_(power|exp)|cov|corrcoef)")
# Sums of terms that may cancel each other, up to errors of the terms: fused or not, and in one order or another. One of them is 1 + erf(x).
OF_TERMS = re.compile(
    r"^(linalg_)?(cross|vecdot|multi_dot|matmul)$|^(mm|bmm|mv|v?dot|inner|linear|bilinear|matmul|chain_matmul|tensordot|einsum|add(mm|mv|bmm|r|cmul|cdiv)|"
    r"baddbmm|conv.*|(nan)?(sum|mean)|cumsum|logcumsumexp|var.*|std.*|trap.*|cumulative_trapezoid|gradient|(layer|batch|group|instance)_norm|"
    r"log_softmax|special_log_softmax|(special_)?logsumexp|.*dist.*|cosine_similarity|upsample.*|.*avg_pool.*|gelu|.*_loss|"
    r"scaled_dot_product_attention)_?$")
CALLED = re.compile(r"torch\.ops\.aten\.(\w+)\(")


def by_chance(name, values):
    """Whether what PyTorch gives for these tensors depends on how it goes about it."""
    if WRITES_FIRST.match(name) and values:
        memory = [t.untyped_storage().data_ptr() for t in values]
        return memory[0] in memory[1:]
    if name.endswith("_") and not name.startswith("__") and values and values[0].numel():
        first = values[0]
        place = lambda t: (t.data_ptr(), t.shape, t.stride())
        if any(t.untyped_storage().data_ptr() == first.untyped_storage().data_ptr() and place(t) != place(first) for t in values[1:]):
            return True
        # Reads what it has just written where elements share memory, and not where it goes by vectors.
        if first.numel() > 1 and fusable_graphs.overlap(first):
            return True
    if name in ("tril_", "triu_"):
        # Writes elements that share memory one after the other, where other calls refuse to.
        return any(stride == 0 and size > 1 for t in values for stride, size in zip(t.stride(), t.shape))
    if name == "linalg_polar":
        # The unitary factor of a singular matrix is any of many.
        return any(not t.isfinite().all() or singular(t) for t in values)
    if name == "isin":
        # May take the word for it that elements are unique.
        return any(t.unique().numel() != t.numel() for t in values)
    if name.startswith("index") and any(t.is_neg() and not t.is_floating_point() for t in values):
        # Indices are read without being negated.
        return True
    if name in ("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"):
        # Moves indices into the tensor, of which there are none, and reads or writes there.
        return any(t.numel() == 0 for t in values)
    if name == "_stack":
        # Copies as many elements as the first stride says, and not the size.
        return any(not t.is_contiguous() or t.dim() and t.stride() != torch.empty(t.shape).stride() for t in values)
    if name == "_chunk_cat":
        # Reads and writes beyond the sizes of what has no dimension.
        return any(t.dim() == 0 for t in values)
    if name == "cov":
        # Overwrites a single observation.
        return values[0].dim() == 0 or values[0].shape[-1] == 1
    if name == "scaled_dot_product_attention":
        # A row of scores that are NaN is lost where it does not fill a vector.
        return any(not t.isfinite().all() for t in values)
    if name in ("gelu", "gelu_"):
        # NaN for infinity where eight are computed at once, infinity elsewhere.
        return any(t.isinf().any() for t in values)
    if name in ("neg", "neg_", "negative", "negative_", "_neg_view"):
        # Of complex numbers zero minus each where several are computed at once: the sign of a zero part.
        return any(t.is_complex() and (torch.view_as_real(t.resolve_conj().resolve_neg()) == 0).any() for t in values)
    if name in ("matmul", "linalg_matmul", "linear") and any(t.numel() == 0 for t in values):
        # Raises for different dtypes, or does not, by the strides of the larger one: they say whether it is one product or many.
        return len({t.dtype for t in values}) > 1 and any(t.dim() > 2 and not t.is_contiguous() for t in values)
    if name.startswith("conv") and len(values) > 1:
        # Whether padding is multiplied with weights that are not finite depends on the library that PyTorch takes; of bfloat16 also what
        # becomes of such inputs.
        return any(not t.isfinite().all() for t in values[1:] + [t for t in values[:1] if t.dtype == torch.bfloat16])
    if name == "softshrink":
        # Zero for what is negative and small has a sign only where it does not fill a vector.
        return any(t.is_floating_point() and t.signbit().any() for t in values)
    if name in ("maximum", "minimum", "max", "min", "amax", "amin", "aminmax", "clamp", "clamp_max", "clamp_min"):
        # Of zeros of both signs the first one, or the second where several are compared at once.
        zeros = [t[t == 0].signbit() for t in values if t.is_floating_point()]
        return any(z.any() for z in zeros) and not all(z.all() for z in zeros)
    if name in ("signbit", "copysign", "copysign_", "view", "view_copy", "view_as"):
        return any(t.isnan().any() for t in values)
    if name in ("matrix_exp", "linalg_matrix_exp") and any(t.dtype in (torch.float16, torch.bfloat16) for t in values):
        # Half precision has no bounds for its series there.
        return True
    return bool(OF_FINITE.match(name)) and any(not t.isfinite().all() for t in values)


def singular(matrices):
    if matrices.dim() < 2 or not matrices.numel() or not (matrices.is_floating_point() or matrices.is_complex()):
        return False
    found = torch.linalg.svdvals(matrices.to(torch.complex128))
    return bool((found[..., -1] <= 1e-4 * found[..., 0]).any())


def known(argument):
    return str(argument.type) in PLAIN or argument.has_default_value() and argument.name in LEFT


def number(rng):
    return rng.choice([0, 1, 2, -1, 3, 0.5, -1.5, 2.0, 0.25, True])


def made_up(rng, argument, values, like):
    """An argument by its type and name: its text and its value. `like` is the first tensor of the call."""
    kind, name = str(argument.type), argument.name
    if kind.startswith("Optional["):
        if name not in ("dim", "min", "max", "weight", "bias") and rng.random() < 0.6 or rng.random() < 0.3:
            return "None", None
        kind = kind[len("Optional["):-1]
    rank = like.dim() if like is not None else 2
    if kind == "Tensor":
        wanted = [v for v in values]
        if name in ("index", "indices"):
            wanted = [v for v in values if v[1].dtype == torch.int64] or values
        if name in ("mask", "condition"):
            wanted = [v for v in values if v[1].dtype == torch.bool] or values
        return rng.choice(wanted)
    if kind in ("List[Tensor]", "List[Optional[Tensor]]"):
        first = rng.choice(values)
        mates = [v for v in values if v[1].shape == first[1].shape]
        chosen = [first] + [rng.choice(mates) for _ in range(rng.randint(0, 2))]
        if kind != "List[Tensor]":
            chosen = [rng.choice([v for v in values if v[1].dtype in (torch.int64, torch.bool)] or values)
                      for _ in range(rng.randint(1, 2))]
        return "[" + ", ".join(c[0] for c in chosen) + "]", [c[1] for c in chosen]
    if name == "dtype":
        value = rng.choice([torch.float32, torch.float64, torch.int64, torch.bfloat16])
        return repr(value), value
    if kind == "number":
        value = number(rng)
    elif kind == "bool":
        value = rng.random() < 0.5
    elif kind == "float":
        # Dropout draws random numbers.
        value = 0.0 if name == "dropout_p" else rng.choice([0.0, 1.0, 0.5, 2.0, -1.0, 1e-3])
    elif kind == "int":
        if "dim" in name or name in ("axis",):
            value = rng.randint(-rank, max(rank - 1, 0)) if rng.random() < 0.97 else rng.choice([rank, -rank - 2])
        elif name == "reduction":
            value = rng.randint(0, 2)
        else:
            value = rng.choice([0, 1, 2, 3, -1, 1, 2])
    elif kind == "List[int]":
        if "dim" in name:
            value = rng.sample(range(rank), rng.randint(0, rank)) if rank else []
            if name == "dims" and rng.random() < 0.7:
                value = rng.sample(range(rank), rank)
        elif name in ("size", "shape", "sizes") and like is not None:
            value = list(like.shape)
            rng.shuffle(value)
            if rng.random() < 0.3:
                value = [-1]
            if rng.random() < 0.3:
                value = [2] + list(like.shape)
        else:
            value = [rng.choice([0, 1, 2, 1, 3]) for _ in range(rng.choice([1, 2, 2, 4]))]
    else:
        value = rng.choice(["none", "tanh", "trunc", "floor", "sum", "mean", "prod", "amax", "amin", "linear", "lower", "reflect",
                            "constant", "replicate"])
    return repr(value), value


def made_up_call(rng, name, schema, values):
    """A call's text, and the tensors that it is given."""
    texts, like, given = [], None, []
    for argument in schema.arguments:
        if argument.name in LEFT and argument.has_default_value():
            continue
        if argument.has_default_value() and rng.random() < 0.5:
            if not argument.kwarg_only:
                break
            continue
        text, value = made_up(rng, argument, values, like)
        if (name, argument.name) == ("linalg_lstsq", "rcond"):
            # Cuts off by the pivots of a factorisation, so differently with each of them.
            text, value = "None", None
        if like is None and isinstance(value, torch.Tensor):
            like = value
        given += leaves({"": value})
        texts.append(f"{argument.name}={text}" if argument.kwarg_only else text)
    return f"torch.ops.aten.{name}({', '.join(texts)})", given


LEFT_TO_CHANCE = ("copysign", "signbit", "nan_to_num")


def compiled_call(rng, table, values):
    """The text of a call of an operator of `table` that writes nothing; `None` where chance decides its result, as it does where the sign of
    a NaN is seen, since these graphs run on inputs with NaN too, where infinity becomes the largest number, whose sums are infinite
    in one order and not in another, and where NaN raises, unless nothing reads the result."""
    name, schemas = rng.choice(table)
    text, given = made_up_call(rng, name, rng.choice(schemas), values)
    return None if name.endswith("_") or name in LEFT_TO_CHANCE or OF_FINITE.match(name) or by_chance(name, given) else text


def fresh(rng, generator):
    sizes = list(rng.choice(SIZES))
    dtype = rng.choice(DTYPES)
    numbers = torch.randint(-8, 9, sizes, generator=generator)
    if dtype == torch.bool:
        return numbers > 0
    if dtype == torch.uint8:
        return numbers.abs().to(dtype)
    if dtype.is_floating_point:
        return (numbers / 4).to(dtype)
    if dtype.is_complex:
        return torch.complex(numbers / 4, torch.randint(-8, 9, sizes, generator=generator) / 4)
    if rng.random() < 0.3:
        numbers = numbers.abs() % 3
    return numbers.to(dtype)


# Layouts that an input is brought into by the graph itself.
LAYOUTS = ["{}.transpose(0, -1)", "{}.expand([2] + {}.size())", "{}[::2]", "{}.unsqueeze(0)", "{}.contiguous().t()", "{}[1:]",
           "{}.transpose(-1, -2).contiguous().transpose(-1, -2)", "{}.contiguous(memory_format=torch.channels_last)"]


class Graph:
    """Steps of `target = call`, each with a function from an environment of values to the result."""

    def __init__(self, inputs):
        self.inputs, self.steps = inputs, []
        # Constants by name, and the names of the values that are results: all, unless said otherwise.
        self.constants, self.results = {}, None
        # The sources of methods that steps call, by name, and the same as Python functions.
        self.methods, self.functions = {}, types.SimpleNamespace()

    def define(self, source):
        """Adds a method to those that steps can call; gives its name."""
        name = f"m{len(self.methods)}"
        self.methods[name] = f"def {name}{source}"
        made = {"torch": torch, "Tensor": torch.Tensor}
        exec(self.methods[name], made)
        setattr(self.functions, name, functools.partial(made[name], None))
        return name

    def value(self, text, env):
        """What a step gives."""
        return eval(text, {"torch": torch, "self": self.functions, **env})

    def given(self, env):
        """The results among all values."""
        return env if self.results is None else {n: env[n] for n in self.results}

    def run(self, noise=None, turning=False, uneven=False):
        """The environment after all steps; each float result is off by `noise` units in the last place, every other one by as many to
        the other side if `turning`, and neighbours by different errors if `uneven`, so that none of them is the largest by rounding. Of
        noise zero a result is whole where it is so nearly, and zero where it is subnormal: what PyTorch's own error makes not quite one
        may be one elsewhere. Its last bits are zero then: PyTorch's vectors and single elements give what should be equal not quite so."""
        env = {f"a{i}": t.clone() for i, t in enumerate(self.inputs)}
        env.update({n: t.clone() for n, t in self.constants.items()})
        for target, text, writes in self.steps:
            scale, seen = 0.0, env
            called = CALLED.match(text)
            if noise is not None and (called or text.startswith("self.")):
                names = [n for n in re.findall(r"\b[at]\d+\b", text) if n in env]
                if called and not writes and OF_LARGEST.match(called[1]):
                    scale = max((largest(env[n]) for n in names), default=0.0)
                    seen = {**env, **{n: moved(env[n], noise) for n in names}}
                elif not called or OF_TERMS.match(called[1]):
                    # Products of two among the terms.
                    scale = max((largest(env[n]) for n in names), default=0.0)
                    scale = max(scale, scale * scale)
            result = self.value(text, seen)
            if noise is not None and isinstance(result, torch.Tensor):
                memory = result.untyped_storage().data_ptr()
                if writes or all(memory != t.untyped_storage().data_ptr() for t in leaves(env)):
                    noisy(result, noise, max(scale, largest(result)) if scale else 0.0, uneven)
            env[target] = result
            noise = -noise if turning else noise
        return env


def largest(value):
    """The largest finite magnitude in a tensor or a list of them; true is one."""
    found = [t.any() if t.dtype == torch.bool else torch.where(t.isfinite(), t.abs(), 0).max() for t in leaves({"": value}) if t.numel()]
    return max((float(x.item()) for x in found), default=0.0)


def moved(value, noise):
    """A copy whose elements are off by some units of the largest, each by others."""
    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()) or not value.numel():
        return value
    scale = largest(value) * noise * torch.finfo(value.dtype).eps
    steps = (torch.arange(value.numel()) % 5 - 2).reshape(value.shape) / 2
    return value + (steps * (1 + 1j) if value.is_complex() else steps).to(value.dtype) * scale if math.isfinite(scale) else value


def noisy(t, noise, scale, uneven):
    """Moves the elements of a new tensor by some units in the last place, of their own or of `scale`; of noise zero to round numbers."""
    if (t.is_floating_point() or t.is_complex()) and t.numel() and all(s > 0 or n == 1 for s, n in zip(t.stride(), t.shape)):
        eps = torch.finfo(t.dtype).eps
        if noise == 0:
            parts = torch.view_as_real(t) if t.is_complex() and not t.is_conj() else t
            if not parts.is_complex() and eps < 1e-4:
                mantissa, exponent = torch.frexp(parts)
                near = torch.ldexp((mantissa * 4096).round() / 4096, exponent)
                # A part of a complex number is off by units of the number.
                error = parts.abs().clamp(min=scale) if not t.is_complex() else t.abs().unsqueeze(-1).clamp(min=scale)
                error = torch.where(error.isfinite(), 4 * eps * error, 0.0)
                near = torch.where(near.abs() <= error, torch.where(parts == 0, parts, 0.0), near)
                near = torch.where(parts.abs() < torch.finfo(parts.dtype).tiny, 0.0, near)
                coarse = torch.ldexp((mantissa * (0.25 / eps)).round() / (0.25 / eps), exponent)
                parts.copy_(torch.where((parts - near).abs() <= error + torch.finfo(parts.dtype).tiny, near, coarse))
            return
        if uneven:
            t.mul_(1 + noise * eps * (torch.arange(t.numel()) % 3 - 1).reshape(t.shape).to(t.real.dtype))
            return
        t.mul_(1 + noise * eps)
        if scale and math.isfinite(scale):
            error = noise * eps * scale
            t.add_(complex(error, error) if t.is_complex() else error)


def grow(rng, table, seed, steps):
    generator = torch.Generator().manual_seed(seed)
    graph = Graph([fresh(rng, generator) for _ in range(rng.randint(1, 4))])
    env = {f"a{i}": t.clone() for i, t in enumerate(graph.inputs)}
    kinds = {f"a{i}": "Tensor" for i in range(len(graph.inputs))}

    def add(text, writes=False):
        result = eval(text, {"torch": torch, **env})
        target = f"t{len(graph.steps)}"
        graph.steps.append((target, text, writes))
        env[target] = result
        kinds[target] = "Tensor" if isinstance(result, torch.Tensor) else "Other"

    for name in list(env):
        if rng.random() < 0.35:
            try:
                text = rng.choice(LAYOUTS)
                add(text.replace("{}", name))
            except Exception:
                pass
    raising = rng.random() < 1 / 30
    wanted = rng.randint(2, steps)
    tries = 0
    while wanted > 0 and tries < 60:
        tries += 1
        values = [(n, v) for n, v in env.items() if isinstance(v, torch.Tensor) and v.numel() < 3000]
        name, schemas = rng.choice(table)
        schema = rng.choice(schemas)
        call, given = made_up_call(rng, name, schema, values)
        if by_chance(name, given):
            continue
        writes = name.endswith("_") and not name.startswith("__")
        before = {n: v.clone() for n, v in env.items() if isinstance(v, torch.Tensor)} if writes else None
        try:
            add(call, writes)
        except Exception as error:
            if isinstance(error, NotImplementedError) or "not implemented for" in str(error) and rng.random() < 0.8:
                continue
            if raising and wanted == 1 and before is None:
                graph.steps.append(("t_last", call, False))
                return graph, env, kinds, str(error).splitlines()[0]
            if before is not None and any(not same(env[n], v, (0, 0)) for n, v in before.items()):
                raise  # Half done: the graph is given up.
            continue
        last = env[graph.steps[-1][0]]
        for t in [last] if isinstance(last, torch.Tensor) else last:
            if isinstance(t, torch.Tensor) and (t.numel() > 3000 or t.is_sparse):
                raise ValueError("too large")
            if isinstance(t, torch.Tensor) and OF_FINITE.match(name) and not t.isfinite().all():
                raise ValueError("the matrix is singular")
        wanted -= 1
    return graph, env, kinds, None


def same(a, b, tolerance):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not (a.is_floating_point() or a.is_complex()):
        return torch.equal(a, b)
    wide = torch.complex128 if a.is_complex() else torch.float64
    return torch.allclose(a.resolve_conj().to(wide), b.resolve_conj().to(wide), *tolerance, equal_nan=True)


def leaves(env):
    out = []
    for value in env.values():
        items = value if isinstance(value, (list, tuple)) else [value]
        out += [t for t in items if isinstance(t, torch.Tensor)]
    return out


def scripted_module(name, buffers):
    """A module without methods. Only what its constructor registers is there once methods are defined."""
    def construct(self):
        torch.jit.ScriptModule.__init__(self)
        for buffer, tensor in buffers.items():
            self.register_buffer(buffer, tensor.clone())

    return type(name, (torch.jit.ScriptModule,), {"__init__": construct})()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--strides", action="store_true")
    parser.add_argument("--fusable", action="store_true")
    parser.add_argument("--no-constants", action="store_true")
    parser.add_argument("--page", default=os.path.join(os.path.dirname(__file__), "../../docs/operators.md"))
    options = parser.parse_args()
    table = operators(options.page, options.fusable)
    os.makedirs(options.out, exist_ok=True)
    cases, tensors, seed, chunk, made, used = [], {}, options.seed * 10_000_000, 0, 0, set()

    def flush():
        nonlocal cases, tensors, chunk
        if cases:
            with open(os.path.join(folder(), "cases.json"), "w") as file:
                file.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
            save_file(tensors, os.path.join(folder(), "tensors.safetensors"))
        cases, tensors, chunk = [], {}, chunk + 1

    def folder():
        path = os.path.join(options.out, f"graphs{options.seed:02}_{chunk:03}")
        os.makedirs(path, exist_ok=True)
        return path

    while made < options.count:
        seed += 1
        rng = random.Random(seed)
        try:
            if options.fusable:
                graph, error = Graph([]), None
                any_call = functools.partial(compiled_call, rng, table)
                env = fusable_graphs.grow(rng, seed, options.steps, graph, not options.no_constants, any_call)
                kinds = {n: "Tensor" if isinstance(v, torch.Tensor) else "Other" for n, v in env.items()}
            else:
                graph, env, kinds, error = grow(rng, table, seed, options.steps)
            dtypes = {t.dtype for t in leaves(env)}
            tolerance = max((TOLERANCE.get(d, (0, 0)) for d in dtypes), default=(0, 0))
            results = list(graph.given(env)) + (["t_last"] if error else [])
            parameters = "".join(f", a{i}: Tensor" for i in range(len(graph.inputs)))
            body = "".join(f"    {name} = self.{name}\n" for name in graph.constants)
            body += "".join(f"    {target} = {text}\n" for target, text, _ in graph.steps)
            given = ", ".join(results)
            if options.strides:
                given += "".join(f", {n}.stride()" for n in results if kinds.get(n) == "Tensor")
            module = scripted_module(f"Graph{seed}", graph.constants)
            for source in graph.methods.values():
                module.define(source)
            module.define(f"def forward(self{parameters}):\n{body}    return ({given}, 0)\n")
            saved = io.BytesIO()
            save(module, saved)
            saved.seek(0)
            # What counts is what the archive gives: a call may have become another overload's than Python's.
            try:
                scripted = torch.jit.load(saved)(*[t.clone() for t in graph.inputs])
            except torch.jit.Error:
                if not error:
                    continue
            else:
                if error:
                    continue
                runs = [graph.run(), graph.run(2.0), graph.run(-2.0), graph.run(2.0, turning=True), graph.run(2.0, uneven=True),
                        graph.run(-2.0, uneven=True), graph.run(0.0)]
                wanted = leaves(graph.given(env))
                if not all(same(a, b, tuple(x / 2 for x in tolerance))
                           for r in runs for a, b in zip(wanted, leaves(graph.given(r)))):
                    continue
                own = leaves(dict(enumerate(scripted)))
                if len(own) != len(wanted) or not all(same(a, b, tolerance) for a, b in zip(own, wanted)):
                    continue
        except Exception:
            continue
        key = f"{made:05}"
        stored = {}
        try:
            arguments = [encode(t, stored, f"{key}/a{i}") for i, t in enumerate(graph.inputs)]
            if error:
                result = {"raises": error}
            else:
                result = encode(scripted, stored, f"{key}/r")
            with open(os.path.join(folder(), f"{key}.pt"), "wb") as file:
                file.write(saved.getvalue())
        except Exception:
            continue
        tensors.update(stored)
        used.update(re.findall(r"torch\.ops\.aten\.(\w+)", body))
        cases.append({"id": key, "name": "graph", "model": f"{key}.pt", "method": "forward", "dtype": "mixed", "rtol": tolerance[0],
                      "atol": tolerance[1], "calls": [{"args": arguments, "result": result}]})
        made += 1
        if made % 500 == 0:
            flush()
    flush()
    print(f"{made} graphs over {len(used)} of {len(table)} operators, of {seed - options.seed * 10_000_000} tried")


if __name__ == "__main__":
    sys.exit(main())
