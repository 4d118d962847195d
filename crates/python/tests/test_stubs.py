"""The type stubs agree with the package, and type checkers use them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import frazil
from frazil._frazil import has_native_engine

pytest.importorskip("mypy")

PROGRAM = '''
import frazil
import numpy


def run(path: str) -> numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.float32]]:
    model: frazil.ScriptModule = frazil.freeze(frazil.load(path, threads=2), preserved_attrs=["version"])
    names: list[str] = [name for name, _ in model.named_parameters()]
    keys = model.load_state_dict(model.state_dict(), strict=False)
    missing: list[str] = keys.missing_keys + names
    with model.register_forward_hook(lambda module, args, result: None) as handle:
        handle.remove()
    model.version = len(missing)
    result: numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.float32]] = model(numpy.ones(3, numpy.float32))
    try:
        model.eval().float().save("x.pt", {"a": b"b"})
    except frazil.RaisedError as error:
        print(error.places[0].upper())
    return result
'''

WRONG = {
    "frazil.load()": "call-arg",
    "frazil.freeze(frazil.load('x'), optimize_numerics='yes')": "arg-type",
    "frazil.load('x').train('yes')": "arg-type",
    "frazil.nonsense": "attr-defined",
}


def environment():
    folder = str(Path(frazil.__file__).parent.parent)
    return {**os.environ, "MYPYPATH": "" if "site-packages" in folder else folder}


def test_stubs_agree_with_the_package(tmp_path):
    allowed = tmp_path / "allowed.txt"
    # Builds without native code do not have these.
    methods = [f"frazil._frazil.ScriptModule.{name}" for name in ("emit", "profile", "save_library")]
    allowed.write_text("\n".join(methods + [r"frazil._frazil.Profile", r"frazil._frazil.__all__"]) + "\n" if not has_native_engine else "")
    command = [sys.executable, "-m", "mypy.stubtest", "frazil", "--allowlist", allowed, "--ignore-unused-allowlist"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment())
    assert ran.returncode == 0, ran.stdout + ran.stderr


def check(tmp_path, text):
    (tmp_path / "program.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "program.py"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment())


def test_a_program_is_checked(tmp_path):
    ran = check(tmp_path, PROGRAM)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_mistakes_are_found(tmp_path):
    ran = check(tmp_path, "import frazil\n" + "".join(line + "\n" for line in WRONG))
    for number, (line, code) in enumerate(WRONG.items(), 2):
        assert f"program.py:{number}: error:" in ran.stdout and code in ran.stdout, line + ran.stdout
