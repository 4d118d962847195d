#!/usr/bin/env python3
"""Reading and writing graphs as text next to PyTorch's parser and mlir-opt, and loading archives next to torch.jit.load.

    python tools/bench_text.py [--nodes 200000] [--rounds 7] [--archive MODEL.pt]... [--json FILE]

needs `cargo build --release -p frazil --no-default-features --example reading_times` (`make bench-text` makes it), `torch` from PyPI in the
Python that runs this, and `mlir-opt` (mlir-22-tools). Who is missing is left out.

Two texts, which the script makes itself: `chain`, additions one after the other; and `traced`, what traced models look like, with
constants, lists, tensor types, source ranges and branches. mlir-opt gets the same graph in MLIR's generic form, and its parser is timed
by itself (--mlir-timing) and without verification.

What counts is processor time; all of this runs on one thread. The sides take turns within each round on one core, so that whatever else
happens on the machine happens to all; figures are medians over the rounds. A ratio above 1 means that Frazil is faster.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORKER = ROOT / "target/release/examples/reading_times"

MLIR_TYPES = {
    "Tensor": "tensor<*xf32>",
    "Tensor[]": "!torch.list",
    "int": "i64",
    "int[]": "vector<3xi64>",
    "float": "f64",
    "bool": "i1",
    "Float(8, 64, strides=[64, 1], requires_grad=0, device=cpu)": "tensor<8x64xf32>",
    "Float(64, 3, 7, 7, strides=[147, 49, 7, 1], requires_grad=0, device=cpu)": "tensor<64x3x7x7xf32>",
}


class Text:
    """One graph in both forms."""

    def __init__(self, inputs):
        self.types = dict(inputs)
        parameters = ",\n      ".join(f"%{name} : {kind}" for name, kind in inputs)
        self.ir = [f"graph({parameters}):\n"]
        self.mlir = ['"builtin.module"() ({\n"func.func"() ({\n^bb0(']
        self.mlir.append(", ".join(f"%{name}: {MLIR_TYPES[kind]}" for name, kind in inputs) + "):\n")
        self.inputs = inputs

    def node(self, name, kind, op, operands, value=None, line=None, indent=1, blocks=()):
        """A node of one output. `value` is a constant in both forms; `blocks` give the text of nested blocks."""
        self.types[name] = kind
        ir_value, mlir_value = (f"[value={value[0]}]", f" {{value = {value[1]}}}") if value else ("", "")
        place = f" # model.py:{line[0]}:{line[1]}" if line else ""
        location = f' loc("model.py":{line[0]}:{line[1]})' if line else ""
        names = ", ".join(f"%{operand}" for operand in operands)
        types = ", ".join(MLIR_TYPES[self.types[operand]] for operand in operands)
        pad = "  " * indent
        self.ir.append(f"{pad}%{name} : {kind} = {op}{ir_value}({names}){place}\n")
        self.mlir.append(f'{pad}%{name} = "{op.replace("::", ".")}"({names})')
        for index, block in enumerate(blocks):
            self.ir.append(f"{pad}  block{index}():\n")
            self.mlir.append(" ({\n" if index == 0 else ", {\n")
            result = block(indent + 2)
            self.ir.append(f"{pad}    -> (%{result})\n")
            self.mlir.append(f'{pad}    "prim.Return"(%{result}) : ({MLIR_TYPES[self.types[result]]}) -> ()\n{pad}}}')
        self.mlir.append(")" if blocks else "")
        self.mlir.append(f"{mlir_value} : ({types}) -> {MLIR_TYPES[kind]}{location}\n")
        return name

    def finish(self, result):
        kind = MLIR_TYPES[self.types[result]]
        arguments = ", ".join(MLIR_TYPES[k] for _, k in self.inputs)
        self.ir.append(f"  return (%{result})\n")
        self.mlir.append(f'  "func.return"(%{result}) : ({kind}) -> ()\n}})')
        self.mlir.append(f' {{function_type = ({arguments}) -> {kind}, sym_name = "main"}} : () -> ()\n}}) : () -> ()\n')
        return "".join(self.ir), "".join(self.mlir)


def chain(nodes):
    text = Text([("x.1", "Tensor"), ("y.1", "Tensor")])
    text.node("2", "int", "prim::Constant", (), value=("1", "1 : i64"))
    before, last = "x.1", "y.1"
    for i in range(3, nodes + 2):
        before, last = last, text.node(str(i), "Tensor", "aten::add", (last, before, "2"))
    return text.finish(last)


def traced(nodes):
    text = Text([("x.1", "Float(8, 64, strides=[64, 1], requires_grad=0, device=cpu)"), ("c", "bool")])
    weight = "Float(64, 3, 7, 7, strides=[147, 49, 7, 1], requires_grad=0, device=cpu)"
    last, numbers = "x.1", itertools.count(2)
    for i in range(nodes // 10):
        n, a, b, d, e, f = (str(next(numbers)) for _ in range(6))
        shape, w, y = f"shape.{i}", f"w.{i}", f"y.{i}"
        text.node(n, "int", "prim::Constant", (), value=(i, f"{i} : i64"))
        text.node(a, "float", "prim::Constant", (), value=("0.5", "0.5 : f64"), line=(i, 8))
        text.node(shape, "int[]", "prim::Constant", (), value=(f"[1, 2, {i}]", f"[1, 2, {i}]"))
        text.node(b, "Tensor", "aten::add", (last, "x.1", n), line=(i, 8))
        text.node(w, weight, "prim::Constant", (), value=("<Tensor>", '"<Tensor>"'))
        text.node(y, "Tensor", "aten::conv2d", (b, w, b, shape, shape, shape, n), line=(i, 12))
        branches = [
            lambda indent: text.node(e, "Tensor", "aten::relu", (y,), line=(i, 16), indent=indent),
            lambda indent: text.node(f, "Tensor", "aten::mul", (y, a), indent=indent),
        ]
        text.node(d, "Tensor", "prim::If", ("c",), line=(i, 4), blocks=branches)
        text.node(f"z.{i}", "Tensor[]", "prim::ListConstruct", (d, b))
        last = d
    return text.finish(last)


def torch_worker(path: pathlib.Path) -> None:
    """As the Rust worker: does what each line says, once, and tells how long it took."""
    import torch

    text = path.read_text() if path.suffix == ".ir" else ""
    graph = None
    for line in sys.stdin:
        graph = None if line.strip() != "print" else graph or torch._C.parse_ir(text, True)
        start = time.process_time()
        match line.strip():
            case "parse":
                graph = torch._C.parse_ir(text, True)
            case "print":
                str(graph)
            case "load":
                torch.jit.load(path)
        print(json.dumps({"ms": (time.process_time() - start) * 1e3}), flush=True)


class Worker:
    """A process that is kept, and waits while others have their turn."""

    def __init__(self, command, path, core):
        command = ["taskset", "-c", str(core), *map(str, command), str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, task):
        self.process.stdin.write(f"{task}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended with status {self.process.wait()}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def processor_time_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class MlirOpt:
    """mlir-opt, started anew each time; what counts is its processor time, in the share that it says its parser had."""

    def __init__(self, program, path, core):
        flags = ["--allow-unregistered-dialect", "--mlir-disable-threading", "--mlir-timing", "--mlir-timing-display=list"]
        flags += ["--mlir-very-unsafe-disable-verifier-on-parsing", "--mlir-print-op-generic", "-o", "/dev/null"]
        self.command = ["taskset", "-c", str(core), program, *flags, str(path)]

    def measure(self, task):
        before = processor_time_of_children()
        done = subprocess.run(self.command, stderr=subprocess.PIPE, text=True, check=True)
        spent = processor_time_of_children() - before
        row = {"parse": "Parser", "print": "Output"}[task]
        share = float(re.search(rf"\(\s*([\d.]+)%\)\s+{row}", done.stderr)[1]) / 100
        return {"ms": spent * share * 1e3}

    def close(self):
        pass


def compare(name, sides, tasks, rounds, unit):
    """Medians of all sides over interleaved rounds."""
    times = {(task, side): [] for task in tasks for side in sides}
    answers = {}
    for _ in range(rounds):
        for task in tasks:
            for side, worker in sides.items():
                answer = worker.measure(task)
                # Of memory the first answer tells: peaks do not go down again.
                answers.setdefault((task, side), answer)
                times[task, side].append(answer["ms"])
    for worker in sides.values():
        worker.close()
    figures = []
    for (task, side), values in times.items():
        median = statistics.median(values)
        ratio = median / statistics.median(times[task, "frazil"])
        row = {"text": name, "task": task, "side": side, "median_ms": median, "min_ms": min(values), "ratio": ratio}
        shown = f"{name:24} {task:6} {side:9} {median:10.1f} {min(values):9.1f} {ratio:7.1f}"
        if unit and side == "frazil":
            row["ns_per_node"] = median * 1e6 / unit
            shown += f" {row['ns_per_node']:8.0f}"
            if task == "parse":
                row["bytes_per_node"] = answers[task, side]["memory"] / unit
                shown += f" {row['bytes_per_node']:8.0f}"
        print(shown, flush=True)
        figures.append(row)
    return figures


def find_mlir_opt():
    found = [shutil.which(name) for name in ("mlir-opt-22", "/usr/lib/llvm-22/bin/mlir-opt", "mlir-opt")]
    return next(filter(None, found), None)


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        torch_worker(pathlib.Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default=200_000, type=int)
    parser.add_argument("--rounds", default=7, type=int)
    parser.add_argument("--archive", action="append", default=[], type=pathlib.Path, metavar="MODEL.pt")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to a file")
    options = parser.parse_args()
    if not WORKER.exists():
        parser.error(f"{WORKER} is missing: cargo build --release -p frazil --no-default-features --example reading_times")
    core = max(os.sched_getaffinity(0))
    mlir_opt, torch = find_mlir_opt(), has_torch()
    python = [sys.executable, "-W", "ignore", __file__, "--worker"]

    print(f"{'text':24} {'task':6} {'side':9} {'median ms':>10} {'min ms':>9} {'ratio':>7} {'ns/node':>8} {'B/node':>8}")
    everything = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for make in (chain, traced):
            # The ten times larger and smaller ones only for how time and memory grow.
            for nodes in (options.nodes // 10, options.nodes, options.nodes * 10):
                name = f"{make.__name__}-{nodes}"
                ir, mlir = folder / f"{name}.ir", folder / f"{name}.mlir"
                for path, text in zip((ir, mlir), make(nodes)):
                    path.write_text(text)
                sides = {"frazil": Worker([WORKER], ir, core)}
                if nodes == options.nodes and torch:
                    sides["torch"] = Worker(python, ir, core)
                if nodes == options.nodes and mlir_opt:
                    sides["mlir-opt"] = MlirOpt(mlir_opt, mlir, core)
                everything += compare(name, sides, ("parse", "print"), options.rounds, nodes)
                ir.unlink()
                mlir.unlink()
    for archive in options.archive:
        sides = {"frazil": Worker([WORKER], archive, core)}
        if torch:
            sides["torch"] = Worker(python, archive, core)
        everything += compare(archive.resolve().parent.name, sides, ("load",), options.rounds, None)
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
