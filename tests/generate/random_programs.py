#!/usr/bin/env python3
"""Writes random TorchScript programs and what PyTorch computes for them, for `crates/frazil/tests/suite/language.rs`.

    random_programs.py OUT [--count=N] [--seed=N] [--statements=N]
    FRAZIL_PROGRAMS=OUT cargo test -p frazil --test suite programs_do

A program is a function of tensors of mixed dtypes (some without dimensions, some empty) and of Python scalars. Its statements make
views and write through them, read scalars from tensors and compute with them, branch and loop on values, and keep tensors in lists. A
statement is kept only if it runs in eager mode; all variables are results. Each program is called twice, with different arguments, so
that a branch may go the other way. Programs whose results depend on rounding (a floor of what is nearly whole) are left out: with
errors of rounding in their arguments they have to give close results.

What is recorded is the scripted function's outcome, and under `eager` that of eager mode where it is another: the executor of TorchScript drops
statements that raise when nothing uses them, and takes the results of `broadcast_tensors` for copies.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import tempfile
import types
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures"))
import torch  # noqa: E402
from make_language import PRELUDE, encode  # noqa: E402

FLOATS = ["torch.float32"] * 6 + ["torch.float64", "torch.float16", "torch.bfloat16"]
DTYPES = FLOATS + ["torch.int64"] * 3 + ["torch.int32", "torch.uint8", "torch.int8", "torch.bool"]
SHAPES = [(3, 4), (3, 4), (4,), (3, 1), (1, 4), (2, 3, 4), (), (1,), (0, 4)]
UNARY = ["torch.abs({})", "torch.neg({})", "torch.relu({})", "torch.sigmoid({})", "torch.tanh({})", "torch.sin({})", "torch.floor({})",
         "torch.round({})", "torch.sign({})", "torch.square({})", "torch.logical_not({})", "torch.isnan({})", "{}.float()", "{}.double()", "{}.long()",
         "{}.int()", "{}.bool()", "{}.half()", "{}.contiguous()", "{}.clone()", "torch.zeros_like({})", "torch.ones_like({})", "-{}", "~{}",
         "F.leaky_relu({})", "F.hardtanh({})", "F.silu({})", "torch.trunc({})", "torch.clamp({}, -1, 2)", "torch.clamp({}, min=0)", "torch.exp({}.clamp(-3, 3))"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "torch.maximum({}, {})", "torch.minimum({}, {})", "{} == {}", "{} < {}",
          "{} >= {}", "{} != {}", "torch.where({0} > {1}, {0}, {1})", "torch.logical_and({}, {})", "torch.add({}, {}, alpha=2)",
          "torch.div({}, {}, rounding_mode='floor')", "torch.div({}, {}, rounding_mode='trunc')", "torch.fmod({}, {})", "{} & {}", "{} | {}", "torch.atan2({}, {})",
          "torch.sub({}, {}, alpha=3)", "torch.hypot({}, {})", "{}.type_as({})", "torch.broadcast_tensors({}, {})[0]", "torch.xlogy({}, {}.abs())"]
REDUCTIONS = ["{}.sum()", "{}.sum(-1)", "{}.mean(0)", "{}.max()", "{}.amax(-1)", "{}.prod(-1)", "{}.any()", "{}.all(-1)", "{}.cumsum(0)", "{}.amin()",
              "{}.argmax()", "{}.sum(0, keepdim=True)", "torch.softmax({}, -1)", "{}.std()", "{}.norm()", "{}.count_nonzero()", "{}.logsumexp(-1)",
              "{}.mean(-1, dtype=torch.float64)", "{}.sum(dtype=torch.int64)", "{}.min(-1)[0]", "{}.max(0)[1]"]
VIEWS = ["{}[0]", "{}[-1]", "{}[:, 0]", "{}[..., 1:]", "{}[::2]", "{}.t()", "{}.view(-1)", "{}.reshape(-1)", "{}.unsqueeze(0)", "{}.squeeze()", "{}.transpose(0, -1)",
         "{}.flatten()", "{}.expand(3, 4)", "{}.narrow(0, 0, 1)", "{}.select(-1, 0)", "{}[None]", "{}.diagonal()", "{}.unbind(0)[0]", "{}.chunk(2, -1)[0]", "{}.permute(1, 0)",
         "{}.detach()", "{}.view_as({0})", "{}.movedim(0, -1)", "{}[1:, :2]", "{}.split(2, -1)[-1]"]
WRITES = ["{}.add_({})", "{}.mul_({})", "{}.sub_({})", "{}.copy_({})", "{}.fill_({})", "{}[0] = {}", "{}[:, 0] = {}", "{}[..., -1] += {}", "{} += {}", "{} *= {}", "{}.clamp_(max={})",
          "{}.masked_fill_({0} > 1, {1})", "{}[{0} > 0] = {1}", "{}.zero_()", "{}.relu_()", "{}.div_({})", "{}.neg_()", "{}.index_fill_(0, torch.tensor([0]), {})", "{}.pow_(2)", "{}[1:] -= {}"]
INDEXING = ["{}[{}.long().abs().flatten()[:2] % max({}.size(0), 1)]", "{}.index_select(0, torch.tensor([0, 0]))", "torch.cat([{}, {}])", "torch.stack([{}, {}])", "{}.gather(0, torch.zeros_like({0}, dtype=torch.int64))",
            "{}[{0} > 0]", "torch.nonzero({})", "{}.repeat(2)", "{}.flip(0)", "{}.roll(1)", "torch.tril({})", "F.pad({}, [1, 0])", "{}.masked_select({0} > 0)", "torch.matmul({}, {}.t())",
            "F.linear({}, {})", "torch.einsum('ij,kj->ik', {}, {})", "torch.outer({}.flatten(), {}.flatten())", "{}.sort(-1)[0]", "{}.repeat_interleave(2, 0)", "torch.atleast_2d({})"]
TO_FLOAT = ["float({}.sum())", "float({}.flatten()[0])", "float({}.amax())", "float({}.float().mean())"]
TO_INT = ["int({}.sum())", "int({}.flatten()[0])", "{}.numel()", "{}.size(0)", "{}.dim()", "int({}.argmax())", "len({})"]
SCALARS = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "max({}, {})", "min({}, {})", "abs({})", "-{}", "float({})", "int({})", "{} ** 2"]
CONDITIONS = ["{} > {}", "{} <= {}", "{} == {}", "{} != {}", "{} < {} or {} > 2", "not {} > {}"]


class Program:
    """A program that grows by statements that run."""

    def __init__(self, rng):
        self.rng = rng
        self.lines = []
        self.count = 0
        self.env = {}
        exec(PRELUDE, self.env)
        self.prelude = set(self.env)
        self.arguments = []
        for i in range(rng.randint(2, 4)):
            self.arguments.append((f"x{i}", "Tensor", (rng.choice(SHAPES), rng.choice(DTYPES))))
        if rng.random() < 0.4:
            self.arguments.append(("n", "int", None))
        if rng.random() < 0.4:
            self.arguments.append(("w", "float", None))
        self.calls = [[self.argument(kind, what) for _, kind, what in self.arguments] for _ in range(2)]
        for (name, kind, _), text in zip(self.arguments, self.calls[0]):
            self.env[name] = eval(text, self.env)
        self.kinds = {name: kind for name, kind, _ in self.arguments}
        if rng.random() < 0.6:
            for name, kind in list(self.kinds.items()):
                if kind == "Tensor":
                    self.try_line(f"{name} = {name}.clone()")

    def argument(self, kind, what):
        rng = self.rng
        if kind == "int":
            return str(rng.randint(-3, 4))
        if kind == "float":
            return repr(rng.choice([0.5, -1.25, 2.0, 3.0, -0.75]))
        (shape, dtype) = what
        size = 1
        for n in shape:
            size *= n
        if dtype == "torch.bool":
            data = [rng.random() < 0.5 for _ in range(size)]
        elif "int" in dtype:
            data = [rng.randint(0 if "uint" in dtype else -5, 6) for _ in range(size)]
        else:
            data = [rng.randint(-24, 24) / 8 for _ in range(size)]
        return f"torch.tensor({data}, dtype={dtype}).reshape({list(shape)})"

    def of(self, kind):
        names = [n for n, k in self.kinds.items() if k == kind]
        return self.rng.choice(names) if names else None

    def scalar(self):
        rng = self.rng
        return self.of(rng.choice(["float", "int"])) or rng.choice(["2", "0.5", "-1", "3", "1.5"])

    def operand(self):
        return self.of("Tensor") if self.rng.random() < 0.7 else self.scalar()

    def fill(self, template, *choices):
        for _ in range(template.count("{}")):
            pass
        made = [choices[min(i, len(choices) - 1)]() for i in range(6)]
        if "{0}" in template or "{1}" in template:
            template = template.replace("{}", "{0}", 1) if "{}" in template else template
            template = template.replace("{}", "{1}")
        return template.format(*made)

    def fresh(self, kind):
        if self.rng.random() < 0.25 and self.of(kind):
            return self.of(kind)
        self.count += 1
        return {"Tensor": "t", "float": "s", "int": "i", "bool": "b", "List[Tensor]": "l"}[kind] + str(self.count)

    def simple(self):
        """A statement, the variable that it sets and its kind."""
        rng = self.rng
        tensor, kind = (lambda: self.of("Tensor")), "Tensor"
        roll = rng.random()
        if roll < 0.14:
            text = self.fill(rng.choice(UNARY), tensor)
        elif roll < 0.36:
            text = self.fill(rng.choice(BINARY), tensor, self.operand)
        elif roll < 0.46:
            text = self.fill(rng.choice(REDUCTIONS), tensor)
        elif roll < 0.58:
            text = self.fill(rng.choice(VIEWS), tensor)
        elif roll < 0.74:
            return self.fill(rng.choice(WRITES), tensor, self.operand), None, None
        elif roll < 0.81:
            text = self.fill(rng.choice(INDEXING), tensor)
        elif roll < 0.86:
            text, kind = self.fill(rng.choice(TO_FLOAT), tensor), "float"
        elif roll < 0.90:
            text, kind = self.fill(rng.choice(TO_INT), tensor), "int"
        elif roll < 0.95:
            text, kind = self.fill(rng.choice(SCALARS), self.scalar), None
        elif roll < 0.97:
            text, kind = f"[{tensor()}, {tensor()}]", "List[Tensor]"
        else:
            found = self.of("List[Tensor]")
            if found is None:
                text = self.fill("torch.full([2], {})", self.scalar)
            else:
                roll = rng.random()
                if roll < 0.4:
                    return f"{found}.append({tensor()})", None, None
                text = f"{found}[{rng.choice([0, -1])}]" if roll < 0.8 else f"torch.cat([v.flatten().double() for v in {found}])"
        if kind is None:
            try:
                kind = {int: "int", float: "float"}[type(eval(text, self.env))]
            except Exception:
                return None
        return f"{(name := self.fresh(kind))} = {text}", name, kind

    def condition(self):
        rng = self.rng
        if rng.random() < 0.3:
            return f"bool(({self.of('Tensor')} > {self.scalar()}).any())"
        return self.fill(rng.choice(CONDITIONS), self.scalar)

    def block(self, indent, kinds):
        """Statements that set known variables of the same kind or variables of the block."""
        made, kept = [], dict(self.kinds)
        for _ in range(self.rng.randint(1, 3)):
            found = self.simple()
            if found is None:
                continue
            made.append(indent + found[0])
            if found[1]:
                self.kinds.setdefault(found[1], found[2])
        self.kinds = kept
        return made or [indent + "pass"]

    def statement(self):
        roll = self.rng.random()
        if roll < 0.86:
            found = self.simple()
            if found is not None and self.try_line(found[0]) and found[1]:
                self.kinds[found[1]] = found[2]
            return
        if roll < 0.94:
            lines = [f"if {self.condition()}:"] + self.block("    ", self.kinds)
            if self.rng.random() < 0.7:
                lines += ["else:"] + self.block("    ", self.kinds)
        else:
            self.count += 1
            count = self.of("int") if self.rng.random() < 0.3 else None
            bound = f"min(max({count}, 0), 3)" if count else str(self.rng.randint(0, 3))
            lines = [f"for k{self.count} in range({bound}):"] + self.block("    ", self.kinds)
        self.try_line("\n".join(lines))

    def try_line(self, text):
        saved = {k: (v.clone() if isinstance(v, torch.Tensor) and False else v) for k, v in self.env.items()}
        probe = Program.rerun(self, self.lines + [text], self.calls[0])
        if probe is None or any(type(probe.get(n)) is not type(saved.get(n)) for n in self.kinds if n in saved):
            return False
        self.lines.append(text)
        self.env = probe
        return True

    def rerun(self, lines, call):
        """The variables after these statements, from the beginning: writes through views cannot be taken back."""
        env = {k: v for k, v in self.env.items() if k in self.prelude}
        for (name, _, _), text in zip(self.arguments, call):
            env[name] = eval(text, env)
        try:
            exec("\n".join(lines), env)
        except Exception:
            return None
        if any(isinstance(v, torch.Tensor) and v.numel() > 4096 for v in env.values()):
            return None
        return env

    def source(self):
        header = ", ".join(f"{name}: {kind}" for name, kind, _ in self.arguments)
        body = "\n".join(self.lines).split("\n")
        return f"def f({header}):\n" + "".join(f"    {line}\n" for line in body if line) + f"    return {', '.join(self.kinds)}\n"


def close(a, b):
    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor) or a.shape != b.shape:
            return False
        tolerance = 0.05 if a.dtype in (torch.float16, torch.bfloat16) else 1e-4
        return torch.allclose(a.double(), b.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    if isinstance(a, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-4 * (1 + abs(b))
    return a == b


def shaken(arguments, rng):
    """The arguments with an error of rounding in each element."""
    def one(v):
        if isinstance(v, torch.Tensor) and v.dtype.is_floating_point:
            eps = torch.finfo(v.dtype).eps
            return (v.double() * (1 + eps * (torch.rand(v.shape, dtype=torch.float64) - 0.5) * 4)).to(v.dtype)
        return v
    return [one(v) for v in arguments]


def record(program, rng, name, folder):
    source = program.source()
    path = folder / "program.py"
    path.write_text(source)
    module = types.ModuleType(name)
    module.__file__ = str(path)
    exec(PRELUDE, module.__dict__)
    exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    import linecache
    linecache.checkcache(str(path))
    script = torch.jit.script(module.f)
    calls = []
    for call in program.calls:
        args = [eval(text, module.__dict__) for text in call]
        # Without the optimisations that take conversions for none by what they take for types.
        with torch.no_grad(), torch.jit.optimized_execution(False):
            ours, result = outcome(script, args)
            others = [outcome(script, shaken(args, rng))[1] for _ in range(SHAKES)]
            eager, eager_result = outcome(module.f, args)
        if "result" in ours and not all(close(result, other) for other in others):
            return None
        entry = {"args": [encode(a) for a in args], **ours}
        same = "raises" in eager if "raises" in ours else "result" in eager and close(result, eager_result)
        if not same:
            entry["eager"] = eager
        calls.append(entry)
    return source, calls


def outcome(function, arguments):
    """What a call gives, as it is recorded and as it is; what raises has no value."""
    try:
        result = function(*[a.clone() if isinstance(a, torch.Tensor) else a for a in arguments])
        return {"result": encode(result)}, result
    except Exception as error:
        return {"raises": str(error).strip().split("\n")[-1]}, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--statements", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch._C._jit_set_profiling_executor(False)
    options.out.mkdir(parents=True, exist_ok=True)
    programs, records = [], {}
    batch = 0
    while len(records) < options.count:
        batch += 1
        for name, source, calls in in_process(f"{options.seed}_{batch}", options):
            if len(records) < options.count:
                programs.append(f"### {name}\n{source}\n")
                records[name] = {"calls": calls, "graphs": {}}
    (options.out / "programs.py").write_text("\n".join(programs))
    lines = [f"{json.dumps(name)}: {json.dumps(result)}" for name, result in records.items()]
    (options.out / "programs.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


BATCH = 20

# Times that each call is repeated with other errors of rounding.
SHAKES = 4


def in_process(seed, options):
    """A batch of programs, from a process of its own: some make PyTorch crash."""
    with tempfile.TemporaryDirectory() as folder:
        answer = pathlib.Path(folder) / "answer.json"
        child = os.fork()
        if child == 0:
            try:
                made = batch_of(seed, options, pathlib.Path(folder))
                answer.write_text(json.dumps(made))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return json.loads(answer.read_text()) if answer.exists() else []


def batch_of(seed, options, folder):
    rng = random.Random(seed)
    torch.manual_seed(rng.randint(0, 1 << 30))
    made = []
    for number in range(BATCH):
        program = Program(rng)
        for _ in range(rng.randint(3, options.statements * 2)):
            program.statement()
        try:
            found = record(program, rng, f"program_{number}", folder)
        except Exception:
            # What scripting refuses is for the recorded programs to test.
            continue
        if found is not None:
            made.append((f"program_{seed}_{number}", *found))
    return made


if __name__ == "__main__":
    main()
