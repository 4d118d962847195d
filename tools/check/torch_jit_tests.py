#!/usr/bin/env python3
"""PyTorch's own JIT tests, with every archive that they save passed through jit-opt before it is loaded.

    python tools/check/torch_jit_tests.py PYTORCH [--jit-opt FILE] [--state DIR] [-k EXPRESSION] [FILE...]

PYTORCH is a checkout of PyTorch; its tests (`test/test_jit.py`, `test/jit/test_*.py`, or only the files named) run with the
`torch` and `pytest` of the Python that runs this. They run twice: as they are, and with `ScriptModule.save`, `save_to_buffer` and
their like for functions writing what `jit-opt SAVED.pt -o OUT.pt` made of what PyTorch saved. PyTorch's tests save, load and compare
nearly everything that they script, through a hook of their own, so this covers the language and not only serialisation.

Printed are the numbers, and each test that passes without Frazil and not with it; exit status 1 if there are any. Outcomes are kept
in the directory `--state` as they come: a second run does what is missing there, so that after a change of Frazil
`rm STATE/frazil.jsonl` suffices, and `--again` repeats only what failed with it.
"""

import argparse
import collections
import contextlib
import faulthandler
import importlib
import json
import os
import pathlib
import pkgutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# How a run tells this file, loaded as a plugin of pytest, what to do.
OUTCOMES = "FRAZIL_OUTCOMES"
JIT_OPT = "FRAZIL_JIT_OPT"
# A test that takes longer, or breaks the process, counts as failed; the run goes on behind it.
SECONDS = 900


class JitOptFailed(AssertionError):
    """What jit-opt refused; an assertion, so that no test takes it for an error of PyTorch's that it expects."""


class RoundTrips:
    """Puts jit-opt between saving and loading, and counts how often it was asked."""

    def __init__(self, jit_opt: str):
        self.jit_opt = jit_opt
        self.count = 0
        self.refused = []

    def archive(self, saved: bytes, top: str) -> bytes:
        self.count += 1
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "in.pt"), pathlib.Path(folder, f"{top}.pt")
            source.write_bytes(saved)
            done = subprocess.run([self.jit_opt, source, "-o", target], capture_output=True, text=True)
            if done.returncode != 0:
                # Some tests swallow every exception; what was refused is remembered.
                self.refused.append(done.stderr.strip())
                if kept := os.environ.get("FRAZIL_KEEP_REFUSED"):
                    pathlib.Path(kept).mkdir(exist_ok=True)
                    name = f"{os.environ.get('PYTEST_CURRENT_TEST', '').split(' ')[0].split('::')[-1]}_{self.count}.pt"
                    pathlib.Path(kept, name).write_bytes(saved)
                raise JitOptFailed(done.stderr)
            return target.read_bytes()

    def patch(self, torch) -> None:
        for owner in (torch._C.ScriptModule, torch._C.ScriptFunction):
            self.patch_class(owner)

    def patch_class(self, owner) -> None:
        save, save_to_buffer = owner.save, owner.save_to_buffer

        def patched_save(this, filename, *args, **kwargs):
            save(this, filename, *args, **kwargs)
            path = pathlib.Path(filename)
            path.write_bytes(self.archive(path.read_bytes(), path.stem))

        def patched_save_to_buffer(this, *args, **kwargs):
            return self.archive(save_to_buffer(this, *args, **kwargs), "archive")

        owner.save, owner.save_to_buffer = patched_save, patched_save_to_buffer


