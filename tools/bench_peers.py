#!/usr/bin/env python3
"""Latency of native code next to PyTorch's and ONNX Runtime's, on the same inputs, in turns on the same cores.

    python tools/bench_peers.py MODEL.pt... [--threads 1,2] [--rounds 5] [--peers frozen,onnx] [--engine interp] [--json FILE]

needs a release build of jit-run (`make bench-peers` makes it), and `torch` and `safetensors` from PyPI in the Python that runs
this, and what the peers below name. A `case.json` stands beside each archive (tests/README.md has its format); its first call is what is timed.

The sides take turns within each round, so that whatever else happens on the machine happens to all of them; a round's figure
is the median over its calls, and the printed figure the median over the rounds. Peers:

    frozen   torch.jit.freeze, then torch.jit.optimize_for_inference
    loaded   the archive as torch.jit.load gives it
    compiled torch.compile with frozen weights, on what torch.export makes of the archive
    onnx     ONNX Runtime, all its graph optimisations on, on what torch.onnx.export makes of the archive (needs `onnxruntime`, and
             `onnx` for the export)
    openvino OpenVINO, tuned for latency, in f32, on what its own reader makes of the archive, or else of the ONNX export (needs
             `openvino`)

A model that a peer cannot read has no row of it.

A ratio above 1 means that Frazil is faster; the last lines give its geometric mean over the models, against the fastest peer of each. GFLOP/s
counts the multiply-adds of matrix products and convolutions as PyTorch's own counter does, for every side alike, so that a side that
needs fewer shows more than the machine has. With `--engine interp --peers loaded` the reference interpreter is measured, which is to take at
most ten times as long as PyTorch does: a ratio of 0.1.
"""

import argparse
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def decode(value, tensors):
    """A value of case.json as PyTorch wants it."""
    (kind, payload), = value.items()
    if kind == "tensor":
        return tensors[payload]
    if kind == "none":
        return None
    if kind == "float":
        return float(payload)
    if kind in ("list", "tuple"):
        items = [decode(item, tensors) for item in payload]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {decode(key, tensors): decode(item, tensors) for key, item in payload}
    return payload


class NotMeasured(Exception):
    """A peer cannot run the model; the text says why."""


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def onnx_file(model, arguments: tuple) -> bytes:
    """The archive as torch.onnx.export writes it."""
    import torch

    file = io.BytesIO()
    try:
        torch.onnx.export(model, arguments, file, dynamo=False, opset_version=17)
    except Exception as error:  # the exporter raises whatever comes up
        raise NotMeasured(f"cannot be exported: {first_line(error)}") from None
    return file.getvalue()


def loaded(model, method: str, arguments: tuple, threads: int):
    return getattr(model, method)


def frozen(model, method: str, arguments: tuple, threads: int):
    import torch

    others = [method] if method != "forward" else []
    model = torch.jit.optimize_for_inference(torch.jit.freeze(model, preserved_attrs=others), other_methods=others)
    return getattr(model, method)


def compiled(model, method: str, arguments: tuple, threads: int):
    import torch
    from torch._export.converter import TS2EPConverter
    from torch._inductor import config

    config.freezing = True
    try:
        return torch.compile(TS2EPConverter(model, arguments).convert().module())
    except Exception as error:  # the converter raises whatever comes up
        raise NotMeasured(f"cannot be exported: {first_line(error)}") from None


