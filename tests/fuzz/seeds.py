#!/usr/bin/env python3
"""Writes the inputs that fuzzing starts from, and dictionaries: python tests/fuzz/seeds.py FOLDER

Inputs come from the fixtures, the lit tests and the examples of the documents, in the form that each target reads; src says which. Names of
operators, passes and types make the dictionaries. The same repository gives the same files.
"""

import json
import pathlib
import random
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGETS = ("archive", "capi", "files", "interp", "package", "pipelines", "roundtrip", "source", "tensors", "text")
# Larger inputs mutate badly, and take long.
LARGE = 1 << 16
SMALL = 1 << 13
# Inputs of the target `capi`, and their lengths: what they mean is only known to it.
SEQUENCES = 300
LENGTHS = (30, 100, 300)

KEYWORDS = """
def class return if elif else for while in is not and or None True False self lambda with try except raise assert break continue pass import del global
Tensor int float bool str complex List[int] Dict[str,Tensor] Optional[Tensor] Tuple[int,float] Union[int,str] Any Future NamedTuple Enum
torch.jit.script torch.jit.export torch.jit.ignore torch.jit.unused torch.jit.Final torch.jit.annotate torch.jit.fork torch.jit.wait
nn.Module super().__init__() nn.Parameter register_buffer register_parameter isinstance range enumerate zip len print getattr hasattr
graph block0 prim::Constant prim::If prim::Loop prim::ListConstruct prim::TupleConstruct prim::TupleUnpack prim::DictConstruct prim::GetAttr prim::SetAttr
prim::CallMethod prim::CallFunction prim::CallFunctional prim::fork prim::Closure prim::RaiseException prim::unchecked_cast prim::Uninitialized
""".split()
TENSOR_WORDS = """
symbols func check return constant nest reshape view gather call result for reduce combine epilogue else from at raise from_end in elided
float16 bfloat16 float32 float64 int8 uint8 int16 int32 int64 bool complex64 const index cast fma select acc floordiv ceildiv min max
add sub mul div div_floor remainder pow maximum and or xor shl eq lt neg abs not exp sqrt isnan d0 d1 %0 %1 x0 v0 y0 w0 inf nan none true device complex
""".split()


def archives() -> dict[str, bytes]:
    """Archives as they are, as their entries, and without their tensors."""
    found = {}
    for number, path in enumerate(sorted(ROOT.glob("tests/fixtures/**/*.pt"))):
        if not zipfile.is_zipfile(path):
            # Of a format that is refused.
            found[f"{number}.pt"] = path.read_bytes()[:LARGE]
            continue
        with zipfile.ZipFile(path) as archive:
            parts = {name.split("/", 1)[-1]: archive.read(name) for name in archive.namelist()}
        if path.stat().st_size < LARGE:
            found[f"{number}.pt"] = path.read_bytes()
        whole = joined(parts)
        if len(whole) < LARGE:
            found[f"{number}.parts"] = whole
        found[f"{number}.small"] = joined(
            {name: part for name, part in parts.items() if len(part) < SMALL and not name.startswith("data/")}
        )
    return found


def joined(parts: dict[str, bytes]) -> bytes:
    return b"".join(b"\n==== " + name.encode() + b"\n" + part for name, part in parts.items())


def sources() -> dict[str, bytes]:
    found = {}
    for pattern in ("lit-tests/**/*.py", "tests/fixtures/**/*.py", "examples/**/*.py"):
        for path in sorted(ROOT.glob(pattern)):
            found[f"{path.parent.name}-{path.name}"] = path.read_bytes()
    for number, path in enumerate(sorted(ROOT.glob("tests/fixtures/**/*.pt"))):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if "/code/" in name and name.endswith(".py"):
                        found[f"{number}-{name.replace('/', '_')}"] = archive.read(name)
    return found


