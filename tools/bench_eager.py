#!/usr/bin/env python3
"""What eager calls cost on tensors of one element, next to PyTorch's; by hand, on a quiet machine.

    python tools/bench_eager.py [--rounds 9]

needs `cargo build --release -p frazil --no-default-features --example eager_times` (`make bench-eager` makes it), and torch. The sides take turns
on one core. On one element the computation itself takes a few nanoseconds, so that whole calls are compared. `over` is what calling costs beyond the operator
itself: our call less our operator on arguments that are ready; PyTorch's call less the same from a TorchScript loop, where there is no Python. Printed are
medians in nanoseconds, and how many times less ours are.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORKER = ROOT / "target/release/examples/eager_times"
LOOPS = 20_000
CALLS = {
    "add": lambda x, y: x.add(y),
    "mul": lambda x, y: x.mul(y),
    "relu": lambda x, y: x.relu(),
    "t": lambda x, y: x.t(),
    "selu": lambda x, y: torch.selu(x),
    "sum": lambda x, y: x.sum(),
    "mm": lambda x, y: x.mm(y),
    "add_": lambda x, y: x.add_(y),
}


# The same as TorchScript: PyTorch's dispatch and kernel without Python, which is what its `over` is measured from.
SCRIPTED = """
def loop(x, y, n: int):
    z = x
    for i in range(n):
        z = {}
    return z
"""
WRITTEN = {"add": "x.add(y)", "mul": "x.mul(y)", "relu": "x.relu()", "t": "x.t()", "selu": "torch.selu(x)", "sum": "x.sum()", "mm": "x.mm(y)", "add_": "x.add_(y)"}


def torch_kernel(name):
    """Nanoseconds of a call from PyTorch's interpreter, the loop around it not counted."""
    x, y = torch.full([1, 1], 1.0), torch.full([1, 1], 2.0)
    loops = [torch.jit.CompilationUnit(SCRIPTED.format(body)).loop for body in (WRITTEN[name], "x")]
    times = []
    with torch.inference_mode(), torch.jit.optimized_execution(False):
        for loop in loops:
            loop(x, y, LOOPS)
            start = time.perf_counter()
            loop(x, y, LOOPS)
            times.append(time.perf_counter() - start)
    return (times[0] - times[1]) / LOOPS * 1e9


def torch_time(call):
    """Nanoseconds of a call, the loop around it not counted."""
    x, y = torch.full([1, 1], 1.0), torch.full([1, 1], 2.0)

    def loop(function):
        start = time.perf_counter()
        for _ in range(LOOPS):
            function(x, y)
        return time.perf_counter() - start

    with torch.inference_mode():
        loop(call)
        return (loop(call) - loop(lambda x, y: None)) / LOOPS * 1e9


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    worker = subprocess.Popen([WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(f"{'':8} {'call':>20} {'times':>14} {'over':>11} {'times':>14}")
    print(f"{'':8} {'PyTorch':>10} {'Frazil':>9} {'less':>14} {'PyTorch':>11} {'Frazil':>9} {'less':>6}")
    for name, call in CALLS.items():
        theirs, ours, over, their_over = [], [], [], []
        for _ in range(rounds):
            theirs.append(torch_time(call))
            their_over.append(theirs[-1] - torch_kernel(name))
            worker.stdin.write(name + "\n")
            worker.stdin.flush()
            answer = json.loads(worker.stdout.readline())
            ours.append(answer["call"])
            over.append(answer["call"] - answer["operator"])
        theirs, ours, over, their_over = map(statistics.median, (theirs, ours, over, their_over))
        print(f"{name:8} {theirs:10.0f} {ours:9.0f} {theirs / ours:14.2f} {their_over:11.0f} {over:9.0f} {their_over / over:6.2f}")
    worker.stdin.close()
    worker.wait()


if __name__ == "__main__":
    main()
