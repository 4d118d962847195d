#!/usr/bin/env python3
"""What the first call of a cold process costs, next to PyTorch's.

    python tools/bench_first_calls.py [MODEL.pt...] [--threads 2] [--rounds 9] [--code-library FILE] [--json FILE]

needs a release build of jit-run, and what tools/bench_peers.py needs. Without a model it takes those of docs/benchmarks.md and the encoder of
tools/bench_shapes.py. A `case.json` stands beside each archive; its first call is what is timed.

Frazil's figure is a whole process: jit-run from its start to its end, without a cache directory, with the code library that `make codes`
makes where there is one, as the installed tools have it. PyTorch's is torch.jit.load and the first call of what it returns; importing
PyTorch is not measured. The files are in the page cache. Rounds alternate between the sides. In each round a side runs twice, and the
second time counts: a virtual machine may have given memory that the other side's process freed back to its host, and getting it again can
take longer than the call. The figures are medians, in milliseconds. A ratio below 1 means that Frazil returns sooner.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import time

from bench_peers import ROOT, Peer, bench_models, pinned
from bench_shapes import encoder, read_into_cache


def encoder_case() -> pathlib.Path:
    """The encoder's archive, with a case of one call."""
    import torch
    from bench_models import write

    folder = ROOT / "target/bench-first-calls/encoder"
    if not (folder / "case.json").exists():
        torch.manual_seed(0)
        write("encoder", folder, encoder(), torch.randn(1, 128, 256))
    return folder / "model.pt"


def frazil(archive: pathlib.Path, options) -> float:
    """A whole process, in milliseconds."""
    command = [*pinned(options.threads), options.jit_run, archive, "--calls", archive.parent / "case.json", f"--threads={options.threads}"]
    if options.code_library.exists():
        command += ["--code-library", options.code_library]
    start = time.perf_counter()
    subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3


def pytorch(archive: pathlib.Path, options) -> float:
    peer = Peer("loaded", archive, options.threads)
    peer.close()
    return peer.once["first_ms"]


SIDES = {side.__name__: side for side in (frazil, pytorch)}


def measure(archive: pathlib.Path, options) -> dict:
    """The median of each side."""
    rounds = {name: [] for name in SIDES}
    for number in range(options.rounds):
        for name in list(SIDES)[:: -1 if number % 2 else 1]:
            files = [options.jit_run, options.code_library, *archive.parent.iterdir()]
            for _ in range(2):
                read_into_cache([file for file in files if file.is_file()])
                last = SIDES[name](archive, options)
            rounds[name].append(last)
    return {name: statistics.median(times) for name, times in rounds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL.pt")
    parser.add_argument("--threads", default=2, type=int)
    parser.add_argument("--rounds", default=9, type=int)
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to a file")
    parser.add_argument("--jit-run", default=ROOT / "target/release/jit-run", type=pathlib.Path)
    parser.add_argument("--code-library", default=ROOT / "crates/frazil/codes.bin", type=pathlib.Path)
    options = parser.parse_args()
    if not options.jit_run.exists():
        parser.error(f"{options.jit_run} is missing: cargo build --release -p frazil-tools")

    print(f"{'model':28} {'frazil ms':>10} {'pytorch ms':>10} {'ratio':>6}")
    everything = {}
    for archive in options.models or [*bench_models(), encoder_case()]:
        archive = archive.resolve()
        figures = everything[archive.parent.name] = measure(archive, options)
        print(f"{archive.parent.name:28} {figures['frazil']:10.1f} {figures['pytorch']:10.1f} {figures['frazil'] / figures['pytorch']:6.2f}", flush=True)
    sooner = sum(figures["frazil"] <= figures["pytorch"] for figures in everything.values())
    print(f"not later than PyTorch: {sooner} of {len(everything)}")
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
