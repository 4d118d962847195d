#!/usr/bin/env python3
"""Splits PyTorch's pages on TorchScript into the units that tests/torch-pages has a row for, and writes or checks the list of them.

    python tests/generate/torch_pages.py PAGES           # writes tests/torch-pages/anchors.tsv
    python tests/generate/torch_pages.py PAGES --check   # fails when the list is not that of the pages
    python tests/generate/torch_pages.py PAGES --show    # prints the units with their text

PAGES is a folder with the pages as text; they are not in the repository. A unit is a sentence, an argument, a member of a class, an example, or a
statement of source. The list has no text: a line is PAGE, SECTION, KIND, LINE and a hash of the section and the text.
"""

import pathlib
import re
import sys

TARGET = pathlib.Path(__file__).resolve().parents[1] / "torch-pages/anchors.tsv"

# Of each page: lines of navigation, lines that are headings, and lines of examples, all inclusive.
LAYOUT = {
    "torch.jit.freeze.txt": {
        "furniture": [(1, 1), (69, 85)],
        "headings": [],
        "examples": [(28, 38), (42, 55)],
    },
    "torch-jit-_freeze.py.txt": {
        "furniture": [(1, 17), (24, 27), (252, 360)],
        "headings": [],
        "examples": [(60, 77), (82, 102), (172, 187), (223, 234)],
        "source": [(30, 32), (119, 144), (189, 203), (236, 250)],
    },
    "TorchScript.txt": {
        "furniture": [(1, 7), (10, 11), (592, 595)],
        "headings": [12, 55, 94, 96, 98, 104, 107, 109, 110, 111, 135, 171, 231, 232, 237, 316, 339, 398, 405, 406, 468, 469, 495, 519, 520, 525, 550, 575, 590],
        "examples": [
            (59, 65), (68, 78), (82, 93), (115, 125), (131, 131), (138, 148), (159, 168), (174, 184), (189, 212), (242, 249), (251, 282), (290, 301),
            (303, 315), (318, 322), (324, 331), (334, 338), (342, 353), (358, 365), (418, 430), (499, 502), (503, 507), (508, 513), (514, 518),
            (529, 536), (538, 549), (557, 564), (566, 574), (580, 589),
        ],
    },
    "ScriptModule.txt": {"furniture": [(1, 1)], "headings": [], "examples": []},
}

# A member of a class: `- name(arguments)¶`.
MEMBER = re.compile(r"- ((?:property |class )?[\w.]+(?:\([^¶\n]*\))?)(?:\[source\])?¶")
# Where a unit begins inside of a text.
BREAK = re.compile(
    r"\n\n|\s+(?=(?:mod|preserved_attrs|optimize_numerics) \([^)]*\):)|(?<=[.:?!)”\]])\s*(?=Note\b|Warning\b|Example\b|Args:|Returns:|See Inspecting)|\s*(?=- (?:Parameters|Returns|Return type|Yields|Raises)\b)|"
    r"(?<=[.?!:”)`])\s+(?=[A-Z`@“(\[])|(?<=\.)(?=@)|(?<=\.)\s+(?=(?:torch|forward|aten)\b)|\s+(?=[•] )|\.?\s+(?=- (?:On|To|Most|Python|Invoking|Constants|Classes|Tracing|As|The)\b)|"
    r"\s+(?=- (?:Dropout|Pretranspose|Concat|Conv)\b)"
)
# An argument: `name (type) – what it is`.
ARGUMENT = re.compile(r"(?<=\s)(?=\w+ \([^()]*(?:\([^()]*\))?[^()]*\) – )")

# What only says what follows.
LABEL = re.compile(
    r'^r?"""|"""$|^- (?:Parameters|Return type)\b|^(?:Parameters$|Return type$|Args:|Returns:?$|Notes?:?$|Warning$|Examples?:?$|The$|- The$)|^\.\. testcode::$|'
    r"^Example \(.*\):*$|^For example:$|^Return type Examples?:$|(?:Old|New) API:$|^(?:Q:|T|RuntimeError:|optimize_numerics \(bool\):|None|Freezing\.)$|^Default(?:s to|:)(?: ?True| ?False|:)?\.?$|^Default ?: ?\w+ ?\.?$"
)


