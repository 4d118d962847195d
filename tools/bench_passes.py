#!/usr/bin/env python3
"""How fast passes are on large graphs, next to PyTorch's on the same text; by hand, on a quiet machine.

    python tools/bench_passes.py [--jit-opt FILE] [--nodes 200000] [--rounds 3] [--growth]

The Python that runs this needs torch, for the comparison. Each round runs PyTorch's pass and ours in turns; printed are the medians of the
time in the pass alone (without parsing, printing and starting). `--growth` instead runs ours on graphs of 10,000 to 1,000,000 nodes, with
1,000 attributes and with blocks nested as deep as text may have them, and prints nanoseconds a node: they should not grow.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PASSES = ["dce", "cse"]


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


def nested(depth):
    """Branches within branches."""
    lines = ["graph(%x : Tensor, %c : bool):"]
    for i in range(depth):
        indent = "  " * (2 * i + 1)
        lines += [f"{indent}%v{i} : Tensor = prim::If(%c)", f"{indent}  block0():"]
    inner = "  " * (2 * depth)
    lines += [f"{inner}  %r : Tensor = aten::relu(%x)", f"{inner}  -> (%r)"]
    for i in reversed(range(depth)):
        indent = "  " * (2 * i + 1)
        lines += [f"{indent}  block1():", f"{indent}    -> (%x)"]
        if i:
            lines.append(f"{indent}-> (%v{i})")
    lines.append("  return (%v0)")
    return "\n".join(lines) + "\n"


def ours(program, path, name):
    """Milliseconds in the pass."""
    run = subprocess.run(
        [program, path, f"--pass-pipeline={name}", "--timing", "-o", "/dev/null", "--emit=ir"],
        capture_output=True, text=True, check=True,
    )
    found = re.search(rf"([\d.]+) ms +[\d.]+ % +{name}$", run.stderr, re.M)
    return float(found[1])


def theirs(text, name):
    """The same for PyTorch's."""
    import torch

    graph = torch._C.parse_ir(text)
    start = time.perf_counter()
    getattr(torch._C, f"_jit_pass_{name}")(graph)
    return 1e3 * (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jit-opt", default=str(ROOT / "target/release/jit-opt"))
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graph.ir"
        if options.growth:
            kinds = [(f"{n} nodes", flat(n), n) for n in (10_000, 100_000, 1_000_000)]
            kinds += [("100000 nodes, 1000 attributes", flat(100_000, 1_000), 100_000)]
            kinds += [(f"{d} blocks deep", nested(d), d) for d in (100, 500)]
            for title, text, nodes in kinds:
                path.write_text(text)
                for name in PASSES:
                    best = min(ours(options.jit_opt, path, name) for _ in range(options.rounds))
                    print(f"{name} {title}: {best:.1f} ms, {1e6 * best / nodes:.0f} ns a node")
            return
        text = flat(options.nodes)
        path.write_text(text)
        for name in PASSES:
            rounds = [(theirs(text, name), ours(options.jit_opt, path, name)) for _ in range(options.rounds)]
            torch_ms, own_ms = (statistics.median(column) for column in zip(*rounds))
            print(f"{name} on {options.nodes} nodes: PyTorch {torch_ms:.1f} ms, ours {own_ms:.1f} ms, {torch_ms / own_ms:.1f} times faster")


if __name__ == "__main__":
    main()
