#!/usr/bin/env python3
"""Real PyTorch on the archives that jit-opt writes: does it load them, and do they compute what was recorded?

    python tools/check/check_with_torch.py DIRECTORY... [--jit-opt FILE] [--through ir] [--no-freeze] [--keep DIR]

Every case below the directories (`case.json`, `cases.json` as tests/README.md describes, or a `.pt` that no case names) is taken. Its
archive goes through `jit-opt MODEL.pt -o OUT.pt`, with `--through ir` by way of its text, and PyTorch loads what was written and makes the
calls that were recorded. Models that can be frozen go through `jit-opt --freeze` too; PyTorch has to agree on those as well, within the
case's tolerance. Needs `torch` and `safetensors` in the Python that runs this.

The last line has the figures; each case that fails has a line of its own. Exit status 1 if there are any.
"""

import argparse
import collections
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from bench_peers import decode  # noqa: E402


class Wrong(Exception):
    """What is wrong with a case."""


def same(value, golden: dict, tensors: dict, case: dict) -> None:
    """Whether what PyTorch computed is what was recorded."""
    import torch

    (kind, payload), = golden.items()
    if kind == "tensor":
        expected = tensors[payload]
        if not isinstance(value, torch.Tensor):
            raise Wrong(f"{value!r} is no tensor")
        if value.dtype != expected.dtype or value.shape != expected.shape:
            raise Wrong(f"{value.dtype} of {list(value.shape)}, not {expected.dtype} of {list(expected.shape)}")
        if not torch.allclose(value.detach(), expected, case.get("rtol", 1e-5), case.get("atol", 1e-6), equal_nan=True):
            raise Wrong(f"the largest difference is {(value.double() - expected.double()).abs().max().item():.3g}")
    elif kind in ("list", "tuple"):
        if len(value) != len(payload):
            raise Wrong(f"{len(value)} items, not {len(payload)}")
        for item, expected in zip(value, payload):
            same(item, expected, tensors, case)
    elif kind == "dict":
        if len(value) != len(payload):
            raise Wrong(f"{len(value)} items, not {len(payload)}")
        for (key, item), (expected_key, expected) in zip(value.items(), payload):
            same(key, expected_key, tensors, case)
            same(item, expected, tensors, case)
    elif kind == "none":
        if value is not None:
            raise Wrong(f"{value!r} is not None")
    elif kind == "float":
        expected = float(payload)
        if not (math.isnan(value) and math.isnan(expected)) and not math.isclose(value, expected, rel_tol=1e-5, abs_tol=1e-6):
            raise Wrong(f"{value!r} is not {expected!r}")
    elif value != payload:
        raise Wrong(f"{value!r} is not {payload!r}")


def replay(module, case: dict, tensors: dict) -> None:
    """Makes the recorded calls, in order, on one instance."""
    for number, call in enumerate(case["calls"]):
        arguments = [decode(argument, tensors) for argument in call["args"]]
        golden = call["result"]
        try:
            value = getattr(module, call.get("method", case["method"]))(*arguments)
        except Exception as error:
            if "raises" not in golden:
                raise Wrong(f"call {number} raised {str(error).strip().splitlines()[-1]}") from error
            continue
        if "raises" in golden:
            raise Wrong(f"call {number} gave {value!r} and should raise")
        try:
            same(value, golden, tensors, case)
        except Wrong as wrong:
            raise Wrong(f"call {number}: {wrong}") from wrong


class Checker:
    def __init__(self, options):
        self.options = options
        self.counts = collections.Counter()
        self.failures = []

    def jit_opt(self, *arguments) -> None:
        done = subprocess.run([self.options.jit_opt, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            raise Wrong(f"jit-opt: {next(iter(done.stderr.strip().splitlines()), '')}")

    def check(self, name: str, archive: pathlib.Path, cases: list, tensors: dict, freeze: bool, folder: pathlib.Path) -> None:
        kinds = {"plain": [], "frozen": ["--freeze"]}
        preserved = sorted({n for case in cases for n in [*case.get("preserve", []), case["method"]]} - {"forward"})
        if preserved:
            kinds["frozen"].append(f"--preserve={','.join(preserved)}")
        for kind, arguments in kinds.items():
            if kind == "frozen" and not freeze:
                continue
            self.counts[kind] += 1
            written = folder / f"{name.replace('/', '_')}.{kind}.pt"
            try:
                self.write(archive, written, arguments, folder)
                self.load_and_replay(written, cases, tensors)
                self.counts[f"{kind} right"] += 1
            except Wrong as wrong:
                self.failures.append(f"{name} ({kind}): {wrong}")
            finally:
                if not self.options.keep:
                    written.unlink(missing_ok=True)

    def write(self, archive: pathlib.Path, written: pathlib.Path, arguments: list, folder: pathlib.Path) -> None:
        if self.options.through == "ir":
            text = folder / "through.ir"
            self.jit_opt(archive, *arguments, "-o", text)
            self.jit_opt(text, "-o", written)
        else:
            self.jit_opt(archive, *arguments, "-o", written)

    def load_and_replay(self, written: pathlib.Path, cases: list, tensors: dict) -> None:
        import torch

        for case in cases or [None]:
            try:
                module = torch.jit.load(written)
            except Exception as error:
                raise Wrong(f"torch.jit.load: {' '.join(str(error).split())[:300]}") from error
            if case:
                with torch.no_grad():
                    replay(module.eval() if "training" in dir(module) else module, case, tensors)


def find(directory: pathlib.Path):
    """Archives below `directory`: name, path, the cases that use it, and their tensors' file."""
    claimed = set()
    for path in sorted([*directory.rglob("case.json"), *directory.rglob("cases.json")]):
        read = json.loads(path.read_text())
        by_model = collections.defaultdict(list)
        for case in read if isinstance(read, list) else [read]:
            by_model[case.get("model", "model.pt")].append(case)
        for model, cases in sorted(by_model.items()):
            archive = path.parent / model
            claimed.add(archive)
            yield f"{path.parent.name}/{model}", archive, cases, path.parent / "tensors.safetensors"
    for archive in sorted(directory.rglob("*.pt")):
        if archive not in claimed:
            yield str(archive.relative_to(directory)), archive, [], None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--jit-opt", default=ROOT / "target/debug/jit-opt", type=pathlib.Path)
    parser.add_argument("--through", choices=["ir"], help="write the text first, and the archive from that")
    parser.add_argument("--no-freeze", action="store_true", help="leave out frozen archives")
    parser.add_argument("--keep", type=pathlib.Path, help="where to leave what was written")
    options = parser.parse_args()
    if not options.jit_opt.exists():
        parser.error(f"{options.jit_opt} is missing: cargo build -p frazil-tools")
    warnings.simplefilter("ignore")
    from safetensors.torch import load_file

    checker = Checker(options)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for directory in options.directories:
            for name, archive, cases, tensors in find(directory):
                loaded = load_file(tensors) if tensors and tensors.exists() else {}
                freeze = not options.no_freeze and archive.name == "model.pt"
                checker.check(name, archive, cases, loaded, freeze, folder)
    for failure in checker.failures:
        print(failure)
    counts = checker.counts
    print(", ".join(f"{kind}: {counts[f'{kind} right']} of {counts[kind]} right" for kind in ("plain", "frozen") if counts[kind]))
    sys.exit(1 if checker.failures else 0)


if __name__ == "__main__":
    main()