def texts() -> dict[str, bytes]:
    found = {}
    for path in [*sorted(ROOT.glob("lit-tests/**/*.ir")), *sorted(ROOT.glob("crates/syntax/tests/**/*.ir"))]:
        text = path.read_text()
        found[path.name] = text.encode()
        # The files that lit's split-file makes of it.
        for name, part in re.findall(r"^(?:#|//)--- (\S+)\n(.*?)(?=^(?:#|//)--- |\Z)", text, re.M | re.S):
            found[f"{path.stem}-{name}"] = part.encode()
    page = (ROOT / "docs/ir-text.md").read_text()
    for number, example in enumerate(re.findall(r"^```ir.*?\n(.*?)^```", page, re.M | re.S)):
        found[f"page{number}.ir"] = example.encode()
    return found


def pipelines(programs: dict[str, bytes]) -> dict[str, bytes]:
    """The programs of lit tests with their pipelines, and all programs with others."""
    found = {}
    for name, text in programs.items():
        for number, pipeline in enumerate(re.findall(rb"--pass-pipeline=['\"]?([^'\"\n]*?)['\"]? ", text)):
            found[f"{name}-{number}"] = b"# pipeline: " + pipeline + b"\n" + text
        found[name] = chosen(name, 12) + b"\n" + text
    return found


def chosen(name: str, count: int) -> bytes:
    """Bytes for choices, the same for the same name; none ends a line."""
    return random.Random(name).randbytes(count).replace(b"\n", b"\0")


def files() -> dict[str, bytes]:
    found = {}
    for path in sorted(ROOT.glob("tests/fixtures/**/*.safetensors")):
        if path.stat().st_size < SMALL:
            found[f"{path.parent.name}-{path.name}"] = b"s" + path.read_bytes()
    header = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]}}\n'
    found["header.safetensors"] = b"s" + header + bytes(16)
    for path in sorted(ROOT.glob("tests/fixtures/**/*.json")):
        if path.stat().st_size < SMALL:
            found[f"{path.parent.name}-{path.name}"] = b"j" + path.read_bytes()
    values = (
        '{"list":[{"int":3},{"float":"nan"},{"complex":[1,2]},{"str":"x"},{"none":true}]}',
        '{"dict":[[{"str":"a"},{"tensor":"a"}]]}',
        '{"tensor":{"dtype":"float32","shape":[2],"data":[1,2]}}',
        '{"raises":"ValueError: x","user":true}',
    )
    for number, value in enumerate(values):
        found[f"value{number}"] = b"j" + value.encode() + b"\n====\n" + header + bytes(16)
    for name, text in texts().items():
        if text.lstrip().startswith(b"frazil module"):
            found[name] = b"i" + text + b"\n====\n" + header + bytes(16)
    for path in sorted(ROOT.glob("tests/fixtures/checkpoints/*.pt")):
        if path.stat().st_size < LARGE and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                parts = {name.split("/", 1)[-1]: archive.read(name) for name in archive.namelist()}
            found[f"{path.name}.parts"] = b"c" + joined(parts)
            found[path.name] = b"c" + path.read_bytes()
    found["sealed"] = b"k" + b"KIND"
    for path in sorted(ROOT.glob("tests/fixtures/**/*.npy")):
        if path.stat().st_size < SMALL:
            found[f"{path.parent.name}-{path.name}"] = b"n" + path.read_bytes()
    for number, descr in enumerate(("<f4", ">f8", "|b1", "<c16", "<f2")):
        array = f"{{'descr': '{descr}', 'fortran_order': {number % 2 == 1}, 'shape': (2, 3), }}".ljust(117).encode() + b"\n"
        found[f"array{number}"] = b"n\x93NUMPY\x01\x00" + len(array).to_bytes(2, "little") + array + bytes(6 * int(descr[2:]))
    literals = (
        "[1, -2, 3.5, 1e-3, inf, 1+2j]",
        "{'a': zeros:2x3:int64, \"b\": (None, True, ones:2)}",
        "tensor([[1, 2], [3, 4]], dtype=float32)",
        "zeros:",
    )
    found.update({f"literal{number}": b"l" + text.encode() for number, text in enumerate(literals)})
    return found