def onnx(model, method: str, arguments: tuple, threads: int):
    """The elements of the arguments are handed over beforehand, so that only the run is measured."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(onnx_file(model, arguments), options, providers=["CPUExecutionProvider"])
    # An input that nothing needs is not there.
    names = {node.name for node in session.get_inputs()}
    graph_names = [value.debugName() for value in model.graph.inputs()][1:]
    feed = {name: argument.numpy() for name, argument in zip(graph_names, arguments) if name in names}
    if feed.keys() != names:
        feed = {node.name: argument.numpy() for node, argument in zip(session.get_inputs(), arguments)}
    return lambda *_: session.run(None, feed)


def openvino(model, method: str, arguments: tuple, threads: int):
    import openvino as ov

    options = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    feed = [argument.numpy() for argument in arguments]

    def request(read):
        network = read()
        network.reshape({port: list(array.shape) for port, array in zip(network.inputs, feed)})
        ready = ov.Core().compile_model(network, "CPU", options).create_infer_request()
        ready.infer(feed)
        return ready

    try:
        ready = request(lambda: ov.convert_model(model, example_input=arguments))
    except Exception:  # both readers raise whatever comes up
        try:
            ready = request(lambda: ov.Core().read_model(onnx_file(model, arguments)))
        except Exception as error:
            raise NotMeasured(f"cannot be read: {first_line(error)}") from None
    return lambda *_: ready.infer(feed)


PEERS = {peer.__name__: peer for peer in (frozen, loaded, compiled, onnx, openvino)}
# What reads an exported function knows one method, of tensors.
EXPORTED = ("compiled", "onnx", "openvino")


def operations(model, method: str, arguments: tuple):
    """Floating-point operations of a call, or None where PyTorch cannot count them."""
    from torch.utils.flop_counter import FlopCounterMode

    try:
        with FlopCounterMode(display=False) as counter:
            getattr(model, method)(*arguments)
        return counter.get_total_flops()
    except Exception:  # whatever an operator's rule raises
        return None


def worker(peer: str, archive: pathlib.Path, threads: int) -> None:
    """Runs in a process of its own: for each line with a number of seconds on standard input, times calls for that long."""
    import torch
    from safetensors.torch import load_file

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    case = json.loads((archive.parent / "case.json").read_text())
    call = case["calls"][0]
    tensors = load_file(archive.parent / "tensors.safetensors")
    arguments = [decode(argument, tensors) for argument in call["args"]]
    method = call.get("method", case["method"])

    start = time.perf_counter()
    model = torch.jit.load(archive).eval()
    counted = time.perf_counter()
    flops = operations(model, method, tuple(arguments))
    start += time.perf_counter() - counted
    try:
        if peer in EXPORTED and not (method == "forward" and all(isinstance(a, torch.Tensor) for a in arguments)):
            raise NotMeasured("only forward on tensors is exported")
        function = PEERS[peer](model, method, tuple(arguments), threads)
    except NotMeasured as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    # The profiling executor records, then optimises, then runs what it optimised.
    for _ in range(10):
        function(*arguments)
    print(json.dumps({"compile_ms": (time.perf_counter() - start) * 1e3, "flops": flops}), flush=True)

    for line in sys.stdin:
        end, times = time.perf_counter() + float(line), []
        while time.perf_counter() < end or len(times) < 5:
            start = time.perf_counter()
            function(*arguments)
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps({"median_ms": statistics.median(times), "min_ms": min(times)}), flush=True)


class Peer:
    """A worker that is kept running, and sleeps while others have their turn."""

    def __init__(self, peer: str, archive: pathlib.Path, threads: int):
        command = [*pinned(threads), sys.executable, "-W", "ignore", __file__, "--worker", peer, str(threads), str(archive)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        answer = self.answer()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        self.compile_ms = answer["compile_ms"]
        self.flops = answer["flops"]

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a peer ended with status {self.process.wait()}")
        return json.loads(line)

    def measure(self, seconds: float) -> dict:
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Frazil:
    """jit-run, started anew each round: it warms up and measures by itself."""

    def __init__(self, jit_run: pathlib.Path, archive: pathlib.Path, threads: int, engine: str):
        calls = archive.parent / "case.json"
        self.command = [*pinned(threads), str(jit_run), str(archive), "--calls", str(calls), f"--engine={engine}"]
        self.command += [f"--threads={threads}", "--bench", "--json"]
        self.compile_ms = None
        self.flops = None

    def measure(self, _seconds: float) -> dict:
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([*self.command, "--out", out], stdout=subprocess.PIPE, text=True, check=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        self.compile_ms = figures["compile_ms"]
        return figures

    def close(self) -> None:
        pass


def pinned(threads: int) -> list:
    cores = sorted(os.sched_getaffinity(0))[:threads]
    return ["taskset", "-c", ",".join(map(str, cores))]


def compare(archive: pathlib.Path, threads: int, options) -> dict:
    sides = {"frazil": Frazil(options.jit_run, archive, threads, options.engine)}
    for peer in options.peers:
        try:
            sides[peer] = Peer(peer, archive, threads)
        except RuntimeError as error:
            print(f"{archive.parent.name:28} {threads:7} {peer:8} not measured: {error}", flush=True)
    rounds = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, side in sides.items():
            rounds[name].append(side.measure(options.seconds))
    for side in sides.values():
        side.close()
    figures = {}
    flops = next((side.flops for side in sides.values() if side.flops), None)
    for name, side in sides.items():
        median = statistics.median(figure["median_ms"] for figure in rounds[name])
        least = min(figure["min_ms"] for figure in rounds[name])
        figures[name] = {"median_ms": median, "min_ms": least, "compile_ms": side.compile_ms}
        figures[name]["gflops"] = flops and flops / median / 1e6
    for name in sides.keys() - {"frazil"}:
        figures[name]["ratio"] = figures[name]["median_ms"] / figures["frazil"]["median_ms"]
    return figures


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], pathlib.Path(sys.argv[4]), int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL.pt")
    parser.add_argument("--threads", default=[1, 2], type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--seconds", default=1.0, type=float, help="time for each peer's turn")
    parser.add_argument("--peers", default=["frozen"], type=lambda text: text.split(","))
    parser.add_argument("--engine", default="native", choices=["native", "interp"])
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to a file")
    parser.add_argument("--jit-run", default=ROOT / "target/release/jit-run", type=pathlib.Path)
    options = parser.parse_args()
    if unknown := set(options.peers) - PEERS.keys():
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    if not options.jit_run.exists():
        parser.error(f"{options.jit_run} is missing: cargo build --release -p frazil-tools")
    options.models = options.models or [ROOT / "tests/fixtures/models/residual_cnn/model.pt"]
    available = len(os.sched_getaffinity(0))

    print(f"{'model':28} {'threads':>7} {'side':8} {'median ms':>10} {'min ms':>10} {'GFLOP/s':>8} {'ready ms':>9} {'ratio':>6}")
    everything = []
    for archive in options.models:
        archive = archive.resolve()
        for threads in options.threads:
            if threads > available:
                print(f"{archive.parent.name:28} {threads:7} skipped: this machine has {available} cores")
                continue
            figures = compare(archive, threads, options)
            everything.append({"model": archive.parent.name, "threads": threads, "sides": figures})
            for name, figure in figures.items():
                ratio = f"{figure['ratio']:6.2f}" if "ratio" in figure else ""
                row = f"{archive.parent.name:28} {threads:7} {name:8} {figure['median_ms']:10.3f} {figure['min_ms']:10.3f}"
                gflops = f"{figure['gflops']:8.1f}" if figure["gflops"] else f"{'':8}"
                print(f"{row} {gflops} {figure['compile_ms']:9.0f} {ratio}", flush=True)
    for threads in options.threads:
        models = [entry["sides"].values() for entry in everything if entry["threads"] == threads]
        ratios = [[side["ratio"] for side in sides if "ratio" in side] for sides in models]
        least = [min(of_model) for of_model in ratios if of_model]
        if least:
            print(f"{threads} threads: {statistics.geometric_mean(least):.2f} over {len(least)} models, least {min(least):.2f}")
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
