#!/usr/bin/env python3
"""Kills the tools at every system call with which they write, and makes every one of these calls fail; by hand and in `make test-full`.

    tools/check/kill_points.py [--tools DIR] [--quick] [KIND...]

needs `strace`. For each kind of output there are old files and new ones. The tool, which is to replace the old by the new, is killed at one system call
after the other, from the first file that it creates on. Each file must then be the old or the new one, a pair of a text and its tensors must be one of the
two pairs or be refused by the reader, and the next run must leave no temporary files. Then each call fails as on a full disk (ENOSPC) instead: the tool must
say so with status 1 and leave the old files, nothing else. `--quick` tries every seventh call only.
"""

import argparse
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/fixtures/models"

# System calls that change files or names, or say whether that worked.
CALLS = "openat,write,writev,pwrite64,lseek,ftruncate,fchmod,fsync,flock,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,close"
# Those of which the failure must be told; a lock or a folder's listing that is refused is none.
FAILING = "write,writev,pwrite64,rename,renameat,renameat2"


class Kind:
    """A kind of output: the command that writes the old files (0) or the new ones (1), their names, and a command that reads a pair."""

    def __init__(self, name, command, files, reader=None):
        self.name, self.command, self.files, self.reader = name, command, files, reader


def kinds(tools):
    opt, run, reduce = (str(tools / name) for name in ("jit-opt", "jit-run", "jit-reduce"))
    models = [str(MODELS / name / "model.pt") for name in ("speech", "residual_cnn")]
    residual = models[1]
    case = MODELS / "residual_cnn/case.json"
    shapes = [f"--input-shape={n}x3x32x32" for n in (1, 2)]
    values = [f"ones:{n}x3x32x32" for n in (1, 2)]

    def written(name, *options):
        return lambda i: [opt, models[i], *options, "-o", name]

    def library(name):
        return lambda i: [opt, residual, "--freeze", shapes[i], "-o", name]

    return [
        Kind("text", written("out.ir"), ["out.ir", "out.safetensors"], [opt, "out.ir", "-o", "/dev/null"]),
        Kind("archive", written("out.pt"), ["out.pt"]),
        Kind("source", written("out.py", "--emit=code"), ["out.py"]),
        Kind("picture", written("out.dot", "--emit=dot"), ["out.dot"]),
        Kind("object", lambda i: [opt, residual, "--freeze", shapes[i], "--emit=obj", "-o", "out.o"], ["out.o"]),
        Kind("shared", library("out.so"), ["out.so", "out.h"], [sys.executable, os.path.abspath(__file__), "--pair", "out.so"]),
        Kind("static", library("out.a"), ["out.a", "out.h"], [sys.executable, os.path.abspath(__file__), "--pair", "out.a"]),
        Kind("array", lambda i: [run, residual, "--engine=interp", "--input", values[i], "--save-output", "."], ["output_0.npy"]),
    ]


def check_pair(library):
    """Status 0 where the header beside `library` belongs to it, as the library tells, else 1."""
    name, value = re.search(r"#define (\w+)_HEADER (0x\w+)u", library.with_suffix(".h").read_text()).groups()
    with tempfile.TemporaryDirectory() as folder:
        shared = pathlib.Path(folder) / "shared.so"
        if library.suffix == ".so":
            shutil.copy(library, shared)
        else:
            whole = ["-Wl,--whole-archive", library, "-Wl,--no-whole-archive"]
            subprocess.run(["cc", "-shared", "-o", shared, *whole, "-lm", "-lpthread"], check=True)
        header = getattr(ctypes.CDLL(str(shared)), name.lower() + "_header")
        header.restype = ctypes.c_uint32
        sys.exit(header() != int(value, 16))


