#!/usr/bin/env python3
"""Kills the tools at every system call with which they write, and makes every one of these calls fail or do less; by hand and in `make test-full`.

    tools/check/kill_points.py [--tools DIR] [--quick] [KIND...]

needs `strace` and `cc`. For each kind of output there are old files and new ones. The tool, which is to replace the old by the new, is killed at one system
call after the other, from the first file that it creates on. Each file must then be the old or the new one, a pair of a text and its tensors must be one of
the two pairs or be refused by the reader, and the next run must leave no temporary files. Then each call fails as on a full disk (ENOSPC) instead: the tool
must say so with status 1 and leave the old files, nothing else. Then every call writes less than it is asked to, which must change nothing; and files may
not be as large as the new ones (`ulimit -f`), which must be an error as on a full disk.

A tuning file is no output that was asked for: where it cannot be written, the old one stays, a warning says so, and the run gives its results.

A cache directory need not have a certain content. There the run that was killed or failed, or else the next one, must give the right results.

`--quick` tries every seventh call only.
"""

import argparse
import concurrent.futures
import ctypes
import os
import json
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


# Writes at most half of what it is asked to to a regular file, in the tools; objcopy takes that for a failure.
SHORT_WRITES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
static size_t less(int file, size_t bytes) {
  struct stat found;
  if (strncmp(program_invocation_short_name, "jit-", 4)) return bytes;
  return bytes > 1 && !fstat(file, &found) && S_ISREG(found.st_mode) ? bytes / 2 : bytes;
}
ssize_t write(int file, const void *data, size_t bytes) {
  ssize_t (*next)(int, const void *, size_t) = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  return next(file, data, less(file, bytes));
}
ssize_t writev(int file, const struct iovec *parts, int count) {
  return count ? write(file, parts[0].iov_base, parts[0].iov_len) : 0;
}
ssize_t pwrite64(int file, const void *data, size_t bytes, off_t at) {
  ssize_t (*next)(int, const void *, size_t, off_t) = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
  return next(file, data, less(file, bytes), at);
}
"""


class Kind:
    """A kind of output: the command that writes the old files (0) or the new ones (1), their names, and a command that reads them. A `series` has any number
    of files between the old and the new one, each of which has to be readable. The command ends with `status`; the files `given` are in its folder."""

    def __init__(self, name, command, files, reader=None, series=False, status=0, given=()):
        self.name, self.command, self.files, self.reader, self.series = name, command, files, reader, series
        self.status, self.given = status, {path.name: path.read_bytes() for path in given}


def kinds(tools, inputs):
    opt, run, reduce = (str(tools / name) for name in ("jit-opt", "jit-run", "jit-reduce"))
    models = [str(MODELS / name / "model.pt") for name in ("speech", "residual_cnn")]
    residual = models[1]
    case = MODELS / "residual_cnn/case.json"
    (inputs / "sums.py").write_text("def forward(x, n: int):\n    return x + n, n\n")
    for i in range(2):
        body = "".join(f"  %v{n} : Tensor = aten::relu(%v{n - 1})\n" for n in range(1, 4 + i))
        (inputs / f"reduce{i}.ir").write_text(f"graph(%v0 : Tensor):\n{body}  %y : Tensor = aten::abs(%v{3 + i})\n  return (%y)\n")
    cases = [inputs / f"case{i}.json" for i in range(2)]
    for i, path in enumerate(cases):
        tensor = {"tensor": {"dtype": "float32", "shape": [3], "data": [1, 2, 3 + i]}}
        path.write_text(json.dumps({"calls": [{"args": [tensor, {"int": i}]}]}))
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
        Kind("results", lambda i: [run, str(inputs / "sums.py"), "--engine=interp", "--calls", str(cases[i]), "--out", "."],
             ["results.json", "tensors.safetensors"], [sys.executable, os.path.abspath(__file__), "--results", "."]),
        Kind("reduced", lambda i: [reduce, str(inputs / f"reduce{i}.ir"), "-o", "out.ir", "--", "sh", "-c", f"! grep -q {('relu', 'abs')[i]} {{}}"], ["out.ir"],
             [opt, "out.ir", "-o", "/dev/null"], series=True),
        # Of a pass that fails.
        Kind("reproducer", lambda i: [opt, str(inputs / f"reduce{i}.ir"), "--pass-pipeline=dce,rewrite-patterns{file=none}", "--reproducer=out.ir"], ["out.ir"],
             status=1),
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


def check_results(folder):
    """Status 0 where the results of calls and their tensors have one checksum, else 1."""
    said = json.loads((folder / "results.json").read_text())["crc32"]
    tensors = (folder / "tensors.safetensors").read_bytes()
    header = json.loads(tensors[8 : 8 + int.from_bytes(tensors[:8], "little")])
    sys.exit(header["__metadata__"]["crc32"] != said)


def tried(make, step):
    """The numbers of kills, of failures, and of those among both after which something was wrong."""
    with tempfile.TemporaryDirectory() as folder:
        trial = make(pathlib.Path(folder))
        # Two failures are those of the whole run: writes that are too short, and files that are too large.
        wrong, killed, failed = trial.short_writes() + trial.large_files(), 0, 2
        for call, number in trial.points(step):
            killed += 1
            wrong += trial.kill(call, number)
            if call in FAILING.split(","):
                failed += 1
                wrong += trial.fail(call, number)
        return killed, failed, wrong


def main():
    if sys.argv[1:2] == ["--pair"]:
        check_pair(pathlib.Path(sys.argv[2]))
    if sys.argv[1:2] == ["--results"]:
        check_results(pathlib.Path(sys.argv[2]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "target/debug")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    if not shutil.which("strace"):
        sys.exit("kill_points: strace is not installed")
    failures = killed = failed = 0
    with tempfile.TemporaryDirectory() as inputs:
        inputs = pathlib.Path(inputs)
        (inputs / "short.c").write_text(SHORT_WRITES)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", inputs / "short.so", inputs / "short.c", "-ldl"], check=True)
        tools = options.tools.resolve()
        trials = [(kind.name, lambda folder, kind=kind: Trial(kind, folder, inputs)) for kind in kinds(tools, inputs)]
        trials.append(("tuning", lambda folder: TuningTrial(tools, folder, inputs)))
        trials.append(("cache", lambda folder: CacheTrial(tools, folder, inputs)))
        trials = [(name, make) for name, make in trials if not options.kinds or name in options.kinds]
        # A trial waits for one process after the other, so threads suffice.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
            for name, counts in workers.map(lambda trial: (trial[0], tried(trial[1], 7 if options.quick else 1)), trials):
                killed, failed, failures = (before + of_trial for before, of_trial in zip((killed, failed, failures), counts))
                print(f"{name}: {killed} kills and {failed} failures so far, {failures} wrong", flush=True)
    # In the form of cargo's, which tools/test.sh counts.
    print(f"test result: {'FAILED' if failures else 'ok'}. {killed + failed - failures} passed; {failures} failed")
    sys.exit(1 if failures else 0)


class Trial:
    def __init__(self, kind, folder, inputs):
        self.kind, self.folder, self.inputs = kind, folder / "out", inputs
        self.temporary = folder / "tmp"
        self.folder.mkdir()
        self.temporary.mkdir()
        self.give()
        self.old, self.new = self.made(0), self.made(1)
        assert self.old != self.new

    def run(self, command, *before, environment={}, limit=None):
        if limit:
            before = [*before, "prlimit", f"--fsize={limit}"]
        environment = {**os.environ, "TMPDIR": str(self.temporary), **environment}
        return subprocess.run([*before, *command], cwd=self.folder, env=environment, capture_output=True, text=True)

    def give(self):
        for name, data in self.kind.given.items():
            (self.folder / name).write_bytes(data)

    def made(self, variant):
        done = self.run(self.kind.command(variant))
        assert done.returncode == self.kind.status, done.stderr
        return self.contents()

    def contents(self):
        paths = [self.folder / name for name in self.kind.files]
        return {path.name: path.read_bytes() for path in paths if path.exists()}

    def reset(self):
        for folder in (self.folder, self.temporary):
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.give()
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
        if self.kind.series:
            if self.run(self.kind.reader).returncode != 0:
                return self.wrong(call, number, "what is there cannot be read")
            found = self.old
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
        if done.returncode == self.kind.status and self.contents() == self.new and "space" not in done.stderr:
            return 0  # what failed was not the output: a message, a temporary file that need not be
        if done.returncode != 1 or not re.search("space|os error 28", done.stderr):
            return self.wrong(call, number, f"on a full disk status {done.returncode}, {done.stderr[:200]!r}")
        found = self.contents()
        if self.kind.series:
            if self.run(self.kind.reader).returncode != 0:
                return self.wrong(call, number, "what is there cannot be read")
        elif found != self.old:
            if not self.kind.reader or self.run(self.kind.reader).returncode != 1:
                return self.wrong(call, number, "on a full disk the old files are not what they were")
        return self.leftovers(call, number)

    def leftovers(self, call, number):
        names = {path.name for path in self.folder.iterdir()} - {*self.kind.files, *self.kind.given}
        names |= {path.name for path in self.temporary.glob(".frazil-*")}
        return self.wrong(call, number, f"left over: {sorted(names)}") if names else 0

    def short_writes(self):
        self.reset()
        done = self.run(self.kind.command(1), environment={"LD_PRELOAD": str(self.inputs / "short.so")})
        if done.returncode != self.kind.status or self.contents() != self.new:
            return self.wrong("short writes", 0, f"status {done.returncode}, or other files: {done.stderr[:200]!r}")
        return self.leftovers("short writes", 0)

    def large_files(self):
        self.reset()
        limit = max(len(data) for data in self.new.values()) // 2
        done = self.run(self.kind.command(1), limit=limit)
        if done.returncode != 1 or not re.search("large|os error 27", done.stderr):
            return self.wrong("limit", limit, f"status {done.returncode}, {done.stderr[:200]!r}")
        if self.contents() != self.old:
            return self.wrong("limit", limit, "the old files are not what they were")
        return self.leftovers("limit", limit)


class TuningTrial(Trial):
    """Measurements of kernels, which a second run adds to. The products are so small that there is one variant of each: all runs choose the same."""

    def __init__(self, tools, folder, inputs):
        source = inputs / "tuned.py"
        source.write_text(
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = nn.Parameter(torch.arange(12.0).reshape(4, 3))\n"
            "    def forward(self, x):\n        return x @ self.w\n"
        )
        command = lambda i: [str(tools / "jit-run"), source.name, "--input", f"ones:{2 + i}x4", "--tune"]
        super().__init__(Kind("tuning", command, ["tuned.py.tune"], given=[source]), folder, inputs)
        self.reset()
        self.result = self.run(command(1)).stdout

    def fail(self, call, number):
        return self.untuned(call, number, self.injected(call, number, "error=ENOSPC"), "space|os error 28")

    def large_files(self):
        self.reset()
        limit = len(self.old["tuned.py.tune"])
        return self.untuned("limit", limit, self.run(self.kind.command(1), limit=limit), "large|os error 27")

    def untuned(self, call, number, done, why):
        if self.contents() == self.new:
            return self.leftovers(call, number)  # what failed was something else: the result itself
        if done.returncode != 0 or done.stdout != self.result or not re.search(why, done.stderr):
            return self.wrong(call, number, f"measurements cannot be kept: status {done.returncode}, {done.stderr[:200]!r}")
        if self.contents() != self.old:
            return self.wrong(call, number, "the old measurements are not what they were")
        return self.leftovers(call, number)


class CacheTrial(Trial):
    """A model that is compiled into an empty cache directory; threads write there."""

    def __init__(self, tools, folder, inputs):
        model = MODELS / "residual_cnn"
        command = [str(tools / "jit-run"), str(model / "model.pt"), "--calls", str(model / "case.json"), "--out", ".", "--cache-dir=cache"]
        super().__init__(Kind("cache", lambda _: command, ["results.json", "tensors.safetensors"]), folder, inputs)

    def made(self, variant):
        return super().made(variant) if variant else {}

    def points(self, step):
        self.reset()
        log = self.inputs / "log"
        self.run(self.kind.command(1), "strace", "-f", "-o", str(log), "-e", f"trace={CALLS}")
        numbers, points, creating = {}, set(), False
        for line in log.read_text(errors="replace").splitlines():
            match = re.match(r"(\d+) +(\w+)\(", line)
            if not match:
                continue
            numbers[match.groups()] = numbers.get(match.groups(), 0) + 1
            creating = creating or "O_CREAT" in line
            if creating:
                points.add((match.group(2), numbers[match.groups()]))
        return sorted(points)[::step]

    def injected(self, call, number, what):
        self.reset()
        inject = f"inject={call}:{what}:when={number}"
        return self.run(self.kind.command(1), "strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject)

    def kill(self, call, number):
        self.injected(call, number, "signal=SIGKILL")
        return self.next_run(call, number)

    def fail(self, call, number):
        done = self.injected(call, number, "error=ENOSPC")
        # The results themselves may have been what could not be written.
        if done.returncode not in (0, 1) or (done.returncode == 0 and self.contents() != self.new):
            return self.wrong(call, number, f"on a full disk status {done.returncode}, {done.stderr[:200]!r}")
        return self.next_run(call, number)

    def next_run(self, call, number):
        done = self.run(self.kind.command(1))
        if done.returncode != 0 or self.contents() != self.new:
            return self.wrong(call, number, f"the next run ends with status {done.returncode}: {done.stderr[:200]!r}")
        return self.leftovers(call, number)

    def leftovers(self, call, number):
        names = [path.name for path in self.folder.rglob(".frazil-*")]
        return self.wrong(call, number, f"left over: {sorted(names)}") if names else 0

    def large_files(self):
        self.reset()
        # Larger than the results, and smaller than the code.
        done = self.run(self.kind.command(1), limit=2 * max(len(data) for data in self.new.values()))
        if done.returncode != 0 or self.contents() != self.new or "not kept" not in done.stderr:
            return self.wrong("limit", 0, f"status {done.returncode}, {done.stderr[:200]!r}")
        return self.next_run("limit", 0)


if __name__ == "__main__":
    main()
