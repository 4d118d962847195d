#!/usr/bin/env python3
"""How fast passes and alias analysis are on large graphs, next to PyTorch's on the same text; by hand, on a quiet machine.

    python tools/bench_passes.py [--nodes 200000] [--rounds 5] [--growth] [--only NAME,...]

needs `cargo build --release -p frazil --no-default-features --example pass_times` (`make bench-passes` makes it), and torch for the comparison.
Each round runs PyTorch's and ours in turns on one core, every time on a fresh copy of the graph; what counts is processor time in the pass or
analysis alone. Printed are the medians, and how many times faster ours is.

`--growth` instead runs ours alone, on graphs of 10,000 to 1,000,000 nodes, with 1,000 attributes, with blocks nested up to 10,000 deep, and with long
chains of containers and views of what comes from outside, and prints nanoseconds a node: they should not grow but with the logarithm.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORKER = ROOT / "target/release/examples/pass_times"
# What PyTorch has to compare with.
COMPARED = ["alias-db", "dce", "cse"]
GROWN = [
    "alias-db", "queries", "dce", "cse", "constant-propagation", "peephole", "loop-unrolling", "constant-pooling", "lower-all-tuples",
    "remove-mutation",
]
MODULE = ["freeze", "inline", "dce", "cse"]


def flat(nodes, attributes=0):
    """A chain with a repeated and an unused node every few."""
    this = "%self : __torch__.M, " if attributes else ""
    lines = [f"graph({this}%x : Tensor, %y : Tensor):"]
    last = "%x"
    for i in range(nodes):
        if attributes and i % 100 == 0:
            lines.append(f'  %v{i} : Tensor = prim::GetAttr[name="a{i // 100 % attributes}"](%self)')
        elif i % 5 == 3:
            lines.append(f"  %v{i} : Tensor = aten::mul(%x, %y)")
        elif i % 5 == 4:
            lines.append(f"  %v{i} : Tensor = aten::relu({last})")
            continue
        else:
            lines.append(f"  %v{i} : Tensor = aten::mul({last}, %y)")
        last = f"%v{i}"
    lines.append(f"  return ({last})")
    return "\n".join(lines) + "\n"


def mixed(nodes):
    """Constants, containers, in-place operators, views, branches and loops, again and again."""
    lines = ["graph(%x : Tensor, %c : bool, %n : int):", "  %t : bool = prim::Constant[value=1]()"]
    last = "%x"
    for i in range(nodes // 14):
        lines += [
            f"  %k{i} : int = prim::Constant[value={i % 7}]()",
            f"  %l{i} : int = aten::add(%k{i}, %n)",
            f"  %m{i} : int = aten::mul(%k{i}, %k{i})",
            f"  %a{i} : Tensor = aten::add({last}, %x, %k{i})",
            f"  %b{i} : Tensor = aten::relu_(%a{i})",
            f"  %s{i} : int[] = prim::ListConstruct(%l{i}, %m{i})",
            f"  %d{i} : Tensor = aten::view(%b{i}, %s{i})",
            f"  %p{i} : (Tensor, Tensor) = prim::TupleConstruct(%d{i}, %b{i})",
            f"  %e{i} : Tensor, %f{i} : Tensor = prim::TupleUnpack(%p{i})",
            f"  %g{i} : Tensor = prim::If(%c)",
            "    block0():",
            f"      %h{i} : Tensor = aten::mul(%e{i}, %f{i})",
            f"      -> (%h{i})",
            "    block1():",
            f"      -> (%e{i})",
            f"  %o{i} : Tensor = prim::Loop(%n, %t, %g{i})",
            f"    block0(%i{i} : int, %q{i} : Tensor):",
            f"      %r{i} : Tensor = aten::add_(%q{i}, %x, %i{i})",
            f"      -> (%t, %r{i})",
            f"  %u{i} : Tensor[] = prim::ListConstruct(%o{i}, %e{i})",
        ]
        last = f"%o{i}"
    lines.append(f"  return ({last})")
    return "\n".join(lines) + "\n"


def traced(nodes):
    """Linear layers as tracing records them: shaped types that differ from layer to layer, constants beside each use, lists of sizes."""
    typed = "Float({0}, {1}, strides=[{1}, 1], requires_grad=0, device=cpu)".format
    lines = [f"graph(%x : {typed(8, 64)}, %w : {typed(64, 64)}):"]
    last = "%x"
    for i in range(nodes // 10):
        rows = 8 + i % 1000
        lines += [
            f"  %t{i} : {typed(64, 64)} = aten::t(%w)",
            f"  %m{i} : {typed(rows, 64)} = aten::matmul({last}, %t{i})",
            f"  %k{i} : int = prim::Constant[value={rows}]()",
            f"  %l{i} : int = prim::Constant[value=64]()",
            f"  %s{i} : int[] = prim::ListConstruct(%k{i}, %l{i})",
            f"  %v{i} : {typed(rows, 64)} = aten::view(%m{i}, %s{i})",
            f"  %o{i} : int = prim::Constant[value=1]()",
            f"  %a{i} : {typed(rows, 64)} = aten::add(%v{i}, %x, %o{i})",
            f"  %r{i} : {typed(rows, 64)} = aten::relu_(%a{i})",
            f"  %u{i} : int = aten::size(%r{i}, %o{i})",
        ]
        last = f"%r{i}"
    lines.append(f"  return ({last})")
    return "\n".join(lines) + "\n"


def nested(depth, loops=False):
    """Branches within branches, or loops in turn with them. Not indented, which would take most of the text."""
    lines = ["graph(%x : Tensor, %c : bool, %n : int):", "%t : bool = prim::Constant[value=1]()"]
    is_loop = [loops and i % 2 == 1 for i in range(depth)]
    for i in range(depth):
        if is_loop[i]:
            lines += [f"%v{i} : Tensor = prim::Loop(%n, %t, %x)", f"block0(%i{i} : int, %p{i} : Tensor):"]
        else:
            lines += [f"%v{i} : Tensor = prim::If(%c)", "block0():"]
        lines.append(f"%w{i} : Tensor = aten::mul(%x, %x)")
    lines.append("%r : Tensor = aten::relu(%x)")
    inner = "%r"
    for i in reversed(range(depth)):
        lines += [f"-> (%t, {inner})"] if is_loop[i] else [f"-> ({inner})", "block1():", f"-> (%w{i - 1})" if i else "-> (%x)"]
        inner = f"%v{i}"
    lines.append(f"return ({inner})")
    return "\n".join(lines) + "\n"


def views(nodes):
    """Views of views of an input, each put into a list from outside: all may be one."""
    lines = ["graph(%x : Tensor, %all : Tensor[], %n : int):"]
    last = "%x"
    for i in range(nodes // 2):
        lines += [f"  %v{i} : Tensor = aten::select({last}, %n, %n)", f"  %w{i} : Tensor[] = aten::append(%all, %v{i})"]
        last = f"%v{i}"
    lines.append(f"  return ({last})")
    return "\n".join(lines) + "\n"


def lists(nodes):
    """Objects that hold one another in a long chain, the last of which an unknown operator gets."""
    lines = ["graph(%x : Tensor):"]
    for i in range(nodes // 2):
        lines.append(f"  %o{i} : __torch__.N = prim::CreateObject()")
        lines.append(f'   = prim::SetAttr[name="next"](%o{i}, %{f"o{i - 1}" if i else "x"})')
    lines += [f"  %y : Tensor = foo::bar(%o{nodes // 2 - 1})", "  return (%y)"]
    return "\n".join(lines) + "\n"


def module(nodes, attributes):
    """A module of so many tensors, in a method that calls another again and again."""
    lines = ["frazil module 1", "root object<0>", "module __torch__.M {", "  attribute training : bool"]
    lines += [f"  parameter a{i} : Tensor" for i in range(attributes)]
    lines += ["  method forward = __torch__.M.forward", "  method part = __torch__.M.part", "}"]
    lines += ["function __torch__.M.part(self : __torch__.M, x : Tensor) -> (Tensor)", "graph(%self : __torch__.M, %x : Tensor):"]
    last = "%x"
    for i in range(attributes):
        lines += [f'  %a{i} : Tensor = prim::GetAttr[name="a{i}"](%self)', f"  %v{i} : Tensor = aten::mul({last}, %a{i})"]
        last = f"%v{i}"
    lines += [f"  return ({last})", "function __torch__.M.forward(self : __torch__.M, x : Tensor) -> (Tensor)"]
    lines.append("graph(%self : __torch__.M, %x : Tensor):")
    last = "%x"
    for i in range(nodes // (2 * attributes)):
        lines.append(f'  %v{i} : Tensor = prim::CallMethod[name="part"](%self, {last})')
        last = f"%v{i}"
    lines += [f"  return ({last})", "object<0> = __torch__.M {", "  training = False"]
    lines += [f"  a{i} = tensor<{i}>" for i in range(attributes)]
    lines.append("}")
    lines += [f"tensor<{i}> = Float(1, strides=[1], requires_grad=0) [{i}.]" for i in range(attributes)]
    return "\n".join(lines) + "\n"


class Ours:
    """A process that is kept, and waits while others have their turn."""

    def __init__(self, path, core):
        command = ["taskset", "-c", str(core), str(WORKER), str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, task):
        self.process.stdin.write(f"{task}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with status {self.process.wait()}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def theirs(text, name):
    """Milliseconds that PyTorch's takes."""
    import torch

    graph = torch._C.parse_ir(text)
    start = time.process_time()
    if name == "alias-db":
        db = graph.alias_db()
    else:
        getattr(torch._C, f"_jit_pass_{name}")(graph)
    return 1e3 * (time.process_time() - start)


