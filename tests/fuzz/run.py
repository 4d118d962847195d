#!/usr/bin/env python3
"""Builds the fuzz targets once and runs each for its share of a time: `make fuzz TIME=600`.

The build needs no other toolchain than the rest: `RUSTC_BOOTSTRAP=1` lets the stable compiler instrument code for coverage and with the address
sanitizer, whose run-time library comes with it. Everything that is written is below `target/fuzz`:

- `build`: what cargo builds; `seeds`: what seeds.py writes; `corpus/TARGET`: inputs that reached something new, for the next run;
- `findings`: inputs that crashed, took too long or too much memory, each with the log of its process beside it;
- `record.jsonl`: a line for each target and run, so that runs in pieces add up; `--summary` prints the sums.

Exit status 1 tells that there was a finding.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import tomllib

import seeds

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMMON = ["-rss_limit_mb=2048", "-print_final_stats=1", "-reload=1", "-verbosity=1"]
# Most bytes of an input. Longer ones reach nothing that these do not, and are slower.
MAX_LEN = {"archive": 1 << 16, "package": 1 << 14, "roundtrip": 1 << 16, "tensors": 1 << 14, "text": 1 << 14, "source": 1 << 14}
DEFAULT_MAX_LEN = 1 << 13
# A run stops after so many findings of a target: the same mistake is found again and again.
MAX_FINDINGS = 5
FLAGS = [
    "--cfg=fuzzing",
    "-Zsanitizer=address",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    # With several units, symbols of the instrumentation are missing when the linker removes sections.
    "-Ccodegen-units=1",
    "-Cforce-frame-pointers=yes",
]
STATUS = re.compile(r"^#\d+\s.*\bcov: (\d+)")
EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)")
FINDING = re.compile(r"Test unit written to (\S+)")


def all_targets() -> list[str]:
    manifest = tomllib.loads((HERE / "Cargo.toml").read_text())
    return [binary["name"] for binary in manifest["bin"]]


def host() -> str:
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return next(line.removeprefix("host: ") for line in version.splitlines() if line.startswith("host: "))


def build(folder: pathlib.Path, targets: list[str]) -> pathlib.Path:
    """Builds the targets, and returns the folder of their programs."""
    triple = host()
    environment = dict(os.environ, RUSTC_BOOTSTRAP="1", RUSTFLAGS=" ".join(FLAGS), CARGO_TARGET_DIR=str(folder / "build"))
    command = ["cargo", "build", "--quiet", "--release", "--manifest-path", str(HERE / "Cargo.toml"), "--target", triple]
    if subprocess.run([*command, *(f"--bin={t}" for t in targets)], env=environment, check=False).returncode != 0:
        sys.exit(
            "fuzz: the targets cannot be built. They need a stable toolchain with the run-time library of the address sanitizer,"
            " which rustup installs on x86_64 and aarch64 Linux."
        )
    return folder / "build" / triple / "release"


class Worker:
    """A process of a target, which is started again after a finding while there is time."""

    def __init__(self, command: list[str], end: float, log: pathlib.Path, findings: pathlib.Path) -> None:
        self.command, self.end, self.log, self.findings = command, end, log, findings
        self.executions, self.cpu, self.found = 0, 0.0, []
        # Seconds since the start, and edges covered by then.
        self.curve: list[tuple[float, int]] = []
        self.begin = time.monotonic()
        self.process: subprocess.Popen | None = None
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        while (left := self.end - time.monotonic()) > 1 and len(self.found) < MAX_FINDINGS:
            before = len(self.found)
            status = self.once(int(left))
            if status != 0 and len(self.found) == before:
                # The finding is one of the inputs that it starts from, or no input was run at all: it would end the same way again.
                if not self.found:
                    self.found.append(f"exit status {status}: {self.log}")
                return

    def once(self, seconds: int) -> int:
        environment = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1:" + os.environ.get("ASAN_OPTIONS", ""))
        command = [*self.command, f"-max_total_time={max(seconds, 1)}"]
        lines = []
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", env=environment
        )
        found = None
        for line in self.process.stderr:
            lines.append(line)
            if match := STATUS.match(line):
                self.curve.append((time.monotonic() - self.begin, int(match[1])))
            elif match := EXECUTED.match(line):
                self.executions += int(match[1])
            elif match := FINDING.search(line):
                found = pathlib.Path(match[1])
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu += usage.ru_utime + usage.ru_stime
        self.log.write_text("".join(lines[-2000:]))
        if found is not None and str(found) not in self.found:
            self.found.append(str(found))
            (self.findings / f"{found.name}.log").write_text("".join(lines[-400:]))
        return self.process.returncode

    def stop(self) -> None:
        self.end = 0
        if self.process is not None and self.process.poll() is None:
            self.process.kill()


def edges_at(curves: list[list[tuple[float, int]]], moment: float) -> int:
    """The most edges that a process had covered by then: they share the corpus, so that each reaches what the others found."""
    return max((edges for curve in curves for when, edges in curve if when <= moment), default=0)


def run(target: str, programs: pathlib.Path, arguments: argparse.Namespace, seconds: float) -> dict:
    folder = arguments.folder
    corpus, findings, logs = folder / "corpus" / target, folder / "findings", folder / "logs"
    for path in (corpus, findings, logs):
        path.mkdir(parents=True, exist_ok=True)
    command = [*(["nice", "-n", str(arguments.nice)] if arguments.nice else []), str(programs / target), *COMMON]
    command += [f"-timeout={arguments.timeout}", f"-max_len={MAX_LEN.get(target, DEFAULT_MAX_LEN)}", f"-artifact_prefix={findings}/{target}-"]
    for dictionary in (folder / "seeds" / f"{target}.dict", HERE / f"{target}.dict"):
        if dictionary.exists():
            command.append(f"-dict={dictionary}")
            break
    inputs = [corpus, folder / "seeds" / target, HERE / "corpus" / target]
    command += [str(path) for path in inputs if path.exists()]
    end = time.monotonic() + seconds
    workers = [Worker(command, end, logs / f"{target}-{job}.log", findings) for job in range(arguments.jobs)]
    try:
        for worker in workers:
            worker.thread.join()
    except KeyboardInterrupt:
        for worker in workers:
            worker.stop()
        raise
    curves = [worker.curve for worker in workers]
    final = max((curve[-1][0] for curve in curves if curve), default=0.0)
    return {
        "target": target,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "seconds": round(seconds),
        "executions": sum(worker.executions for worker in workers),
        "cpu_seconds": round(sum(worker.cpu for worker in workers), 1),
        "edges_at_90": edges_at(curves, 0.9 * final),
        "edges": edges_at(curves, final),
        "findings": sorted({name for worker in workers for name in worker.found}),
    }


def table(rows: list[dict]) -> None:
    print(f"{'target':10} {'executions':>12} {'CPU s':>9} {'edges, 90 %':>12} {'edges, end':>11} {'findings':>9}")
    for row in rows:
        print(
            f"{row['target']:10} {row['executions']:12} {row['cpu_seconds']:9.0f} {row['edges_at_90']:12}"
            f" {row['edges']:11} {len(row['findings']):9}"
        )


def summary(record: pathlib.Path) -> list[dict]:
    """The sums over all recorded runs of each target. The edges at 90 % are those of the runs that end before 90 % of its CPU time."""
    runs: dict[str, list[dict]] = {}
    for line in record.read_text().splitlines() if record.exists() else []:
        row = json.loads(line)
        runs.setdefault(row["target"], []).append(row)
    rows = []
    for target, pieces in runs.items():
        total = sum(piece["cpu_seconds"] for piece in pieces)
        spent, at_90 = 0.0, 0
        for piece in pieces:
            start, spent = spent, spent + piece["cpu_seconds"]
            if spent <= 0.9 * total:
                at_90 = max(at_90, piece["edges"])
            elif start < 0.9 * total:
                at_90 = max(at_90, piece["edges_at_90"])
        rows.append(
            {
                "target": target,
                "executions": sum(piece["executions"] for piece in pieces),
                "cpu_seconds": total,
                "edges_at_90": at_90,
                "edges": max(piece["edges"] for piece in pieces),
                "findings": [name for piece in pieces for name in piece["findings"]],
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=float, default=60, help="seconds for all targets together (default: 60)")
    parser.add_argument("--targets", default="", help="names with spaces or commas between them (default: all)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes of a target (default: one a core)")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/fuzz", help="where everything is written")
    parser.add_argument("--programs", type=pathlib.Path, help="use the programs in this folder instead of building them")
    parser.add_argument("--timeout", type=int, default=10, help="seconds that an input may take (default: 10)")
    parser.add_argument("--nice", type=int, default=0, help="lower the priority of the processes")
    parser.add_argument("--summary", action="store_true", help="print the sums of all recorded runs, and run nothing")
    arguments = parser.parse_args()
    record = arguments.folder / "record.jsonl"
    if arguments.summary:
        table(summary(record))
        return
    known = all_targets()
    targets = re.findall(r"[^\s,]+", arguments.targets) or known
    if unknown := [target for target in targets if target not in known]:
        sys.exit(f"fuzz: there is no target {unknown[0]}; there are {', '.join(known)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    programs = arguments.programs or build(arguments.folder, targets)
    seeds.write(arguments.folder / "seeds")
    rows = []
    for target in targets:
        row = run(target, programs, arguments, arguments.time / len(targets))
        with record.open("a") as out:
            out.write(json.dumps(row) + "\n")
        rows.append(row)
    table(rows)
    total = summary(record)
    print(f"\nall runs together ({record}):")
    table(total)
    found = [name for row in rows for name in row["findings"]]
    for name in found:
        print(f"finding: {name}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
