#!/usr/bin/env python3
"""Runs PyTorch's own tests of its passes with the passes of jit-opt in the place of PyTorch's.

    python torch_pass_tests.py --torch-tests=DIR --jit-opt=FILE [--list] [FILTER...]

DIR is the `test` folder of a PyTorch source tree; the Python that runs this needs torch, expecttest and pytest. Each
`torch._C._jit_pass_NAME(graph)` prints the graph, runs `jit-opt --pass-pipeline=NAME`, and puts what comes out into the graph.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import unittest

import torch

# Passes that tests call; `erase_shape_information` is left out, since tracing itself calls it.
PASSES = """
peephole peephole_list_idioms peephole_dict_idioms peephole_alias_sensitive constant_propagation constant_pooling cse dce loop_unrolling
constant_loop_unrolling lower_all_tuples lower_simple_tuples remove_mutation remove_list_mutation functional_to_inplace_activation
inplace_to_functional_activation refine_tuple_types refine_integer_values remove_exceptions remove_expands decompose_ops fuse_linear
fuse_addmm fuse_add_relu batch_mm constant_propagation_immutable_types inline_fork_wait normalize_ops
""".split()
OPTIONS = {"refine_list_len": "refine-list-len", "disable_shape_peepholes": "disable-shape-peepholes"}


def options_of(args, kwargs):
    """The options of a pipeline entry for what PyTorch's function was given."""
    names = dict(kwargs)
    if args:
        names.setdefault("disable_shape_peepholes", args[0])
    given = [f"{OPTIONS[k]}={'true' if v else 'false'}" for k, v in names.items() if k in OPTIONS]
    return "{" + " ".join(given) + "}" if given else ""


class Replaced:
    """One pass of PyTorch's, done by jit-opt."""

    calls = 0

    def __init__(self, jit_opt, name):
        self.jit_opt, self.name = jit_opt, name

    def __call__(self, graph, *args, **kwargs):
        if isinstance(graph, str):
            return self.rewrite(graph, *args)
        if not isinstance(graph, torch._C.Graph):
            graph = graph.graph
        self.apply(self.name.replace("_", "-") + options_of(args, kwargs), graph)

    def rewrite(self, pattern, replacement, graph):
        """The pattern rewriter."""
        with tempfile.NamedTemporaryFile("w", suffix=".rules", delete=False) as file:
            file.write(f"{pattern}\n=>\n{replacement}\n")
        self.apply(f"rewrite-patterns{{file={file.name}}}", graph)
        os.unlink(file.name)

    def apply(self, pipeline, graph):
        """Runs `pipeline` on `graph`, in place."""
        Replaced.calls += 1
        with tempfile.NamedTemporaryFile("w", suffix=".ir", delete=False) as file:
            file.write(str(graph))
        run = subprocess.run(
            [self.jit_opt, file.name, f"--pass-pipeline={pipeline}", "--verify-each"], capture_output=True, text=True
        )
        os.unlink(file.name)
        if run.returncode:
            raise RuntimeError(f"jit-opt: {run.stderr}\n{graph}")
        before = str(graph)
        if normal(before) != normal(run.stdout):
            put(graph, run.stdout)
        if os.environ.get("SHOW"):
            print(f"--- {pipeline}\n{before}\n+++\n{run.stdout}", file=sys.stderr)


def normal(text):
    """`text` without the distance of comments."""
    return [re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines()]


TUPLE = re.compile(r"^( *)(%\S+) : (\(.*\)) = prim::Constant\[value=\((.*)\)\]\(\)")
CLASS = re.compile(r"__torch__\.[\w.]+(?:\.___torch_mangle_\d+\.\w+)?")


def parseable(text):
    """`text` in the part of the text form that PyTorch's parser knows: it reads less than PyTorch prints."""
    lines = []
    # Tensors are put in afterwards.
    text = re.sub(r"prim::Constant\[value=[^\]\[\"]*\[ [\w.]+\{[\d,]*\} \]\]\(\)", "prim::Constant[value=<Tensor>]()", text)
    for line in text.splitlines():
        # A node without outputs.
        line = re.sub(r"^( *) = ", r"\1", line)
        line = re.sub(r"Tensor\((\*(?:, \*)*)\)", "Tensor", line)
        line = CLASS.sub("Tensor", line)
        line = re.sub(r", scope: \S+", "", line)
        tuples = TUPLE.match(line)
        if tuples:
            # A constant tuple: of constants.
            indent, name, types, values = tuples.groups()
            parts = []
            for i, (ty, value) in enumerate(zip(types[1:-1].split(", "), values.split(", "))):
                value = {"True": "1", "False": "0"}.get(value, value)
                parts.append(f"{name}_{i}")
                attribute = "" if value == "None" else f"[value={value}]"
                lines.append(f"{indent}{parts[-1]} : {ty} = prim::Constant{attribute}()")
            line = f"{indent}{name} : {types} = prim::TupleConstruct({', '.join(parts)})"
        lines.append(line)
    return "\n".join(lines)