def packages() -> dict[str, bytes]:
    """The compiled method in `corpus/package` with other sections and sizes, and tuning files."""
    header, rest = (HERE / "corpus/package/two-kernels").read_bytes().split(b"\n", 1)
    found = {}
    # Sizes of constants and of prepared weights: none, a page, such as are mapped.
    for constants, prepared in (0, 0), (256, 64), (4096, 100), ((1 << 20) + 1, 0), (300, 1 << 20):
        changed = json.loads(header)
        changed["constants"] = constants
        changed["contents"]["preparation"][1] = prepared
        found[f"{constants}-{prepared}"] = json.dumps(changed, separators=(",", ":")).encode() + b"\n" + rest
    changed = json.loads(header)
    contents = changed["contents"]
    contents["kernels"], contents["calls"], contents["infos"] = [], [], []
    contents["checks"] = ["ValueError: no"]
    contents["workspace_bytes"] = 4096
    changed["objects"] = None
    found["empty"] = json.dumps(changed, separators=(",", ":")).encode() + b"\n\n====\n"
    found["raw"] = b"rFRAZILP4" + bytes(40)
    conv = {"columns": 4, "vectors": 2, "channel_blocks": 4, "rows": 8}
    gemm = {"rows": 6, "vectors": 2, "k_block": 256, "m_task": 48}
    for number, kernels in enumerate(({}, {"k 1 Gemm": None}, {"k": {"Gemm": gemm}}, {"k": {"Conv": [conv, None]}})):
        found[f"tune{number}"] = b"t" + json.dumps({"kernels": kernels}).encode()
    return found


def tensor_texts() -> dict[str, bytes]:
    """Texts of the tensor IR: lit tests, and the examples of passes and of tests in Rust files."""
    found = {path.name: path.read_bytes() for path in sorted(ROOT.glob("lit-tests/**/*.tensors"))}
    for path in sorted(ROOT.glob("lit-tests/**/*.test")):
        parts = re.findall(r"^#--- (\S+\.tensors)\n(.*?)(?=^#---|\Z)", path.read_text(), re.M | re.S)
        found |= {f"{path.stem}-{name}": text.encode() for name, text in parts}
    for path in sorted(ROOT.glob("crates/tensor-ir/**/*.rs")):
        texts = re.findall(r"^(?:.*\")?((?:symbols .*\n)?func @.*?^}$)", path.read_text(), re.M | re.S)
        found |= {f"{path.stem}-{number}": text.encode() for number, text in enumerate(texts)}
    return found


def dictionary() -> str:
    words = set(KEYWORDS)
    for path in sorted(ROOT.glob("dialects/*/src/**/*.txt")):
        words.update(re.findall(r"^(\w+::\w+)[.(]", path.read_text(), re.M))
    names = {word.split("::")[1] for word in words if "::" in word}
    words.update(f"torch.{name}(" for name in sorted(names)[::4])
    words.update(path.stem.replace("_", "-") for path in (ROOT / "passes/src").glob("*.rs"))
    return "".join(f'"{word}"\n' for word in sorted(words))


def write(folder: pathlib.Path) -> None:
    programs = texts() | {name: text for name, text in sources().items() if len(text) < SMALL}
    loaded = archives()
    seeds = {
        "archive": loaded,
        "capi": {f"{n}": random.Random(n).randbytes(LENGTHS[n % len(LENGTHS)]) for n in range(SEQUENCES)},
        "files": files(),
        "package": packages(),
        "interp": {name: chosen(name, 40) + b"\n" + text for name, text in programs.items()},
        "pipelines": pipelines(programs),
        "roundtrip": loaded,
        "source": sources(),
        "tensors": tensor_texts(),
        "text": texts(),
    }
    for target in TARGETS:
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, text in seeds[target].items():
            (folder / target / name).write_bytes(text)
    for target in ("interp", "pipelines", "source", "text"):
        (folder / f"{target}.dict").write_text(dictionary())
    (folder / "tensors.dict").write_text("".join(f'"{word}"\n' for word in TENSOR_WORDS))


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
