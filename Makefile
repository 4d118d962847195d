# Frazil's commands. `make help` lists them.
CARGO ?= cargo
TARGET ?= $(or $(CARGO_TARGET_DIR),target)
PREFIX ?= $(HOME)/.local
LLVM ?= $(or $(LLVM_SYS_221_PREFIX),/usr/lib/llvm-22)
# A Python that has what the benchmarks compare with; else one is made, outside the repository.
PEERS = $(or $(PEERS_PYTHON),"$$(tools/peers.sh)")

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-full test-python wheel fuzz fuzz-programs miri codes check install lit conformance bench bench-peers bench-text bench-passes bench-eager bench-cost-model bench-shapes bench-first-calls

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing (LLVM and MLIR 22, lit); quiet when nothing is
	@tools/setup.sh

demo: setup ## freeze, compile and run a small real model, and call it from C
	@tools/demo.sh

test: ## everything that has to pass: formatting, lints, unit tests, lit, conformance
	@tools/test.sh

test-full: ## what `make test` leaves out: examples, benches, the documentation, the public interface, the embedding example, valgrind, kill points, a shared cache
	@tools/test.sh --rest

wheel: ## the wheel of the Python package, into target/wheels
	@tools/wheel.sh

test-python: ## the wheel, and its tests in a fresh environment with NumPy alone; ARGS=--torch also with PyTorch
	@tools/test_python.sh $(ARGS)

fuzz: ## the fuzz targets on all cores, with coverage and the address sanitizer; TIME=60 seconds for all, TARGETS='text capi' for some
	@tests/fuzz/run.py --time $(or $(TIME),60) $(if $(TARGETS),--targets '$(TARGETS)')

fuzz-programs: setup ## random programs, interpreter against native code, with fresh seeds; TIME=60 seconds, SEED=... to start at one
	@$(CARGO) run -q -p frazil-tests --example fuzz -- --seconds $(or $(TIME),60) $(if $(SEED),--seed $(SEED))

miri: ## tests of the crates with unsafe code in Miri, with a nightly toolchain that rustup installs
	@tools/check/miri.sh

codes: setup ## the code library, kernels compiled in advance, into crates/frazil/codes.bin, for builds with the feature `precompiled`
	@$(CARGO) run -q --release -p frazil-tools --features codes --bin frazil-codes -- crates/frazil/codes.bin tools/codes/*.py tests/fixtures/models/*

check: setup ## formatting and lints only
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

install: codes ## the tools into PREFIX/bin (default: ~/.local): one program with three names, which contains the code library
	@$(CARGO) build -q --release -p frazil-tools --features precompiled --bin jit-opt
	install -D -t $(PREFIX)/bin $(TARGET)/release/jit-opt
	ln -f $(PREFIX)/bin/jit-opt $(PREFIX)/bin/jit-run
	ln -f $(PREFIX)/bin/jit-opt $(PREFIX)/bin/jit-reduce

lit: setup ## the lit tests; LIT_ARGS='-v lit-tests/passes/dce.ir' for some of them
	@$(CARGO) build -q -p frazil-tools --bins
	@$(LLVM)/bin/lit $(or $(LIT_ARGS),-sv --no-progress-bar lit-tests)

conformance: setup ## compare with PyTorch's results; ARGS='--engine=interp resnet' for some of them
	@$(CARGO) build -q -p frazil-tools --bins
	@FRAZIL_CORPUS=$(or $(FRAZIL_CORPUS),none) $(CARGO) test -q -p frazil-tests --test conformance -- $(ARGS)

bench: setup ## criterion benchmarks; ARGS=clone for some of them
	$(CARGO) bench -q -p frazil-tests --bench '*' -- $(ARGS)

bench-peers: setup ## latency next to PyTorch, ONNX Runtime and OpenVINO, side by side; ARGS=model.pt... for models of yours
	@$(CARGO) build -q --release -p frazil-tools --bins
	@$(PEERS) tools/bench_peers.py $(or $(ARGS),--plot target/bench-peers.svg)

bench-shapes: setup ## calls whose sizes are always new, next to the same peers; ARGS='encoder mlp' for some rows
	@$(CARGO) build -q --release -p frazil-tools --bins
	@$(PEERS) tools/bench_shapes.py $(ARGS)

bench-first-calls: setup ## first calls of cold processes, next to PyTorch's; ARGS=model.pt... for models of yours
	@$(CARGO) build -q --release -p frazil-tools --bins
	@$(PEERS) tools/bench_first_calls.py $(ARGS)

bench-text: ## reading and writing text and archives next to PyTorch's and mlir-opt's; ARGS='--archive model.pt'
	@$(CARGO) build -q --release -p frazil --no-default-features --example reading_times
	@$(PEERS) tools/bench_text.py $(ARGS)

bench-passes: ## passes and alias analysis next to PyTorch's; ARGS=--growth for how they grow
	@$(CARGO) build -q --release -p frazil --no-default-features --example pass_times
	@$(PEERS) tools/bench_passes.py $(ARGS)

bench-eager: ## what eager calls cost on small tensors next to PyTorch's
	@$(CARGO) build -q --release -p frazil --no-default-features --example eager_times
	@$(PEERS) tools/bench_eager.py $(ARGS)

bench-cost-model: setup ## chosen kernels against the fastest ones on this machine; ARGS='--threads=2 FOLDER model.pt=1x3x224x224' for models of yours
	@$(CARGO) run -q --release -p frazil --example cost_model -- $(ARGS)
