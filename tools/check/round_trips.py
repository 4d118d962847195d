#!/usr/bin/env python3
"""Real PyTorch on modules that were built, changed, cast and traced here, and state dictionaries both ways; by hand.

    python tools/check/round_trips.py [--worker FILE] [--keep DIR]

needs `cargo build -p frazil --no-default-features --example modules`, and `torch` and `safetensors` in the Python that runs this. PyTorch loads each archive, compares the
results of its calls and its state dictionary with those recorded here, loads our dictionary, saves and loads the module again, and writes the module with
another dictionary for us to load. The last lines have the figures; what is wrong has a line of its own, and exit status 1.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2}


def flat(value):
    """The tensors of a result in order."""
    return [value] if isinstance(value, torch.Tensor) else [t for item in value for t in flat(item)]


def call(module, calls: dict) -> dict:
    """The results of the recorded calls, by name."""
    methods = list(dict.fromkeys(name.split(".")[0] for name in calls))
    # The order of calls is that of a module whose state they change; one call does so here.
    results = {}
    for method in methods:
        numbers = sorted(int(name.split(".")[1]) for name in calls if name.split(".")[:1] == [method] and "result" not in name)
        arguments = [calls[f"{method}.{n}"].clone() for n in numbers]
        with torch.no_grad():
            value = getattr(module, method)(*arguments)
        results.update({f"{method}.result.{i}": t for i, t in enumerate(flat(value))})
    return results


def difference(ours: dict, theirs: dict):
    if ours.keys() != theirs.keys():
        return f"{sorted(ours)} and {sorted(theirs)}"
    for name, a in ours.items():
        b = theirs[name]
        tolerance = TOLERANCE.get(a.dtype, 1e-5)
        if a.dtype != b.dtype or not torch.allclose(a, b, tolerance, tolerance):
            return f"{name}: {a} and {b}"
    return None


def check(folder: pathlib.Path, path: pathlib.Path):
    """What is wrong with an archive, a line each; and how many things were looked at."""
    name = path.name.removesuffix(".pt")
    calls = load_file(folder / f"{name}.calls.safetensors")
    ours = {key: t for key, t in calls.items() if "result" in key}
    state = load_file(folder / f"{name}.state.safetensors")
    load = lambda: torch.jit.load(path)  # noqa: E731
    wrong = []

    def compare(what, a, b):
        if message := difference(a, b):
            wrong.append(f"{name}, {what}: {message}")

    compare("results", call(load(), calls), ours)
    compare("state dictionary", dict(load().state_dict()), state)

    # Other weights, then ours again: results are those from here.
    module = load()
    generator = torch.Generator().manual_seed(3)
    other = {
        key: t + torch.rand(t.shape, generator=generator).to(t.dtype) / 4 if t.is_floating_point() else t
        for key, t in module.state_dict().items()
    }
    module.load_state_dict(other)
    module.load_state_dict(state)
    compare("our dictionary", call(module, calls), ours)

    again = folder / "again.pt"
    load().save(str(again))
    compare("saved by PyTorch", call(torch.jit.load(again), calls), ours)

    module = load()
    module.load_state_dict(other)
    # What shares memory keeps doing so; the file has each under its name.
    save_file({key: t.clone() for key, t in module.state_dict().items()}, folder / f"{name}.torch.safetensors")
    module.save(str(folder / f"{name}.torch.pt"))
    results = {key: t.contiguous().clone() for key, t in call(module, calls).items()}
    save_file(results, folder / f"{name}.torch.calls.safetensors")
    return 4, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", default=ROOT / "target/debug/examples/modules", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="where to leave what was written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([options.worker, "write", folder], check=True)
        archives = sorted(p for p in folder.glob("*.pt") if not p.name.endswith(".torch.pt") and p.name != "again.pt")
        looked, failures = 0, []
        for path in archives:
            try:
                count, wrong = check(folder, path)
                looked += count
                failures += wrong
            except Exception as error:
                looked += 1
                failures.append(f"{path.name}: {' '.join(str(error).split())[:400]}")
        for failure in failures:
            print(failure)
        print(f"PyTorch on {len(archives)} modules from here: {looked - len(failures)} of {looked} comparisons agree")
        done = subprocess.run([options.worker, "read", folder], capture_output=True, text=True)
        print(done.stdout + done.stderr, end="")
        count, _, total = (done.stdout.strip().splitlines() or ["0 of 1"])[-1].partition(" of ")
    sys.exit(1 if failures or count != total else 0)


if __name__ == "__main__":
    main()
