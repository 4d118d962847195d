"""How lit finds and runs the tests below this folder. README.md says how to write one."""

import os
import shutil
import sys

import lit.formats

config.name = "frazil"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ir", ".py", ".tensors", ".test"]
config.excludes = ["lit.cfg.py", "status.py", "inputs"]

config.test_source_root = os.path.dirname(__file__)
repository = os.path.dirname(config.test_source_root)
target = os.path.join(repository, os.environ.get("CARGO_TARGET_DIR", "target"))
config.test_exec_root = os.path.join(target, "lit")

# Where the tools stand: `--param bin=DIR`, or a release build by `--param profile=release`.
tools = lit_config.params.get("bin") or os.path.join(target, lit_config.params.get("profile", "debug"))
llvm = os.path.join(os.environ.get("LLVM_SYS_221_PREFIX", "/usr/lib/llvm-22"), "bin")
for tool in ("jit-opt", "jit-run"):
    if not os.path.exists(os.path.join(tools, tool)):
        lit_config.fatal(f"{tool} is not in {tools}; `make lit` builds it first")

config.environment["PATH"] = os.pathsep.join([tools, llvm, os.environ["PATH"]])
# Colour and terminal width would leak into the text that is checked.
config.environment["NO_COLOR"] = "1"

config.substitutions.append(("%fixtures", os.path.join(repository, "tests", "fixtures")))
config.substitutions.append(("%python", f'"{sys.executable}"'))
config.substitutions.append(("%status", f'"{sys.executable}" "{os.path.join(config.test_source_root, "status.py")}"'))

# Features that a test may ask for with `REQUIRES:`.
if lit_config.params.get("codegen", "1") != "0":
    config.available_features.add("codegen")
if shutil.which("cc"):
    config.available_features.add("cc")
if os.path.exists(os.path.join(llvm, "mlir-opt")):
    config.available_features.add("mlir-opt")
try:
    with open("/proc/cpuinfo") as cpuinfo:
        flags = next((line.split() for line in cpuinfo if line.startswith("flags")), [])
    config.available_features.update({"avx2", "avx512f"} & set(flags))
except OSError:
    pass

corpus = os.environ.get("FRAZIL_CORPUS")
if corpus and os.path.isdir(corpus):
    config.available_features.add("corpus")
    config.substitutions.append(("%corpus", os.path.abspath(corpus)))