def all_nodes(graph):
    """All nodes, at any depth."""
    work = list(graph.nodes())
    for node in work:
        yield node
        for block in node.blocks():
            work.extend(block.nodes())


def all_values(graph):
    """Inputs and outputs of all nodes, at any depth."""
    yield from graph.inputs()
    for node in all_nodes(graph):
        yield from node.outputs()
        for block in node.blocks():
            yield from block.inputs()


def put(graph, text):
    """Makes `graph` what `text` says. Its inputs stay; their types change."""
    # Types that the parser does not know, by the names of values.
    unknown = {v.debugName(): v.type() for v in all_values(graph) if "__torch__" in str(v.type()) or "*" in str(v.type())}
    tensors = {}
    for node in all_nodes(graph):
        if node.kind() == "prim::Constant" and "value" in node.attributeNames() and node.kindOf("value") == "t":
            tensors[node.output().debugName()] = node.t("value")
    new = torch._C.parse_ir(parseable(text), parse_tensor_constants=True)
    for value in all_values(new):
        if value.debugName() in unknown:
            value.setType(unknown[value.debugName()])
    for node in all_nodes(new):
        if node.kind() == "prim::Constant" and node.output().debugName() in tensors:
            node.t_("value", tensors[node.output().debugName()])
    olds, news = list(graph.inputs()), list(new.inputs())
    while list(graph.outputs()):
        graph.eraseOutput(0)
    for node in reversed(list(graph.nodes())):
        node.destroy()
    if len(olds) != len(news):
        for _ in olds:
            graph.eraseInput(0)
        olds = [graph.addInput() for _ in news]
    values = {}
    for old, value in zip(olds, news):
        values[value.unique()] = old
        old.setType(value.type())
    for node in new.nodes():
        clone = graph.appendNode(graph.createClone(node, lambda v: values[v.unique()]))
        for a, b in zip(node.outputs(), clone.outputs()):
            values[a.unique()] = b
            if not a.debugName().isdigit() and "_" not in a.debugName():
                b.setDebugName(a.debugName())
    for value in new.outputs():
        graph.registerOutput(values[value.unique()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-tests", required=True)
    parser.add_argument("--jit-opt", required=True)
    parser.add_argument("--list", action="store_true", help="say of each test how it went")
    parser.add_argument("filters", nargs="*", help="parts of test names")
    options = parser.parse_args()
    sys.path.insert(0, options.torch_tests)
    os.environ.setdefault("PYTORCH_PRINT_REPRO_ON_FAILURE", "0")
    from torch.testing._internal import common_utils

    # Tests of an older PyTorch ask for names that this one has no more: lists of tests, and switches that are off.
    from torch.testing._internal import common_nn, jit_metaprogramming_utils

    def missing(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return []

    for module in (common_utils, common_nn, jit_metaprogramming_utils, torch.jit.frontend):
        module.__getattr__ = missing
    common_utils.GRAPH_EXECUTOR = common_utils.ProfilingMode.LEGACY
    for name in PASSES:
        if hasattr(torch._C, f"_jit_pass_{name}"):
            setattr(torch._C, f"_jit_pass_{name}", Replaced(options.jit_opt, name))
    name = "_jit_pass_custom_pattern_based_rewrite_graph"
    setattr(torch._C, name, Replaced(options.jit_opt, "rewrite_patterns"))
    suites = []
    for module in MODULES:
        try:
            __import__(module)
            suites.append(unittest.defaultTestLoader.loadTestsFromName(module))
        except Exception as error:  # a test file that this PyTorch cannot import
            print(f"cannot load {module}: {error}")
    results = {}
    for test in flatten(suites):
        name = test.id()
        if options.filters and not any(f in name for f in options.filters):
            continue
        Replaced.calls = 0
        result = unittest.TestResult()
        test.run(result)
        bad = result.errors + result.failures
        if not Replaced.calls and not options.filters:
            continue
        if result.skipped:
            continue
        results[name] = bad[0][1] if bad else None
        if options.list or options.filters:
            print(("FAIL " if bad else "ok   ") + name, flush=True)
            if bad:
                print("    " + "\n    ".join(bad[0][1].strip().splitlines()[-int(os.environ.get('LINES_SHOWN', 6)):]))
    passed = sum(1 for r in results.values() if r is None)
    print(f"{passed} of {len(results)} tests pass")


MODULES = [
    "jit.test_peephole",
    "jit.test_remove_mutation",
    "jit.test_convert_activation",
    "jit.test_batch_mm",
    "jit.test_dce",
    "jit.test_op_decompositions",
    "jit.test_graph_rewrite_passes",
    "jit.test_alias_analysis",
    "jit.test_freezing",
    "jit.test_list_dict",
    "jit.test_async",
    "jit.test_isinstance",
    "jit.test_python_ir",
    "test_jit",
]


def flatten(suites):
    for suite in suites:
        if isinstance(suite, unittest.TestCase):
            yield suite
        else:
            yield from flatten(suite)


if __name__ == "__main__":
    main()