def fnv(text: str) -> str:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def sentences(text: str):
    for piece in BREAK.split(text):
        for unit in ARGUMENT.split(piece):
            unit = LABEL.sub("", LABEL.sub("", " ".join(unit.split())).strip()).strip()
            if re.search(r"\w\w", unit):
                yield unit


def kind(unit: str) -> str:
    if unit.startswith("- Return"):
        return "result"
    if unit.startswith("- Yields"):
        return "result"
    if unit.startswith(("- Raises", "RuntimeError")):
        return "error"
    if re.match(r"(- Parameters )?[•*]? ?\w+ \(.*\)( –|:) ", unit):
        return "argument"
    return "sentence"


def units(page: str, text: str):
    """The units of a page: section, kind, line, text."""
    layout = LAYOUT[page]
    lines = text.split("\n")
    role = ["prose"] * (len(lines) + 1)
    for name in ("furniture", "examples", "source"):
        for first, last in layout.get(name, []):
            for line in range(first, last + 1):
                role[line] = name
    for line in layout["headings"]:
        role[line] = "heading"
    section, begin, pending = page.split(".txt")[0], 1, []

    def flush():
        if pending:
            joined = "\n".join(pending)
            at = begin
            for unit in sentences(joined):
                yield section, kind(unit), at, unit
            pending.clear()

    number = 1
    while number <= len(lines):
        line = lines[number - 1]
        if page == "ScriptModule.txt" and line.startswith(">>>"):
            yield from flush()
            yield section, "example", number, line
        elif role[number] == "prose":
            member = MEMBER.search(line) if page == "ScriptModule.txt" else None
            if member:
                if line[: member.start()].strip():
                    pending.append(line[: member.start()])
                yield from flush()
                section = member[1].removeprefix("property ").removeprefix("class ").split("(")[0]
                yield section, "member", number, member[1]
                line = line[member.end() :]
            table = page == "TorchScript.txt" and 13 <= number <= 54
            if table and number % 2 == 1:
                yield from flush()
                section = line.removesuffix("|").strip()
            if not pending:
                begin = number
            if not (table and number % 2 == 1):
                pending.append(line)
            if table and number % 2 == 0:
                yield from flush()
                section = "Creating TorchScript Code"
        else:
            yield from flush()
            if role[number] == "heading":
                section = line
            elif role[number] != "furniture":
                first = number
                while number < len(lines) and role[number + 1] == role[number] and (role[number] == "examples" and (first, number) not in layout["examples"] or role[number] == "source" and lines[number].strip()):
                    number += 1
                block = "\n".join(lines[first - 1 : number]).strip()
                if block:
                    yield section, "example" if role[number] == "examples" else "source", first, block
        number += 1
    yield from flush()


def listing(folder: pathlib.Path):
    seen = set()
    for page in LAYOUT:
        for section, what, line, text in units(page, (folder / page).read_text()):
            digest = fnv(f"{section}\n{text}")
            if (page, digest) not in seen:
                seen.add((page, digest))
                yield page, section, what, line, digest, text


def main() -> None:
    folder, *options = sys.argv[1:]
    found = list(listing(pathlib.Path(folder)))
    if "--show" in options:
        for page, section, what, line, digest, text in found:
            print(f"{page}\t{section}\t{what}\t{line}\t{digest}\t{text[:160]!r}")
        return
    written = "".join(f"{page}\t{section}\t{what}\t{line}\t{digest}\n" for page, section, what, line, digest, _ in found)
    if "--check" in options:
        if TARGET.read_text() != written:
            there = set(TARGET.read_text().splitlines())
            new = [line for line in written.splitlines() if line not in there]
            sys.exit("tests/torch-pages/anchors.tsv is not the list of these pages:\n" + "\n".join(new[:20]))
        return
    TARGET.write_text(written)


if __name__ == "__main__":
    main()
