#!/usr/bin/env python3
"""Latency of calls whose sizes are always new, next to PyTorch's, ONNX Runtime's and OpenVINO's, on the same inputs and the same cores.

    python tools/bench_shapes.py [ROW...] [--rounds 3] [--threads 1] [--peers frozen,loaded,onnx,openvino] [--code-library FILE] [--json FILE]

needs a release build of jit-run, and what tools/bench_peers.py needs; `make bench-shapes` sees to both. The models are made below target. A row is a model of
which one size, or two, differ in each call.

Each side is one process a round: it makes 40 calls with sizes that it has not seen, and then the same calls again. Loading, exporting and making a session
are not measured; compilation within a call is. The model's files are in the page cache. Rounds alternate between the sides. The printed figures are medians over the rounds:

    new ms      the sum of the 40 calls with new sizes
    again ms    the sum of the same calls the second time
    worst ms    the longest of the calls with new sizes, except the first two

A ratio is Frazil's sum over the side's: below 1 Frazil is faster. Frazil runs with its default strategy, and with the code library that
`make codes` makes where there is one, as the installed tools do.
"""

import argparse
import dataclasses
import io
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time
import typing

from bench_peers import ROOT, NotMeasured, first_line, pinned

CALLS = 40


def encoder():
    """Four layers of a transformer, 256 wide, on features."""
    import torch
    from bench_models import Layer

    return torch.jit.script(torch.nn.Sequential(*(Layer(256, 4, False, True, "none") for _ in range(4))).eval())


def perceptron():
    import torch
    from torch import nn

    return torch.jit.script(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).eval())


def frames():
    """Strided convolutions over time, and an LSTM over what they leave, as in recognisers of speech."""
    import torch
    from torch import Tensor, nn

    class Frames(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv1d(80, 256, 3, 2, 1), nn.ReLU(), nn.Conv1d(256, 256, 3, 2, 1), nn.ReLU(), nn.Conv1d(256, 256, 3, 1, 1), nn.ReLU())
            self.recurrent = nn.LSTM(256, 256, batch_first=True)
            self.head = nn.Linear(256, 40)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.recurrent(self.layers(x).transpose(1, 2))[0])

    return torch.jit.trace(Frames().eval(), torch.randn(1, 80, 100), check_trace=False)


def of_bench_models(name: str):
    def make():
        import bench_models

        return bench_models.MODELS[name][0]()

    return make


def some(count: int, low: int, high: int) -> list:
    """Different numbers from `low` to `high`, the same each time."""
    return random.Random(1).sample(range(low, high + 1), count)


def sides(low: int, high: int, unit: int) -> list:
    """Different pairs of multiples of `unit`."""
    numbers = random.Random(2)
    pairs = [(h, w) for h in range(low, high + 1) for w in range(low, high + 1)]
    return [(unit * h, unit * w) for h, w in numbers.sample(pairs, CALLS + 1)]


@dataclasses.dataclass
class Row:
    """A model, and the calls of it."""

    build: typing.Callable
    # The shapes of the input. The first is that of the example with which peers export the model; no call has it.
    shapes: list
    # The axes of the input whose sizes differ.
    axes: list
    # Whether the input consists of numbers of tokens.
    is_tokens: bool = False


ROWS = {
    "encoder, length": Row(encoder, [(1, n, 256) for n in some(CALLS + 1, 8, 256)], [1]),
    "encoder, batch": Row(encoder, [(n, 32, 256) for n in some(CALLS + 1, 2, 60)], [0]),
    "resnet18, sides": Row(of_bench_models("resnet18"), [(1, 3, *s) for s in sides(96, 256, 1)], [2, 3]),
    "frames, convolutions and LSTM": Row(frames, [(1, 80, n) for n in some(CALLS + 1, 40, 400)], [2]),
    "mlp, batch": Row(perceptron, [(n, 256) for n in some(CALLS + 1, 2, 400)], [0]),
    "gpt2, length": Row(of_bench_models("gpt2_64"), [(1, n) for n in [64, *range(1, CALLS + 1)]], [1], is_tokens=True),
    "unet, sides": Row(of_bench_models("unet"), [(1, 3, *s) for s in sides(4, 16, 16)], [2, 3]),
    "lstm, steps": Row(of_bench_models("lstm_loop"), [(n, 1, 256) for n in some(CALLS + 1, 4, 120)], [0]),
}


