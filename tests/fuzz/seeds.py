#!/usr/bin/env python3
"""Writes the inputs that fuzzing starts from: python tests/fuzz/seeds.py FOLDER

They come from the fixtures, the lit tests and the examples of the documents; the archive target gets entries of the fixtures' archives in
its own form too, which mutates better than zip files do.
"""

import pathlib
import re
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    for target in ("archive", "source", "text"):
        (folder / target).mkdir(parents=True, exist_ok=True)
    archives = sorted(ROOT.glob("tests/fixtures/**/*.pt"))
    for number, path in enumerate(archives):
        with zipfile.ZipFile(path) as archive:
            parts = {}
            for name in archive.namelist():
                inner = name.split("/", 1)[-1]
                parts[inner] = archive.read(name)
                if inner.startswith("code/") and inner.endswith(".py"):
                    (folder / "source" / f"{number}-{inner.replace('/', '_')}").write_bytes(parts[inner])
        whole = b"".join(b"\n==== " + name.encode() + b"\n" + part for name, part in parts.items())
        if path.stat().st_size < 1 << 16:
            (folder / "archive" / f"{number}.pt").write_bytes(path.read_bytes())
        if len(whole) < 1 << 16:
            (folder / "archive" / f"{number}.parts").write_bytes(whole)
        small = {name: part for name, part in parts.items() if len(part) < 1 << 13 and not name.startswith("data/")}
        short = b"".join(b"\n==== " + name.encode() + b"\n" + part for name, part in small.items())
        (folder / "archive" / f"{number}.small").write_bytes(short)
    for path in [*ROOT.glob("lit-tests/**/*.ir"), *ROOT.glob("crates/syntax/tests/**/*.ir")]:
        (folder / "text" / path.name).write_bytes(path.read_bytes())
    page = (ROOT / "docs/ir-text.md").read_text()
    for number, example in enumerate(re.findall(r"^```ir.*?\n(.*?)^```", page, re.M | re.S)):
        (folder / "text" / f"page{number}.ir").write_text(example)
    for path in ROOT.glob("lit-tests/**/*.py"):
        (folder / "source" / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
