#!/usr/bin/env python3
"""What eager calls cost on tensors of one element, next to PyTorch's; by hand, on a quiet machine.

    python tools/bench_eager.py [--rounds 9]

needs `cargo build --release -p frazil --no-default-features --example eager_times` (`make bench-eager` makes it), and torch. The sides take turns
on one core. On one element the computation itself takes a few nanoseconds, so that a whole call is what is compared; `over` is our call less our
operator on arguments that are ready. Printed are medians in nanoseconds, and how many times less ours and what it adds to the operator is than PyTorch's whole call.
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
    print(f"{'call':8} {'PyTorch':>9} {'Frazil':>9} {'over':>9} {'times less':>11} {'over':>6}")
    for name, call in CALLS.items():
        theirs, ours, over = [], [], []
        for _ in range(rounds):
            theirs.append(torch_time(call))
            worker.stdin.write(name + "\n")
            worker.stdin.flush()
            answer = json.loads(worker.stdout.readline())
            ours.append(answer["call"])
            over.append(answer["call"] - answer["operator"])
        theirs, ours, over = map(statistics.median, (theirs, ours, over))
        print(f"{name:8} {theirs:9.0f} {ours:9.0f} {over:9.0f} {theirs / ours:11.2f} {theirs / over:6.2f}")
    worker.stdin.close()
    worker.wait()


if __name__ == "__main__":
    main()