def make(row: str, folder: pathlib.Path) -> None:
    """Writes the row's model, and a case of its calls, each twice."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    of_row = ROWS[row]
    tensors = {}
    for number, shape in enumerate(of_row.shapes):
        tensors[f"x{number}"] = torch.randint(1000, shape) if of_row.is_tokens else torch.randn(shape)
    calls = [{"args": [{"tensor": f"x{number}"}]} for number in [*range(1, CALLS + 1)] * 2]
    folder.mkdir(parents=True)
    with torch.no_grad():
        of_row.build().save(folder / "model.pt")
    save_file(tensors, folder / "tensors.safetensors")
    # Last: a folder with a case is whole.
    (folder / "case.json").write_text(json.dumps({"name": row, "method": "forward", "calls": calls}))


def frozen(model, example, axes, threads):
    import torch

    return torch.jit.optimize_for_inference(torch.jit.freeze(model))


def loaded(model, example, axes, threads):
    return model


def onnx_bytes(model, example, axes) -> bytes:
    import torch

    file = io.BytesIO()
    dynamic = {"x": {axis: f"n{axis}" for axis in axes}}
    try:
        torch.onnx.export(model, (example,), file, dynamo=False, opset_version=17, input_names=["x"], dynamic_axes=dynamic)
    except Exception as error:  # the exporter raises whatever comes up
        raise NotMeasured(f"cannot be exported: {first_line(error)}") from None
    return file.getvalue()


def onnx(model, example, axes, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(onnx_bytes(model, example, axes), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x.numpy()})


def openvino(model, example, axes, threads):
    import openvino as ov

    options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    shape = [-1 if axis in axes else size for axis, size in enumerate(example.shape)]

    def request(read):
        network = read()
        network.reshape({network.inputs[0]: ov.PartialShape(shape)})
        ready = ov.Core().compile_model(network, "CPU", options).create_infer_request()
        ready.infer([example.numpy()])
        return ready

    try:
        ready = request(lambda: ov.convert_model(model, example_input=example))
    except Exception:  # both readers raise whatever comes up
        try:
            ready = request(lambda: ov.Core().read_model(onnx_bytes(model, example, axes)))
        except Exception as error:
            raise NotMeasured(f"cannot be read: {first_line(error)}") from None
    return lambda x: ready.infer([x.numpy()])


PEERS = {peer.__name__: peer for peer in (frozen, loaded, onnx, openvino)}


def worker(peer: str, row: str, folder: pathlib.Path, threads: int) -> None:
    """Runs in a process of its own: makes the calls, and prints their times in milliseconds."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    import torch
    from safetensors.torch import load_file

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    tensors = load_file(folder / "tensors.safetensors")
    case = json.loads((folder / "case.json").read_text())
    inputs = [tensors[call["args"][0]["tensor"]] for call in case["calls"]]
    model = torch.jit.load(folder / "model.pt").eval()
    try:
        call = PEERS[peer](model, tensors["x0"], ROWS[row].axes, threads)
        times = []
        for x in inputs:
            start = time.perf_counter()
            call(x)
            times.append((time.perf_counter() - start) * 1e3)
    except NotMeasured as error:
        print(json.dumps({"error": str(error)}), file=answers)
        return
    except Exception as error:  # whatever a peer raises on a call
        print(json.dumps({"error": f"fails: {first_line(error)}"}), file=answers)
        return
    print(json.dumps({"calls_ms": times}), file=answers)


