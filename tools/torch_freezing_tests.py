#!/usr/bin/env python3
"""PyTorch's own freezing and pass tests, with jit-opt in the place of PyTorch's passes.

    python tools/torch_freezing_tests.py PYTORCH [--jit-opt FILE] [--passes NAMES] [--only] [-k EXPRESSION] [FILE...]

PYTORCH is a checkout of PyTorch; its `test/jit/test_freezing.py`, or the files named, run with the `torch` and `pytest` of the Python
that runs this: once as they are, and once with these functions going through archives and jit-opt:

    torch.jit.freeze                    jit-opt IN.pt -o OUT.pt --freeze --preserve=... --no-optimize-numerics
    torch.jit.optimize_for_inference    jit-opt IN.pt -o OUT.pt --optimize-for-inference --preserve=...
    torch._C._freeze_module             --pass-pipeline=freeze{preserve=... freeze-interfaces=... preserve-parameters=...}
    torch.jit.run_frozen_optimizations  --pass-pipeline=optimize-frozen-graph{optimize-numerics=...}
    torch._C._jit_pass_NAME             --pass-pipeline=NAME, for every pass that jit-opt has (or those of --passes)

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
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Options of passes that PyTorch's bindings take as positional arguments after the graph.
GRAPH_OPTIONS = {
    "optimize-frozen-graph": ("optimize-numerics",),
    "peephole": ("disable-shape-peepholes",),
}


class JitOpt:
    """Runs jit-opt between saving and loading."""

    def __init__(self, program: pathlib.Path):
        self.program = program
        self.calls = 0

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

        self.calls += 1
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "in.pt"), pathlib.Path(folder, "out.pt")
            saved.save(str(source))
            done = subprocess.run([self.program, source, "-o", target, *flags], capture_output=True, text=True)
            if done.returncode != 0:
                if keep := os.environ.get("FRAZIL_KEEP_REFUSED"):
                    pathlib.Path(keep, f"{self.calls}.pt").write_bytes(source.read_bytes())
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


def patch(torch, tool: JitOpt, wanted: "set[str] | None") -> None:
    """Puts jit-opt in PyTorch's place."""
    owners = Owners()
    owners.watch(torch)
    wrap = torch.jit._recursive.wrap_cpp_module
    plain_freeze, plain_inference = torch.jit.freeze, torch.jit.optimize_for_inference
    available = {name: options for name, options in tool.passes().items() if wanted is None or name in wanted}

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
            given = [option(key, value) for key, value in zip(names, args) if key in available[name]]
            on_graph(name, graph, *given)

        return run

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
    for name in available:
        binding = f"_jit_pass_{name.replace('-', '_')}"
        if hasattr(torch._C, binding):
            setattr(torch._C, binding, graph_pass(name))


class Recorder:
    """Keeps the outcome of each test."""

    def __init__(self):
        self.outcomes = {}

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.split("/")[-1]
        outcome, why = self.outcomes.get(name, ("passed", ""))
        if report.failed:
            outcome, why = "failed", str(report.longrepr)
        elif report.skipped and outcome == "passed":
            outcome = "skipped"
        self.outcomes[name] = (outcome, why)


def run_tests(options) -> int:
    """The run of one side, in a process of its own."""
    import pytest

    warnings.simplefilter("ignore")
    test_folder = options.pytorch / "test"
    os.chdir(test_folder)
    sys.path.insert(0, str(test_folder))
    import torch

    if options.side == "frazil":
        wanted = set(options.passes.split(",")) if options.passes else None
        patch(torch, JitOpt(options.jit_opt), wanted)
    recorder = Recorder()
    arguments = ["-q", "--no-header", "-p", "no:cacheprovider", "-W", "ignore", "--tb=short", "--show-capture=no"]
    if options.k:
        arguments += ["-k", options.k]
    pytest.main([*arguments, *options.files], plugins=[recorder])
    options.outcomes.write_text(json.dumps(recorder.outcomes))
    return 0


def outcomes_of(options, side: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "outcomes.json")
        command = [sys.executable, __file__, options.pytorch, *options.files, "--jit-opt", options.jit_opt]
        command += ["--side", side, "--outcomes", file]
        for flag, value in (("-k", options.k), ("--passes", options.passes)):
            command += [flag, value] if value else []
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if not file.exists():
            sys.exit(f"the tests could not be run:\n{done.stdout}\n{done.stderr}")
        return json.loads(file.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pytorch", type=pathlib.Path, help="a checkout of PyTorch")
    parser.add_argument("files", nargs="*", help="test files, from the checkout's folder `test`")
    parser.add_argument("--jit-opt", type=pathlib.Path, default=ROOT / "target/debug/jit-opt")
    parser.add_argument("--passes", help="put jit-opt in the place of these passes only: freeze,dce")
    parser.add_argument("-k", help="which tests, as pytest has it")
    parser.add_argument("--only", action="store_true", help="leave out the run without Frazil")
    parser.add_argument("--side", choices=("torch", "frazil"), help=argparse.SUPPRESS)
    parser.add_argument("--outcomes", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.pytorch, options.jit_opt = options.pytorch.resolve(), options.jit_opt.resolve()
    options.files = options.files or ["jit/test_freezing.py"]
    if options.side:
        return run_tests(options)

    ours = outcomes_of(options, "frazil")
    expected = {name: ("passed", "") for name in ours} if options.only else outcomes_of(options, "torch")
    lost = [name for name, (outcome, _) in ours.items() if outcome == "failed" and expected.get(name, ("",))[0] == "passed"]
    for name in lost:
        print(f"--- {name}\n{ours[name][1].strip()}\n")

    def count(outcomes):
        kinds = [outcome for outcome, _ in outcomes.values()]
        return ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("passed", "failed", "skipped"))

    if not options.only:
        print(f"without Frazil: {count(expected)}")
    print(f"with Frazil:    {count(ours)}")
    for name in lost:
        print(f"  {name}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