class Recorder:
    """Writes a line when a test starts and when it ends, and leaves out what has a line already."""

    def __init__(self, outcomes: pathlib.Path, trips: "RoundTrips | None"):
        self.done = {record["test"] for record in read_outcomes(outcomes)}
        self.file = outcomes.open("a")
        self.trips = trips
        self.names = {}

    def write(self, record: dict) -> None:
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def pytest_collection_modifyitems(self, config, items):
        # test_jit.py imports most of the other files' classes: each test once, called by where its class is defined.
        for item in items:
            owner = f"{item.cls.__module__}.{item.cls.__qualname__}" if item.cls else item.module.__name__
            name = f"{owner}.{item.name}"
            if name not in self.done:
                self.names[item.nodeid] = name
                self.done.add(name)
        items[:] = [item for item in items if item.nodeid in self.names]

    def pytest_runtest_logstart(self, nodeid, location):
        self.write({"test": self.names[nodeid], "outcome": "started"})
        self.failed, self.skipped = None, False
        if self.trips:
            self.trips.count, self.trips.refused = 0, []
        faulthandler.dump_traceback_later(SECONDS, exit=True)

    def pytest_runtest_logreport(self, report):
        if report.failed and self.failed is None:
            self.failed = str(report.longrepr)[-2000:]
        self.skipped = self.skipped or report.skipped

    def pytest_runtest_logfinish(self, nodeid, location):
        faulthandler.cancel_dump_traceback_later()
        outcome = "failed" if self.failed else "skipped" if self.skipped else "passed"
        record = {"test": self.names[nodeid], "outcome": outcome}
        if self.failed:
            record["why"] = self.failed
        if self.trips:
            record |= {"trips": self.trips.count, "refused": self.trips.refused}
        self.write(record)


class Gone:
    """What a newer torch than the checkout's no longer has: false, empty, and nothing when called."""

    def __bool__(self):
        return False

    def __iter__(self):
        return iter(())

    def __call__(self, *args, **kwargs):
        return Gone()

    def __radd__(self, items):
        return items

    def __add__(self, items):
        return items


def gone(name: str) -> Gone:
    if name.startswith("__"):
        raise AttributeError(name)
    return Gone()


def tolerate_missing_names() -> None:
    """Lets tests import names that the installed torch has dropped, so that one of them does not cost a whole file."""
    import torch.jit.frontend
    import torch.testing._internal

    modules = [torch.jit.frontend]
    for found in pkgutil.iter_modules(torch.testing._internal.__path__):
        if found.name.startswith(("common_", "jit_")):
            # Some want packages that are not here; nobody else imports those then.
            with contextlib.suppress(ImportError):
                modules.append(importlib.import_module(f"torch.testing._internal.{found.name}"))
    for module in modules:
        module.__getattr__ = gone


def pytest_configure(config):
    """Loaded by pytest in the process that runs the tests."""
    import torch
    from torch.testing._internal import common_utils

    tolerate_missing_names()
    # What `run_tests()` does at the end of each file: some tests ask which executor runs.
    arguments, sys.argv = sys.argv, sys.argv[:1]
    common_utils.parse_cmd_line_args()
    sys.argv = arguments
    trips = None
    if jit_opt := os.environ.get(JIT_OPT):
        trips = RoundTrips(jit_opt)
        trips.patch(torch)
    config.pluginmanager.register(Recorder(pathlib.Path(os.environ[OUTCOMES]), trips))


def read_outcomes(path: pathlib.Path) -> list:
    """The last record of each test; one that never ended broke its process."""
    records = {}
    if path.exists():
        for line in path.read_text().splitlines():
            record = json.loads(line)
            records[record["test"]] = record
    for record in records.values():
        if record["outcome"] == "started":
            record["outcome"], record["why"] = "failed", "the process ended within this test"
    return list(records.values())


def died(outcomes: pathlib.Path) -> bool:
    """Whether the last thing that happened is that a test started."""
    lines = outcomes.read_text().splitlines() if outcomes.exists() else []
    return bool(lines) and json.loads(lines[-1])["outcome"] == "started"


