#!/usr/bin/env python3
"""PyTorch's own freezing and pass tests, with jit-opt in the place of PyTorch's passes.

    python tools/check/torch_pass_tests.py PYTORCH [--jit-opt FILE] [--passes NAMES] [--only] [-k EXPRESSION] [freezing | passes | FILE...]

PYTORCH is a checkout of PyTorch; its `test/jit/test_freezing.py` (`freezing`), those files that test other passes (`passes`), or the files named,
run with the `torch` and `pytest` of the Python that runs this: once with these functions going through archives and jit-opt, and then, those
tests that called any of them, as they are:

    torch.jit.freeze                    jit-opt IN.pt -o OUT.pt --freeze --preserve=... --no-optimize-numerics
    torch.jit.optimize_for_inference    jit-opt IN.pt -o OUT.pt --optimize-for-inference --preserve=...
    torch._C._freeze_module             --pass-pipeline=freeze{preserve=... freeze-interfaces=... preserve-parameters=...}
    torch.jit.run_frozen_optimizations  --pass-pipeline=optimize-frozen-graph{optimize-numerics=...}
    torch._C._jit_pass_NAME             --pass-pipeline=NAME, for the passes below (or those of --passes)

What jit-opt wrote is loaded by PyTorch, and the test goes on with it. A pass over a graph is given the module that the graph belongs to,
and the graph's nodes are replaced by those of the result, so that what the test then asserts of the graph it asserts of ours. What jit-opt
refuses is a RuntimeError with its words.

Printed are each test that passes without Frazil and not with it, with the reason, and the numbers; exit status 1 if there are any.
`--only` leaves out the run without Frazil.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import torch_jit_tests as shared

ROOT = pathlib.Path(__file__).resolve().parents[2]

# How a run tells this file, loaded as a plugin of pytest, which passes to replace.
PASSES = "FRAZIL_PASSES"

# Not among them: those that PyTorch's own tracing calls.
REPLACED = """
batch-mm constant-loop-unrolling constant-pooling constant-propagation cse dce decompose-ops fold-frozen-conv-add-or-sub fold-frozen-conv-bn
fold-frozen-conv-mul-or-div fold-frozen-linear-bn concat-frozen-linear freeze functional-to-inplace-activation fuse-add-relu fuse-addmm
fuse-linear inline inline-fork-wait inplace-to-functional-activation loop-unrolling lower-all-tuples normalize-ops optimize-frozen-graph
peephole peephole-list-idioms refine-integer-values refine-tuple-types remove-dropout remove-exceptions remove-expands remove-inplace-ops
remove-mutation rewrite-patterns transpose-frozen-linear
""".split()

FILES = {
    "freezing": ["jit/test_freezing.py"],
    "passes": [
        *(f"jit/test_{name}.py" for name in """
        alias_analysis async batch_mm convert_activation dce graph_rewrite_passes isinstance list_dict op_decompositions peephole python_ir
        remove_mutation""".split()),
        "test_jit.py",
    ],
}

# Options of passes that PyTorch's bindings take as positional arguments after the graph.
GRAPH_OPTIONS = {
    "optimize-frozen-graph": ("optimize-numerics",),
    "peephole": ("disable-shape-peepholes",),
    "peephole-list-idioms": ("refine-list-len",),
}


class JitOpt:
    """Runs jit-opt between saving and loading."""

    def __init__(self, program: pathlib.Path):
        self.program = program
        # What the recorder of outcomes asks for: how often a test called us, and what was refused.
        self.count, self.refused = 0, []

    def passes(self) -> dict[str, set[str]]:
        """The passes that there are, each with its options."""
        text = subprocess.run([self.program, "--list-passes"], capture_output=True, text=True, check=True).stdout
        found: dict[str, set[str]] = {}
        for line in text.splitlines():
            if line and not line[0].isspace():
                options = found.setdefault(line.strip(), set())
            elif match := re.match(r"\s+([a-z-]+)=\S*  ", line):
                options.add(match[1])
        return found

    def run(self, saved, *flags):
        """What PyTorch loads of what jit-opt makes of what `saved.save` writes."""
        import torch

        self.count += 1
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "in.pt"), pathlib.Path(folder, "out.pt")
            saved.save(str(source))
            done = subprocess.run([self.program, source, "-o", target, *flags], capture_output=True, text=True)
            if done.returncode != 0:
                if keep := os.environ.get("FRAZIL_KEEP_REFUSED"):
                    pathlib.Path(keep, f"{self.count}.pt").write_bytes(source.read_bytes())
                raise RuntimeError(done.stderr.strip().removeprefix("error: ") or f"jit-opt ended with {done.returncode}")
            return torch.jit.load(str(target))


def option(name: str, value) -> str:
    if isinstance(value, bool):
        value = str(value).lower()
    return f"{name}={value}"


def pipeline(name: str, *options: str) -> str:
    return f"--pass-pipeline={name}" + (f"{{{' '.join(options)}}}" if options else "")


class Owners:
    """Remembers which module a graph is a method of: PyTorch's graphs do not know."""

    def __init__(self):
        # The graphs are kept, so that their numbers are not given again.
        self.known = {}

    def watch(self, torch) -> None:
        original = torch._C.ScriptMethod.graph

        def graph(method):
            found = original.__get__(method)
            self.known[id(found)] = (found, method.owner, method.name)
            return found

        torch._C.ScriptMethod.graph = property(graph)

    def of(self, graph):
        found = self.known.get(id(graph))
        return found[1:] if found else None


