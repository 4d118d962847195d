"""Writes small random tensors and how PyTorch prints them inside a graph, one a line: `dtype|sizes|bytes|text`.

python make_tensors.py tensors.txt
"""

import math
import random
import sys

import torch

NAMES = {
    torch.float32: "Float",
    torch.float64: "Double",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.uint8: "Byte",
    torch.bool: "Bool",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.complex64: "ComplexFloat",
}
SHAPES = [
    (), (1,), (2,), (3,), (10,), (2, 3), (1, 10), (10, 1), (5, 2), (2, 2, 2), (1, 3, 1), (3, 1, 2),
    (1, 2, 1, 2), (2, 1, 2, 2), (0,), (2, 0), (1, 1, 10), (1, 1),
]  # fmt: skip


def printed(tensor):
    graph = torch._C.Graph()
    node = graph.create("prim::Constant")
    graph.appendNode(node)
    node.t_("value", tensor)
    line = str(graph).split("\n")[1]
    return line[line.index("[value=") + len("[value=") : -len("]()")]


def values(shape, mode):
    t = torch.randn(shape, dtype=torch.float64)
    if mode == "small":
        return t * 10.0 ** random.randint(-12, 3)
    if mode == "big":
        return t * 10.0 ** random.randint(0, 12)
    if mode == "wide":
        return t * 10.0 ** torch.randint(-6, 8, shape).double()
    if mode == "whole":
        return (t * 10 ** random.randint(0, 5)).round()
    if mode == "zeros":
        return torch.where(torch.rand(shape) < 0.4, torch.zeros(()).double(), t)
    if mode == "infinite":
        return torch.where(torch.rand(shape) < 0.3, torch.tensor(random.choice([math.inf, -math.inf, math.nan])).double(), t)
    return t


def main():
    random.seed(7)
    torch.manual_seed(7)
    dtypes = [torch.float32] * 5 + list(NAMES)
    modes = ["plain", "plain", "small", "big", "wide", "whole", "zeros", "infinite"]
    with open(sys.argv[1], "w") as out:
        for _ in range(420):
            dtype, shape = random.choice(dtypes), random.choice(SHAPES)
            t = values(shape, random.choice(modes))
            if not dtype.is_floating_point and not dtype.is_complex:
                t = torch.nan_to_num(t * 10).clamp(-2e9, 2e9)
                t = t.abs() % 256 if dtype is torch.uint8 else t > 0 if dtype is torch.bool else t
            t = t.to(dtype).contiguous()
            data = t.reshape(-1).view(torch.uint8).numpy().tobytes().hex() if t.numel() else ""
            out.write(f"{NAMES[dtype]}|{','.join(map(str, shape))}|{data}|{printed(t)}\n")


main()
