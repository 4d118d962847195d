#!/usr/bin/env python3
"""Starts many processes on one cache directory at once, while others delete what is in it; by hand and in `make test-full`.

    tools/check/shared_cache.py [--tools DIR] [--processes N] [--rounds N]

Each process is a `jit-run` of one of several models. Meanwhile files of the cache, and the directory with all that is in it, are deleted at random. Each
process must end with status 0, the results of a run without a cache, and no message. Every third process has a small bound on the directory, and evicts files of the others. At the end one more
run must leave no temporary files.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = [ROOT / "tests/fixtures/models" / name for name in ("residual_cnn", "grouped", "speech", "detector", "power")]


def command(tools, model, out, *options):
    return [tools / "jit-run", model / "model.pt", "--calls", model / "case.json", "--out", out, *options]


def results(out):
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def delete(cache, is_done, chance, counts):
    """Deletes files one by one, and from time to time everything."""
    while not is_done.is_set():
        time.sleep(chance.uniform(0, 0.02))
        try:
            if chance.random() < 0.02:
                shutil.rmtree(cache)
                counts["folders"] += 1
            else:
                chance.choice(list(cache.iterdir())).unlink()
                counts["files"] += 1
        except (OSError, IndexError):
            pass  # there is nothing, or another one was faster


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "target/debug")
    parser.add_argument("--processes", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    tools, passed, failed = options.tools.resolve(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        cache = folder / "cache"
        expected = {}
        for model in MODELS:
            subprocess.run(command(tools, model, folder / model.name), check=True)
            expected[model] = results(folder / model.name)
        counts, is_done = {"files": 0, "folders": 0}, threading.Event()
        deleters = [threading.Thread(target=delete, args=(cache, is_done, random.Random(options.seed + i), counts)) for i in range(2)]
        for deleter in deleters:
            deleter.start()
        for round in range(options.rounds):
            processes = []
            for number in range(options.processes):
                model, out = MODELS[number % len(MODELS)], folder / f"out{round}.{number}"
                call = command(tools, model, out, f"--cache-dir={cache}", f"--threads={1 + number % 3}", *(["--cache-size=100K"] if number % 3 == 0 else []))
                processes.append((model, out, subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
            for model, out, process in processes:
                printed, told = process.communicate()
                if process.returncode == 0 and not printed and not told and results(out) == expected[model]:
                    passed += 1
                    continue
                failed += 1
                print(f"{model.name}: status {process.returncode}, or other results: {printed[:200]!r} {told[:500]!r}", file=sys.stderr)
        is_done.set()
        for deleter in deleters:
            deleter.join()
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir(mode=0o700)
        (cache / ".frazil-dead").write_text("half")
        subprocess.run(command(tools, MODELS[0], folder / "last", f"--cache-dir={cache}"), check=True)
        left = [path.name for path in cache.glob(".frazil-*")]
        if left:
            failed += 1
            print(f"left over: {left}", file=sys.stderr)
    print(f"{counts['files']} files and {counts['folders']} times the directory were deleted")
    # In the form of cargo's, which tools/test.sh counts.
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