def replace_nodes(graph, new) -> None:
    """Makes `graph` do what `new` does."""
    for _ in list(graph.outputs()):
        graph.eraseOutput(0)
    for node in reversed(list(graph.nodes())):
        node.destroy()
    graph.setInsertPoint(graph.block())
    if len(list(new.inputs())) > len(list(graph.inputs())):
        # The archive of a function makes a method of it, which reads nothing from its object.
        new = new.copy()
        new.eraseInput(0)
    for output in graph.insertGraph(new, list(graph.inputs())):
        graph.registerOutput(output)


def patch(torch, tool: JitOpt, wanted: "set[str]") -> None:
    """Puts jit-opt in PyTorch's place."""
    from torch.testing._internal import common_utils

    # PyTorch's own runner sets it; without it `checkScript` refuses to run.
    common_utils.GRAPH_EXECUTOR = common_utils.GRAPH_EXECUTOR or common_utils.ProfilingMode.LEGACY
    owners = Owners()
    owners.watch(torch)
    wrap = torch.jit._recursive.wrap_cpp_module
    plain_freeze, plain_inference = torch.jit.freeze, torch.jit.optimize_for_inference
    available = {name: options for name, options in tool.passes().items() if name in wanted}

    def on_graph(name: str, graph, *options: str) -> None:
        owner = owners.of(graph)
        flags = pipeline(name, *options)
        if owner:
            module, method = owner
            replace_nodes(graph, tool.run(wrap(module), flags)._c._get_method(method).graph)
        else:
            function = torch._C._create_function_from_graph("forward", graph.copy())
            replace_nodes(graph, tool.run(function, flags).graph)

    def graph_pass(name: str):
        names = GRAPH_OPTIONS.get(name, ())

        def run(graph, *args, **kwargs):
            named = {key.replace("_", "-"): value for key, value in kwargs.items()}
            given = {**dict(zip(names, args)), **named}
            given = [option(key, value) for key, value in given.items() if key in available[name]]
            on_graph(name, graph, *given)

        return run

    def rewrite_patterns(pattern, replacement, graph):
        with tempfile.NamedTemporaryFile("w", suffix=".rules") as file:
            file.write(f"{pattern}\n=>\n{replacement}\n")
            file.flush()
            on_graph("rewrite-patterns", graph, option("file", file.name))

    def freeze_module(module, preservedAttrs=(), freezeInterfaces=True, preserveParameters=False):
        options = [option("freeze-interfaces", freezeInterfaces), option("preserve-parameters", preserveParameters)]
        if preservedAttrs:
            options.append(option("preserve", ",".join(preservedAttrs)))
        return tool.run(wrap(module), pipeline("freeze", *options))._c

    def preserve(names) -> list[str]:
        return [f"--preserve={','.join(names)}"] if names else []

    def freeze(mod, preserved_attrs=None, optimize_numerics=True):
        if not isinstance(mod, torch.jit.ScriptModule):
            return plain_freeze(mod, preserved_attrs, optimize_numerics)
        numerics = [] if optimize_numerics else ["--no-optimize-numerics"]
        return tool.run(mod, "--freeze", *preserve(preserved_attrs), *numerics)

    def optimize_for_inference(mod, other_methods=None):
        if not isinstance(mod, torch.jit.ScriptModule):
            return plain_inference(mod, other_methods)
        return tool.run(mod, "--optimize-for-inference", *preserve(other_methods))

    def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None):
        for method in ["forward", *(preserved_methods or [])]:
            if mod._c._has_method(method):
                graph = mod._c._get_method(method).graph
                on_graph("optimize-frozen-graph", graph, option("optimize-numerics", optimize_numerics))

    if "freeze" in available:
        torch.jit.freeze, torch._C._freeze_module = freeze, freeze_module
        torch.jit.optimize_for_inference = optimize_for_inference
    if "optimize-frozen-graph" in available:
        torch.jit.run_frozen_optimizations = run_frozen_optimizations
    if "rewrite-patterns" in available:
        torch._C._jit_pass_custom_pattern_based_rewrite_graph = rewrite_patterns
    for name in available:
        binding = f"_jit_pass_{name.replace('-', '_')}"
        if hasattr(torch._C, binding):
            setattr(torch._C, binding, graph_pass(name))