def main():
    if sys.argv[1:2] == ["--pair"]:
        check_pair(pathlib.Path(sys.argv[2]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "target/debug")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    if not shutil.which("strace"):
        sys.exit("kill_points: strace is not installed")
    failures = killed = failed = 0
    for kind in kinds(options.tools.resolve()):
        if options.kinds and kind.name not in options.kinds:
            continue
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(kind, pathlib.Path(folder))
            for call, number in trial.points(7 if options.quick else 1):
                killed += 1
                failures += trial.kill(call, number)
                if call in FAILING.split(","):
                    failed += 1
                    failures += trial.fail(call, number)
        print(f"{kind.name}: {killed} kills and {failed} failures so far, {failures} wrong", flush=True)
    # In the form of cargo's, which tools/test.sh counts.
    print(f"test result: {'FAILED' if failures else 'ok'}. {killed + failed - failures} passed; {failures} failed")
    sys.exit(1 if failures else 0)


class Trial:
    def __init__(self, kind, folder):
        self.kind, self.folder = kind, folder
        self.old, self.new = self.made(0), self.made(1)
        assert self.old != self.new

    def run(self, command, *before):
        return subprocess.run([*before, *command], cwd=self.folder, capture_output=True, text=True)

    def made(self, variant):
        done = self.run(self.kind.command(variant))
        assert done.returncode == 0, done.stderr
        return self.contents()

    def contents(self):
        paths = [self.folder / name for name in self.kind.files]
        return {path.name: path.read_bytes() for path in paths if path.exists()}

    def reset(self):
        for path in self.folder.iterdir():
            path.unlink()
        for name, data in self.old.items():
            (self.folder / name).write_bytes(data)

    def points(self, step):
        """The calls of the command from the first file that it creates on: name, and which of that name it is."""
        self.reset()
        log = self.folder / "log"
        self.run(self.kind.command(1), "strace", "-o", str(log), "-e", f"trace={CALLS}")
        numbers, points, creating = {}, [], False
        for line in log.read_text(errors="replace").splitlines():
            match = re.match(r"(\w+)\(", line)
            if not match:
                continue
            call = match.group(1)
            numbers[call] = numbers.get(call, 0) + 1
            creating = creating or "O_CREAT" in line
            if creating:
                points.append((call, numbers[call]))
        return points[::step]

    def injected(self, call, number, what):
        self.reset()
        inject = f"inject={call}:{what}:when={number}"
        return self.run(self.kind.command(1), "strace", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject)

    def wrong(self, call, number, what):
        print(f"{self.kind.name}: {call} {number}: {what}", file=sys.stderr)
        return 1

    def kill(self, call, number):
        self.injected(call, number, "signal=SIGKILL")
        found = self.contents()
        for name, data in found.items():
            if data not in (self.old.get(name), self.new.get(name)):
                return self.wrong(call, number, f"{name} is neither the old file nor the new one")
        if found not in (self.old, self.new):
            if not self.kind.reader:
                return self.wrong(call, number, "files of two runs stand side by side")
            read = self.run(self.kind.reader)
            if read.returncode != 1:
                return self.wrong(call, number, f"a mixed pair is read with status {read.returncode}")
        if self.made(1) != self.new:
            return self.wrong(call, number, "the next run writes something else")
        return self.leftovers(call, number)

    def fail(self, call, number):
        done = self.injected(call, number, "error=ENOSPC")
        if done.returncode == 0 and self.contents() == self.new and "space" not in done.stderr:
            return 0  # what failed was not the output: a message, a temporary file that need not be
        if done.returncode != 1 or not re.search("space|os error 28", done.stderr):
            return self.wrong(call, number, f"on a full disk status {done.returncode}, {done.stderr[:200]!r}")
        found = self.contents()
        if found != self.old:
            if not self.kind.reader or self.run(self.kind.reader).returncode != 1:
                return self.wrong(call, number, "on a full disk the old files are not what they were")
        return self.leftovers(call, number)

    def leftovers(self, call, number):
        names = {path.name for path in self.folder.iterdir()} - set(self.kind.files)
        return self.wrong(call, number, f"left over: {sorted(names)}") if names else 0


if __name__ == "__main__":
    main()
