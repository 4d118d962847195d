"""The examples in docstrings, on the page docs/python.md, and in the notebook run."""

import doctest
import inspect
import json
import os

import pytest

import frazil
from conftest import REPOSITORY


def run(text, name):
    """Runs the examples of a text, and returns their number."""
    failures = []
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=failures.append)
    assert not runner.failures, "".join(failures)
    return runner.tries


def python_blocks(page):
    blocks, inside = [], False
    for line in page.splitlines():
        if line.startswith("```"):
            inside = line == "```python"
        elif inside:
            blocks.append(line)
    return "\n".join(blocks)


def test_the_page():
    page = (REPOSITORY / "docs" / "python.md").read_text()
    assert run(python_blocks(page), "python.md") >= 25


def documented():
    """Everything public that has a docstring with examples, or should have one."""
    yield "frazil", frazil
    for name in frazil.__all__:
        thing = getattr(frazil, name)
        if inspect.isclass(thing) or callable(thing):
            yield name, thing


@pytest.mark.parametrize("name, thing", [pytest.param(*pair, id=pair[0]) for pair in documented()])
def test_docstrings_have_examples_that_run(name, thing):
    examples = run(inspect.getdoc(thing) or "", name)
    page = (REPOSITORY / "docs" / "python.md").read_text()
    assert examples or f"frazil.{name}" in page, "an example is missing"


def test_the_page_has_every_option_and_exception():
    page = (REPOSITORY / "docs" / "python.md").read_text()
    model = frazil.script("def f(x):\n    return x\n")
    for option in model.options:
        assert f"| `{option}` |" in page, option
    for name in frazil.errors.__all__:
        assert f"`{name}`" in page or f"`frazil.{name}`" in page, name


def test_the_notebook(monkeypatch):
    path = REPOSITORY / "crates" / "python" / "examples" / "classify.ipynb"
    cells = json.loads(path.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 5
    monkeypatch.chdir(REPOSITORY)
    names = {}
    for index, text in enumerate(code):
        exec(compile(text, f"{path.name}, cell {index}", "exec"), names)
    assert names["scores"].shape == (2, 10)
    assert os.getcwd() == str(REPOSITORY)
