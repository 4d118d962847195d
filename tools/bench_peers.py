#!/usr/bin/env python3
"""Latency of native code next to PyTorch's and ONNX Runtime's, on the same inputs, in turns on the same cores.

    python tools/bench_peers.py MODEL.pt... [--threads 1,2] [--rounds 15] [--peers frozen,onnx] [--engine interp] [--json FILE] [--plot FILE.svg]

needs a release build of jit-run, and `torch` and `safetensors` from PyPI in the Python that runs this, and what the peers below name;
`make bench-peers` sees to both. Without a model it makes those of docs/benchmarks.md (tools/bench_models.py) below target. A `case.json` stands beside each archive (tests/README.md has its format); its first call is what is timed.

The sides take short turns within each round, each in a process that stays, so that whatever else happens on the machine happens to all of
them; a round's figure is the median over its calls, and the printed figure the median over the rounds. A ratio is taken within each round,
where the sides are a second apart, before the median: what slows the machine for a while slows both. Peers:

    frozen   torch.jit.freeze, then torch.jit.optimize_for_inference
    loaded   the archive as torch.jit.load gives it
    compiled torch.compile with frozen weights, on what torch.export makes of the archive
    onnx     ONNX Runtime, all its graph optimisations on, on what torch.onnx.export makes of the archive (needs `onnxruntime`, and
             `onnx` for the export)
    openvino OpenVINO, tuned for latency, in f32, on what its own reader makes of the archive, or else of the ONNX export (needs
             `openvino`)
    shared   Frazil's own code whose sizes are arguments, which shapes share (docs/changing-shapes.md); a ratio of 1.05 means that it
             takes 5 % longer than code of the shape's own

A model that a peer cannot read has no row of it.

Beside the latency stand what a first call costs and what has to be there for it:

    first ms    from an archive on disk to the first result. A peer's modules are imported before that, and what the peer is made from
                (ONNX) is exported then too. Frazil's is a whole process, jit-run without a cache; with one, in the second column
    peak MB     the most memory that the process has had, resident; that of a peer holds PyTorch, which reads the archive and exports it
    shipped MB  the model's file and the installed packages that run it; Frazil's is the library that jit-opt makes, which needs the
                C library alone

A ratio above 1 means that Frazil is faster; the last lines give its geometric mean over the models, against the fastest peer of each. GFLOP/s
counts the multiply-adds of matrix products and convolutions as PyTorch's own counter does, for every side alike, so that a side that
needs fewer shows more than the machine has. With `--engine interp --peers loaded` the reference interpreter is measured, which is to take at
most ten times as long as PyTorch does: a ratio of 0.1.
"""

import argparse
import io
import json
import os
import importlib.util
import pathlib
import resource
import statistics
import struct
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


# safetensors' names of dtypes, and PyTorch's.
DTYPES = {"F32": "float32", "F64": "float64", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "U8": "uint8", "BOOL": "bool"}


