#!/usr/bin/env python3
"""Measures the Python package, installed from its wheel into the Python that runs this.

    bench_python.py overhead                     a call of an empty model, and `import frazil`
    bench_python.py latency JIT_RUN MODEL...     calls with the inputs of case.json beside each model.pt, in turns with `jit-run --bench`
    bench_python.py threads MODEL                calls a second of one and of two threads
    bench_python.py soak MODEL [SECONDS]         eight threads on one model, 200 loads beside them: results, memory
"""

import json
import pathlib
import resource
import statistics
import subprocess
import sys
import threading
import time

TURNS, TURN = 15, 0.4


def inputs(model: pathlib.Path):
    """The arguments of the first call of case.json."""
    import numpy

    case = json.loads((model.parent / "case.json").read_text())
    header_and_data = (model.parent / "tensors.safetensors").read_bytes()
    size = int.from_bytes(header_and_data[:8], "little")
    header, data = json.loads(header_and_data[8 : 8 + size]), header_and_data[8 + size :]
    types = {"F32": "float32", "F64": "float64", "F16": "float16", "I64": "int64", "I32": "int32", "I8": "int8", "U8": "uint8", "BOOL": "bool"}

    def array(name: str):
        entry = header[name]
        begin, end = entry["data_offsets"]
        return numpy.frombuffer(data[begin:end], dtype=types[entry["dtype"]]).reshape(entry["shape"]).copy()

    def value(given):
        if isinstance(given, dict) and "tensor" in given:
            return array(given["tensor"])
        if isinstance(given, dict) and "value" in given:
            return given["value"]
        return given

    call = case["calls"][0]
    return [value(argument) for argument in call.get("args", call.get("inputs", []))]


def median_of_calls(call, seconds: float) -> float:
    """The median of the time of calls during `seconds`, in seconds."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def overhead() -> None:
    imports = []
    for _ in range(9):
        code = "import time; t = time.perf_counter(); import frazil; print(time.perf_counter() - t)"
        imports.append(float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout))
    print(f"import frazil: median {statistics.median(imports) * 1e3:.1f} ms, most {max(imports) * 1e3:.1f} ms")
    import frazil
    import numpy

    model = frazil.script("class Empty(nn.Module):\n    def forward(self, x):\n        return x\n").eval()
    add = frazil.script("class Add(nn.Module):\n    def forward(self, x):\n        return x + 1\n").eval()
    x = numpy.ones(4, dtype="float32")
    for name, call in (("empty model", lambda: model(x)), ("x + 1 of 4 elements", lambda: add(x)), ("a Python function", lambda: None)):
        call()
        runs = [0.0] * 21
        for run in range(len(runs)):
            start = time.perf_counter()
            for _ in range(2000):
                call()
            runs[run] = (time.perf_counter() - start) / 2000
        print(f"{name}: {statistics.median(runs) * 1e6:.2f} us a call")


def latency(jit_run: str, models: list[pathlib.Path]) -> None:
    import frazil

    for path in models:
        model, args = frazil.load(path), inputs(path)
        model(*args)
        command = [jit_run, str(path), "--calls", str(path.parent / "case.json"), "--bench", "--turns"]
        peer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ours, theirs = [], []
        for _ in range(TURNS):
            peer.stdin.write(f"{TURN}\n")
            peer.stdin.flush()
            line = json.loads(peer.stdout.readline())
            theirs.append(line["median"] if "median" in line else line["median_ms"] / 1e3)
            ours.append(median_of_calls(lambda: model(*args), TURN))
        peer.stdin.close()
        peer.wait()
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        print(f"{path.parent.name}: Python {statistics.median(ours) * 1e3:.3f} ms, jit-run {statistics.median(theirs) * 1e3:.3f} ms, ratio {ratio:.3f}")


def count_calls(model, args, threads: int, seconds: float) -> float:
    """Calls a second of so many threads together."""
    counts = [0] * threads
    barrier = threading.Barrier(threads + 1)

    def work(number: int) -> None:
        model(*args)
        barrier.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            model(*args)
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    for worker in workers:
        worker.join()
    return sum(counts) / seconds


def threads(path: pathlib.Path) -> None:
    import frazil

    model, args = frazil.load(path), inputs(path)
    ratios = []
    for _ in range(7):
        one = count_calls(model, args, 1, 1.5)
        two = count_calls(model, args, 2, 1.5)
        ratios.append(two / one)
    print(f"{path.parent.name}: {one:.1f} calls a second of one thread; two threads: median ratio {statistics.median(ratios):.2f} of {[round(r, 2) for r in ratios]}")


def memory() -> int:
    """Resident memory in KiB."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def soak(path: pathlib.Path, seconds: float) -> None:
    import frazil
    import numpy

    model, args = frazil.load(path), inputs(path)
    expected = model(*args)
    stop = threading.Event()
    counts, wrong = [0] * 8, []

    def work(number: int) -> None:
        while not stop.is_set():
            result = model(*args)
            if not all(numpy.array_equal(a, b) for a, b in zip(numpy.atleast_1d(result), numpy.atleast_1d(expected))):
                wrong.append(number)
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    start = time.monotonic()
    for loads in range(200):
        time.sleep(max(0.0, start + (loads + 1) * seconds / 200 - time.monotonic()))
        other = frazil.load(path, engine="interpreter" if loads % 10 else "native")
        if loads % 10 == 0:
            other(*args)
        del other
        if loads % 20 == 19:
            print(f"{time.monotonic() - start:6.0f} s: {sum(counts)} calls, {loads + 1} loads, {memory() / 1024:.0f} MiB", flush=True)
    stop.set()
    for worker in workers:
        worker.join()
    print(f"{sum(counts)} calls of 8 threads, {len(wrong)} wrong results")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["overhead"]:
            overhead()
        case ["latency", jit_run, *models] if models:
            latency(jit_run, [pathlib.Path(model) for model in models])
        case ["threads", model]:
            threads(pathlib.Path(model))
        case ["soak", model, *rest]:
            soak(pathlib.Path(model), float(rest[0]) if rest else 600)
        case _:
            sys.exit(__doc__)
