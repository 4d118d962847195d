"""Graphs, and passes written in Python."""

import numpy
import pytest

import frazil

SOURCE = """
def f(x, y):
    z = torch.relu(x + y)
    if bool(z.sum() > 3):
        z = z * 2
    return z
"""
X = numpy.ones(2, dtype="float32")


@pytest.fixture
def model():
    return frazil.run_passes(frazil.script(SOURCE), "inline")


@pytest.fixture
def graph(model):
    return model.f.graph


def test_walking(graph):
    kinds = [node.kind() for node in graph.all_nodes()]
    assert kinds.count("aten::relu") == 1 and "aten::mul" in kinds
    assert "aten::mul" not in [node.kind() for node in graph.nodes()]
    branch = graph.findNode("prim::If")
    inside = [node.kind() for block in branch.blocks() for node in block.nodes()]
    assert inside == ["aten::mul"]
    mul = graph.findNode("aten::mul")
    assert mul.inputsAt(0).node() == graph.findNode("aten::relu")
    assert branch.blocks()[0].owningNode() == branch
    assert graph.findNode("aten::mul", recurse=False) is None
    assert [value.type() for value in graph.inputs()[1:]] == ["Tensor", "Tensor"]
    relu = graph.findNode("aten::relu")
    assert relu.prev().next() == relu and hash(relu.prev().next()) == hash(relu)
    assert relu.schema() == "aten::relu(Tensor self) -> Tensor"
    assert relu.sourceRange().endswith(":3:8")
    assert {use.user.kind() for use in relu.output().uses()} == {"aten::sum", "aten::mul", "prim::If"} or relu.output().uses()


def test_constants(graph):
    two = next(n for n in graph.findAllNodes("prim::Constant") if n.output().toIValue() == 2)
    assert two.attributeNames() == ["value"] and two.attribute("value") == 2
    added = graph.insertConstant([1, 2])
    assert added.toIValue() == [1, 2] and added.type() == "int[]"
    assert graph.inputs()[1].toIValue() is None
    with pytest.raises(KeyError):
        two.attribute("nothing")


def to_tanh(graph):
    for node in graph.findAllNodes("aten::relu"):
        new = graph.create("aten::tanh", [node.input()]).insertBefore(node)
        node.output().replaceAllUsesWith(new.output())
        node.destroy()


def test_a_pass_in_a_pipeline(model):
    new = frazil.run_passes(model, ["dce", to_tanh, "cse,dce"])
    numpy.testing.assert_allclose(new.f(X, X), numpy.tanh(X + X), rtol=1e-6)
    numpy.testing.assert_allclose(model.f(X, X), 2 * (X + X))


def test_edits_that_leave_a_graph_invalid(model):
    def moves_a_use_before_its_definition(graph):
        graph.findNode("aten::mul") and graph.findNode("aten::mul").moveBefore(next(iter(graph.nodes())))

    def removes_an_input(graph):
        graph.findNode("aten::relu") and graph.findNode("aten::relu").removeInput(0)

    def sets_a_wrong_type(graph):
        graph.findNode("aten::relu") and graph.findNode("aten::relu").output().setType("int[]")

    for edit in (moves_a_use_before_its_definition, removes_an_input, sets_a_wrong_type):
        with pytest.raises(frazil.InputError, match=edit.__name__):
            frazil.run_passes(model, [edit])


def test_an_exception_of_a_pass_is_passed_on(model):
    def fails(graph):
        raise LookupError("not here")

    with pytest.raises(LookupError, match="not here"):
        frazil.run_passes(model, [fails])


def test_misuse_is_an_exception(graph, model):
    relu, branch = graph.findNode("aten::relu"), graph.findNode("prim::If")
    other = model.f.graph
    for act in (
        relu.destroy,
        lambda: relu.inputsAt(1),
        lambda: relu.replaceInput(5, graph.inputs()[0]),
        lambda: relu.replaceInput(0, other.inputs()[0]),
        lambda: relu.moveBefore(relu),
        lambda: relu.insertBefore(branch),
        lambda: branch.moveAfter(graph.findNode("aten::mul")),
        lambda: relu.output().uses() and graph.outputs()[0].uses()[0].user.destroy(),
        lambda: graph.create("relu"),
        lambda: graph.create("prim::Return"),
        lambda: graph.inputs()[1].setType("Tensor\n"),
        lambda: graph.inputs()[1].setType("nonsense[["),
        lambda: graph.inputs()[1].setDebugName("not a name"),
        lambda: graph.run_passes("no-such-pass"),
        lambda: graph.rewrite("graph(", "graph("),
    ):
        with pytest.raises((ValueError, IndexError, frazil.Error)):
            act()
    graph.lint()


def test_handles_outlive_what_they_name(graph):
    mul, relu = graph.findNode("aten::mul"), graph.findNode("aten::relu")
    mul.output().replaceAllUsesWith(relu.output())
    inside = mul.output()
    mul.destroy()
    for act in (mul.kind, inside.type, mul.destroy, lambda: relu.addInput(inside)):
        with pytest.raises(ValueError, match="erased"):
            act()
    graph.run_passes("dce")
    with pytest.raises(ValueError, match="erased"):
        relu.kind()


def test_rewriting_by_patterns(graph):
    pattern = "graph(%a):\n  %r = aten::relu(%a)\n  return (%r)\n"
    assert graph.rewrite(pattern, pattern.replace("relu", "sigmoid")) == 1
    assert graph.findNode("aten::sigmoid") and not graph.findNode("aten::relu")


def test_alias_analysis(model):
    graph = frazil.run_passes(frazil.script("def g(x):\n    return x.t(), torch.relu(x)\n"), "inline").g.graph
    x, transposed, relu = graph.inputs()[1], graph.findNode("aten::t").output(), graph.findNode("aten::relu").output()
    assert graph.may_alias(x, transposed) and not graph.may_alias(x, relu)
    assert "ALIAS DB" in graph.dump_alias_db()


def test_pictures(graph):
    assert graph._repr_html_().startswith("<pre>") and "<b>aten::relu</b>" in graph._repr_html_()
    assert graph.dot().startswith("digraph")
    svg = graph._repr_svg_()
    assert svg is None or "<svg" in svg
    assert "aten::relu" in str(graph) and "aten::relu" in repr(graph.findNode("aten::relu"))


def test_copies_are_apart(graph):
    copy = graph.copy()
    to_tanh(copy)
    assert graph.findNode("aten::relu") and not copy.findNode("aten::relu")