def calls_ms(command: list, threads: int) -> list:
    """The times of the calls of a side, or NotMeasured."""
    done = subprocess.run([*pinned(threads), *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise NotMeasured(f"ends with status {done.returncode}: {done.stderr.strip()[-300:]}")
    answer = json.loads(lines[-1])
    if "error" in answer:
        raise NotMeasured(answer["error"])
    return answer["calls_ms"]


def read_into_cache(files: list) -> None:
    """Reads files, so that they are in the page cache: Frazil reads weights and code within its first call, and some machines reclaim the memory of files
    that have been idle for some seconds."""
    for file in files:
        with open(file, "rb", buffering=0) as opened:
            while opened.read(1 << 20):
                pass


def measure(row: str, folder: pathlib.Path, options) -> dict:
    """The figures of each side."""
    frazil = [options.jit_run, folder / "model.pt", "--calls", folder / "case.json", "--time-calls", "--json", f"--threads={options.threads}"]
    if options.code_library.exists():
        frazil += ["--code-library", options.code_library]
    commands = {"frazil": frazil}
    for peer in options.peers:
        commands[peer] = [sys.executable, "-W", "ignore", __file__, "--worker", peer, row, folder, options.threads]
    rounds = {name: [] for name in commands}
    for number in range(options.rounds):
        for name in list(commands)[:: -1 if number % 2 else 1]:
            read_into_cache([options.jit_run, *folder.iterdir()])
            try:
                rounds[name].append(calls_ms(commands[name], options.threads))
            except NotMeasured as error:
                print(f"{row:30} {name:9} not measured: {error}", flush=True)
                del commands[name], rounds[name]
    median = statistics.median
    return {
        name: {
            "new_ms": median(sum(times[:CALLS]) for times in of_side),
            "again_ms": median(sum(times[CALLS:]) for times in of_side),
            "worst_ms": median(max(times[2:CALLS]) for times in of_side),
        }
        for name, of_side in rounds.items()
    }


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        peer, row, folder, threads = sys.argv[2:]
        worker(peer, row, pathlib.Path(folder), int(threads))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows whose names begin so; all by default")
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--peers", default=list(PEERS), type=lambda text: text.split(","))
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to a file")
    parser.add_argument("--jit-run", default=ROOT / "target/release/jit-run", type=pathlib.Path)
    parser.add_argument("--code-library", default=ROOT / "crates/frazil/codes.bin", type=pathlib.Path)
    options = parser.parse_args()
    if unknown := set(options.peers) - PEERS.keys():
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    if not options.jit_run.exists():
        parser.error(f"{options.jit_run} is missing: cargo build --release -p frazil-tools")
    rows = [row for row in ROWS if not options.rows or row.startswith(tuple(options.rows))]

    print(f"{'row':30} {'side':9} {'new ms':>9} {'again ms':>9} {'worst ms':>9} {'new':>6} {'again':>6}")
    everything = {}
    for row in rows:
        folder = ROOT / "target/bench-shapes" / row.replace(", ", "-").replace(" ", "-")
        if not (folder / "case.json").exists():
            make(row, folder)
        figures = everything[row] = measure(row, folder, options)
        own = figures.get("frazil")
        for name, figure in figures.items():
            ratios = ""
            if own and name != "frazil":
                ratios = f"{own['new_ms'] / figure['new_ms']:6.2f} {own['again_ms'] / figure['again_ms']:6.2f}"
            print(f"{row:30} {name:9} {figure['new_ms']:9.0f} {figure['again_ms']:9.0f} {figure['worst_ms']:9.1f} {ratios}", flush=True)
    for key in ("new", "again"):
        worst = {
            row: max(figures["frazil"][f"{key}_ms"] / figure[f"{key}_ms"] for name, figure in figures.items() if name != "frazil")
            for row, figures in everything.items()
            if len(figures) > 1 and "frazil" in figures
        }
        if worst:
            print(f"{key}: " + ", ".join(f"{row} {ratio:.2f}" for row, ratio in worst.items()))
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