def compare(folder, options, core):
    os.sched_setaffinity(0, {core})
    graphs = {"flat": flat, "mixed": mixed, "traced": traced, "views": views}
    for title, text in ((title, make(options.nodes)) for title, make in graphs.items()):
        path = folder / "graph.ir"
        path.write_text(text)
        worker = Ours(path, core)
        for name in options.only or COMPARED:
            rounds = [(theirs(text, name), worker.measure(name)["ms"]) for _ in range(options.rounds)]
            torch_ms, own_ms = (statistics.median(column) for column in zip(*rounds))
            ratio = torch_ms / own_ms
            print(f"{title:6} {name:9} {options.nodes} nodes: PyTorch {torch_ms:8.1f} ms, ours {own_ms:7.1f} ms, {ratio:5.1f} times faster", flush=True)
        worker.close()


def growth(folder, options, core):
    sizes = (10_000, 100_000, 1_000_000)
    kinds = [(f"flat, {n} nodes", flat(n), GROWN) for n in sizes]
    kinds += [(f"mixed, {n} nodes", mixed(n), GROWN) for n in sizes]
    kinds += [(f"traced, {n} nodes", traced(n), GROWN) for n in sizes]
    kinds += [(f"flat, {n} nodes, 1000 attributes", flat(n, 1_000), GROWN) for n in sizes]
    kinds += [(f"{d} branches deep", nested(d), GROWN) for d in (100, 1_000, 10_000)]
    kinds += [(f"{d} branches and loops deep", nested(d, True), GROWN) for d in (100, 1_000, 10_000)]
    kinds += [(f"views, {n} nodes", views(n), ["alias-db", "queries", "dce", "cse"]) for n in sizes]
    kinds += [(f"chained objects, {n} nodes", lists(n), ["alias-db", "dce", "cse"]) for n in sizes]
    kinds += [(f"module, {n} nodes inlined, {a} attributes", module(n, a), MODULE) for n, a in ((10_000, 100), (100_000, 100), (100_000, 1_000), (1_000_000, 1_000))]
    for title, text, names in kinds:
        path = folder / "graph.ir"
        path.write_text(text)
        worker = Ours(path, core)
        for name in names:
            if options.only and name not in options.only:
                continue
            answers = [worker.measure(name) for _ in range(options.rounds)]
            best = min(answer["ms"] for answer in answers)
            nodes = answers[0]["nodes"] or int(title.split()[1])
            print(f"{title:42} {name:22} {best:9.1f} ms {1e6 * best / nodes:8.0f} ns a node", flush=True)
        worker.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--only", type=lambda names: names.split(","), help="these passes and analyses only")
    options = parser.parse_args()
    if not WORKER.exists():
        sys.exit(f"{WORKER} is missing: cargo build --release -p frazil --no-default-features --example pass_times")
    core = max(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        (growth if options.growth else compare)(pathlib.Path(folder), options, core)


if __name__ == "__main__":
    main()