def pytest_configure(config):
    """Loaded by pytest in the process that runs the tests."""
    import torch
    from torch.testing._internal import common_utils

    shared.tolerate_missing_names()
    arguments, sys.argv = sys.argv, sys.argv[:1]
    common_utils.parse_cmd_line_args()
    sys.argv = arguments
    tool = None
    if program := os.environ.get(shared.JIT_OPT):
        tool = JitOpt(pathlib.Path(program))
        patch(torch, tool, set(os.environ[PASSES].split(",")))
    config.pluginmanager.register(shared.Recorder(pathlib.Path(os.environ[shared.OUTCOMES]), tool))


def not_concerned(outcomes: dict) -> str:
    """Lines that keep the run without Frazil from repeating tests that call none of the passes."""
    records = [{"test": name, "outcome": "skipped"} for name, record in outcomes.items() if not record.get("trips")]
    return "".join(json.dumps(record) + "\n" for record in records)


def assertion(record: dict) -> str:
    """What went wrong, without PyTorch's advice on how to run the test again."""
    text = record.get("why", "").split("E   To execute this test")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("E ") and line.strip() != "E"]
    return next((line.removeprefix("E").strip() for line in lines if "Error" in line), shared.reason(record))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pytorch", type=pathlib.Path, help="a checkout of PyTorch")
    parser.add_argument("files", nargs="*", help="`freezing`, `passes`, or files in the checkout's folder `test`")
    parser.add_argument("--jit-opt", type=pathlib.Path, default=ROOT / "target/debug/jit-opt")
    parser.add_argument("--passes", help="put jit-opt in the place of these passes only: freeze,dce")
    parser.add_argument("-k", help="which tests, as pytest has it")
    parser.add_argument("--only", action="store_true", help="leave out the run without Frazil")
    options = parser.parse_intermixed_args()
    tests = options.pytorch.resolve() / "test"
    files = [file for name in options.files or FILES for file in FILES.get(name, [name])]
    os.environ[PASSES] = options.passes or ",".join(REPLACED)

    def run(name: str, jit_opt: "str | None", folder: str, known: str = "") -> dict:
        outcomes = pathlib.Path(folder, f"{name}.jsonl")
        outcomes.write_text(known)
        return shared.run(tests, files, outcomes, jit_opt, options.k, pathlib.Path(__file__).stem)

    with tempfile.TemporaryDirectory() as folder:
        ours = run("frazil", str(options.jit_opt.resolve()), folder)
        alone = None if options.only else run("alone", None, folder, not_concerned(ours))
    ours = {name: record for name, record in ours.items() if record.get("trips") or "the process ended" in record.get("why", "")}
    expected = {name for name in ours if alone is None or alone.get(name, {}).get("outcome") == "passed"}
    lost = [name for name in ours if ours[name]["outcome"] == "failed" and name in expected]

    def count(outcomes: dict) -> str:
        kinds = [record["outcome"] for record in outcomes.values()]
        return ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("passed", "failed", "skipped"))

    for name in lost:
        print(f"--- {name}\n{ours[name].get('why', '').strip()}\n")
    if alone is not None:
        print(f"without Frazil: {count({name: alone[name] for name in ours if name in alone})}")
    print(f"with Frazil:    {count(ours)}")
    for name in lost:
        print(f"  {name}: {assertion(ours[name])}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