def run(
    tests: pathlib.Path,
    files: list,
    outcomes: pathlib.Path,
    jit_opt: "str | None",
    expression: "str | None",
    plugin: str = "torch_jit_tests",
) -> dict:
    """Runs all tests that `outcomes` does not have yet, as often as it takes; `plugin` is loaded by pytest."""
    environment = {**os.environ, OUTCOMES: str(outcomes), "PYTHONPATH": str(ROOT / "tools/check")}
    if jit_opt:
        environment[JIT_OPT] = jit_opt
    # No settings: those of the checkout ask for plugins.
    settings = outcomes.with_suffix(".ini")
    settings.touch()
    command = [sys.executable, "-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", "-c", str(settings)]
    command += ["--rootdir", str(tests), "-q", "--no-header", "--tb=short", "-W", "ignore", "--continue-on-collection-errors", *files]
    if expression:
        command += ["-k", expression]
    with outcomes.with_suffix(".log").open("a") as log:
        while True:
            before = len(read_outcomes(outcomes))
            status = subprocess.run(command, cwd=tests, env=environment, stdout=log, stderr=log).returncode
            # 0: all passed, 1: some failed, 5: nothing left to run. Anything else, or a test without an end, is a process that died.
            if status in (0, 1, 5) and not died(outcomes):
                break
            if len(read_outcomes(outcomes)) == before:
                raise SystemExit(f"pytest ended with status {status} before any test; see {log.name}")
    return {record["test"]: record for record in read_outcomes(outcomes)}


def forget_failed(outcomes: pathlib.Path) -> None:
    kept = [record for record in read_outcomes(outcomes) if record["outcome"] != "failed"]
    outcomes.write_text("".join(json.dumps(record) + "\n" for record in kept))


def reason(record: dict) -> str:
    """The line that says why a test fails."""
    text = record["refused"][-1] if record.get("refused") else record.get("why", "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if record.get("refused"):
        return next((line for line in lines if line.startswith("error")), lines[0] if lines else "")[:200]
    return next((line for line in reversed(lines) if line.startswith("E ")), lines[-1] if lines else "")[:200]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pytorch", type=pathlib.Path)
    parser.add_argument("files", nargs="*", help="files below test/; default: test_jit.py and jit/test_*.py")
    parser.add_argument("--jit-opt", default=ROOT / "target/debug/jit-opt", type=pathlib.Path)
    parser.add_argument("--state", default=ROOT / "target/torch-jit-tests", type=pathlib.Path)
    parser.add_argument("--again", action="store_true", help="repeat the tests that failed with jit-opt")
    parser.add_argument("-k", dest="expression", help="only tests that match, as in pytest")
    options = parser.parse_args()
    tests = options.pytorch.resolve() / "test"
    if not (tests / "test_jit.py").exists():
        parser.error(f"{options.pytorch} is no checkout of PyTorch: it has no test/test_jit.py")
    if not options.jit_opt.exists():
        parser.error(f"{options.jit_opt} is missing: cargo build -p frazil-tools")
    files = options.files or ["test_jit.py", *sorted(str(p.relative_to(tests)) for p in tests.glob("jit/test_*.py"))]
    state = options.state.resolve()
    state.mkdir(parents=True, exist_ok=True)
    if options.again:
        forget_failed(state / "frazil.jsonl")

    alone = run(tests, files, state / "alone.jsonl", None, options.expression)
    frazil = run(tests, files, state / "frazil.jsonl", str(options.jit_opt.resolve()), options.expression)
    both = [name for name in alone if name in frazil]
    passing = [name for name in both if alone[name]["outcome"] == "passed"]
    lost = [name for name in passing if frazil[name]["outcome"] != "passed"]
    passed = [name for name in passing if frazil[name]["outcome"] == "passed"]
    through = [name for name in passed if frazil[name].get("trips")]
    trips = sum(frazil[name].get("trips", 0) for name in both)
    groups = collections.defaultdict(list)
    for name in lost:
        groups[reason(frazil[name])].append(name)
    for why, names in sorted(groups.items(), key=lambda group: len(group[1])):
        print(why)
        for name in names:
            print(f"    {name}")
    print(f"{len(both)} tests, {len(passing)} pass without jit-opt")
    print(f"{len(passed)} of those pass with it ({len(through)} saved something; {trips} archives went through), {len(lost)} do not")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