def input_shapes(case: pathlib.Path) -> str | None:
    """The arguments of the first call as jit-opt's --input-shape wants them; None where they are not all tensors."""
    read = json.loads(case.read_text())
    call = read["calls"][0]
    if call.get("method", read["method"]) != "forward" or any("tensor" not in argument for argument in call["args"]):
        return None
    with open(case.parent / "tensors.safetensors", "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    entries = [header[argument["tensor"]] for argument in call["args"]]
    if any(entry["dtype"] not in DTYPES for entry in entries):
        return None
    return ",".join("x".join(map(str, entry["shape"])) + ":" + DTYPES[entry["dtype"]] for entry in entries)


def bytes_below(folder: pathlib.Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def installed_bytes(package: str) -> int:
    """What an installed package takes, with the libraries that wheels put beside it."""
    folder = pathlib.Path(importlib.util.find_spec(package).origin).parent
    beside = folder.with_name(folder.name + ".libs")
    return bytes_below(folder) + (bytes_below(beside) if beside.is_dir() else 0)


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
# Frazil with other options.
OWN = {"shared": ["--fusion-strategy=static:0"]}
# What reads an exported function knows one method, of tensors.
EXPORTED = ("compiled", "onnx", "openvino")
# The package that runs a peer's model.
PACKAGES = {"onnx": "onnxruntime", "openvino": "openvino"}


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
    # What a peer's libraries print is no answer: it goes where errors go.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def answer(**values) -> None:
        print(json.dumps(values), file=answers, flush=True)

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
        function(*arguments)
    except NotMeasured as error:
        answer(error=str(error))
        return
    except Exception as error:  # whatever a compiler raises on the first call
        answer(error=f"fails: {first_line(error)}")
        return
    first_ms = (time.perf_counter() - start) * 1e3
    # The profiling executor records, then optimises, then runs what it optimised.
    for _ in range(10):
        function(*arguments)
    compile_ms = (time.perf_counter() - start) * 1e3
    shipped_mb = (archive.stat().st_size + installed_bytes(PACKAGES.get(peer, "torch"))) / 1e6
    answer(compile_ms=compile_ms, first_ms=first_ms, flops=flops, shipped_mb=shipped_mb)

    for line in sys.stdin:
        function(*arguments)  # brings back what others have driven out of the caches
        end, times = time.perf_counter() + float(line), []
        while time.perf_counter() < end or len(times) < 3:
            start = time.perf_counter()
            function(*arguments)
            times.append((time.perf_counter() - start) * 1e3)
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        answer(median_ms=statistics.median(times), min_ms=min(times), peak_mb=peak_mb)


class Side:
    """A process that is kept running, and sleeps while others have their turn."""

    def __init__(self, threads: int, command: list):
        self.process = subprocess.Popen([*pinned(threads), *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a side ended with status {self.process.wait()}")
        return json.loads(line)

    def measure(self, seconds: float) -> dict:
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Peer(Side):
    """A worker."""

    def __init__(self, peer: str, archive: pathlib.Path, threads: int):
        super().__init__(threads, [sys.executable, "-W", "ignore", __file__, "--worker", peer, str(threads), str(archive)])
        answer = self.answer()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        self.compile_ms = answer["compile_ms"]
        self.flops = answer["flops"]
        self.once = {key: answer[key] for key in ("first_ms", "shipped_mb")}


class Frazil(Side):
    """jit-run."""

    def __init__(self, jit_run: pathlib.Path, archive: pathlib.Path, threads: int, engine: str, options: tuple = ()):
        calls = archive.parent / "case.json"
        self.command = [str(jit_run), str(archive), "--calls", str(calls), f"--engine={engine}", f"--threads={threads}", *options]
        self.flops = None
        self.once = self.first_calls(threads)
        if engine == "native" and (shapes := input_shapes(calls)):
            self.once["shipped_mb"] = self.library_mb(jit_run.with_name("jit-opt"), archive, shapes)
        super().__init__(threads, [*self.command, "--bench", "--turns"])
        self.compile_ms = self.measure(0)["compile_ms"]

    def measure(self, seconds: float) -> dict:
        figures = super().measure(seconds)
        return figures | {"peak_mb": figures["peak_rss_mb"] * 1.048576}

    def first_calls(self, threads: int) -> dict:
        """Whole processes, without a cache and with a full one."""
        with tempfile.TemporaryDirectory() as folder:
            out, cache = ["--out", folder + "/out"], ["--cache-dir", folder + "/cache"]

            def run(arguments: list) -> float:
                start = time.perf_counter()
                subprocess.run([*pinned(threads), *self.command, *arguments], stdout=subprocess.DEVNULL, check=True)
                return (time.perf_counter() - start) * 1e3

            cold = run(out)
            run(out + cache)
            return {"first_ms": cold, "cached_ms": run(out + cache)}

    @staticmethod
    def library_mb(jit_opt: pathlib.Path, archive: pathlib.Path, shapes: str) -> float | None:
        """The size of the shared library; None where the model cannot be one."""
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder, "libmodel.so")
            command = [str(jit_opt), str(archive), "--freeze", f"--input-shape={shapes}", "--emit=lib", "-o", str(library)]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return library.stat().st_size / 1e6 if done.returncode == 0 else None


def pinned(threads: int) -> list:
    cores = sorted(os.sched_getaffinity(0))[:threads]
    return ["taskset", "-c", ",".join(map(str, cores))]


def compare(archive: pathlib.Path, threads: int, options) -> dict:
    sides = {"frazil": Frazil(options.jit_run, archive, threads, options.engine)}
    for peer in options.peers:
        try:
            own = OWN.get(peer)
            sides[peer] = Frazil(options.jit_run, archive, threads, options.engine, own) if own else Peer(peer, archive, threads)
        except RuntimeError as error:
            print(f"{archive.parent.name:28} {threads:7} {peer:8} not measured: {error}", flush=True)
    rounds = {name: [] for name in sides}
    for number in range(options.rounds):
        # Turned round each time, so that what becomes slower and slower is no one's fault.
        for name in list(sides)[:: -1 if number % 2 else 1]:
            rounds[name].append(sides[name].measure(options.seconds))
    for side in sides.values():
        side.close()
    figures = {}
    flops = next((side.flops for side in sides.values() if side.flops), None)
    for name, side in sides.items():
        median = statistics.median(figure["median_ms"] for figure in rounds[name])
        least = min(figure["min_ms"] for figure in rounds[name])
        peak = max(figure["peak_mb"] for figure in rounds[name])
        figures[name] = {"median_ms": median, "min_ms": least, "compile_ms": side.compile_ms, "peak_mb": peak, **side.once}
        figures[name]["gflops"] = flops and flops / median / 1e6
    for name in sides.keys() - {"frazil"}:
        pairs = zip(rounds[name], rounds["frazil"])
        figures[name]["ratio"] = statistics.median(peer["median_ms"] / frazil["median_ms"] for peer, frazil in pairs)
    return figures


def plot(everything: list) -> str:
    """A picture in SVG: for each model and number of threads a bar a side, as long as its latency relative to the slowest side's."""
    colours = {"frazil": "#2b6cb0", "frozen": "#dd6b20", "loaded": "#975a16", "compiled": "#b83280", "onnx": "#718096", "openvino": "#38a169", "shared": "#63b3ed"}
    left, width, bar, y, parts = 280, 480, 14, 10, []
    for entry in everything:
        sides = sorted(entry["sides"].items(), key=lambda item: item[1]["median_ms"])
        slowest = sides[-1][1]["median_ms"]
        title = f"{entry['model']}, {entry['threads']} thread{'s' * (entry['threads'] > 1)}"
        parts.append(f'<text x="{left - 8}" y="{y + bar - 3}" text-anchor="end">{title}</text>')
        for name, figure in sides:
            length = max(1.0, width * figure["median_ms"] / slowest)
            parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 2}" fill="{colours[name]}"/>')
            parts.append(f'<text x="{left + length + 6:.1f}" y="{y + bar - 3}">{name} {figure["median_ms"]:.3g} ms</text>')
            y += bar
        y += bar // 2
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 160}" height="{y}" font-family="sans-serif" font-size="11">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"])


def bench_models() -> list:
    """The models of docs/benchmarks.md. Another process makes them: this one is to stay small."""
    folder = ROOT / "target/bench-models"
    subprocess.run([sys.executable, "-W", "ignore", ROOT / "tools/bench_models.py", folder], check=True)
    return sorted(folder.glob("*/model.pt"))


def cell(value: float | None, width: int, digits: int = 0) -> str:
    return f"{value:{width}.{digits}f}" if value else " " * width


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], pathlib.Path(sys.argv[4]), int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL.pt")
    parser.add_argument("--threads", default=[1, 2], type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--rounds", default=15, type=int)
    parser.add_argument("--seconds", default=0.3, type=float, help="time for each side's turn")
    parser.add_argument("--peers", default=["frozen", "onnx", "openvino"], type=lambda text: text.split(","))
    parser.add_argument("--engine", default="native", choices=["native", "interp"])
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to a file")
    parser.add_argument("--plot", type=pathlib.Path, help="write a picture of the latencies, in SVG")
    parser.add_argument("--jit-run", default=ROOT / "target/release/jit-run", type=pathlib.Path)
    options = parser.parse_args()
    if unknown := set(options.peers) - PEERS.keys() - OWN.keys():
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join([*PEERS, *OWN])}")
    if not options.jit_run.exists():
        parser.error(f"{options.jit_run} is missing: cargo build --release -p frazil-tools")
    options.models = options.models or bench_models()
    available = len(os.sched_getaffinity(0))

    print(f"{'model':28} {'threads':>7} {'side':8} {'median ms':>10} {'min ms':>10} {'GFLOP/s':>8} {'ready ms':>9} {'first ms':>9} {'cached':>7} {'peak MB':>8} {'shipped MB':>10} {'ratio':>6}")
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
                row += f" {cell(figure['gflops'], 8, 1)} {figure['compile_ms']:9.0f} {cell(figure['first_ms'], 9)}"
                row += f" {cell(figure.get('cached_ms'), 7)} {figure['peak_mb']:8.0f} {cell(figure.get('shipped_mb'), 10, 1)}"
                print(f"{row} {ratio}", flush=True)
    for threads in options.threads:
        models = [entry["sides"].values() for entry in everything if entry["threads"] == threads]
        ratios = [[side["ratio"] for side in sides if "ratio" in side] for sides in models]
        least = [min(of_model) for of_model in ratios if of_model]
        if least:
            print(f"{threads} threads: {statistics.geometric_mean(least):.2f} over {len(least)} models, least {min(least):.2f}")
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")
    if options.plot:
        options.plot.write_text(plot(everything))


if __name__ == "__main__":
    main()
