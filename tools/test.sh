#!/usr/bin/env bash
# Runs checks one after the other, and goes on after a failure so that one run shows them all.
# The last line is "N passed, N failed": the tests counted one by one, any other step as one.
#
#   tools/test.sh           formatting, lints, unit tests, conformance, lit: what has to pass before a commit
#   tools/test.sh --rest    what that leaves out: examples and benches, the documentation, the public interface, the embedding example, the Python package
#                           with NumPy alone and with PyTorch, compiling under valgrind, operators in code whose sizes are arguments, outputs while the tools are killed, and
#                           many processes on one cache directory
#
# With FRAZIL_TESTS_UNTIL=SECONDS (since 1970), no step begins after this time. Those that are left out are named.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/setup.sh || { echo "0 passed, 1 failed"; exit 1; }

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}
# State for incremental compilation costs a fifth of the time and 3 GB, and is not used again where everything is compiled once.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0
llvm=${LLVM_SYS_221_PREFIX:-/usr/lib/llvm-22}
logs=$CARGO_TARGET_DIR/test-logs
mkdir -p "$logs"
passed=0
failed=0
broken=()
late=()

# step NAME COMMAND...: shows the command's output, keeps it in a log, and counts what it says about tests.
step() {
    local name=$1 log=$logs/$1.log start=$SECONDS good bad status
    shift
    if [ "$(date +%s)" -ge "${FRAZIL_TESTS_UNTIL:-9999999999}" ]; then
        late+=("$name")
        return 0
    fi
    printf '== %s: %s\n' "$name" "$*"
    "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    read -r good bad < <(count "$log")
    if [ "$status" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    if [ "$status" = 0 ] && [ $((good + bad)) = 0 ]; then good=1; fi
    passed=$((passed + good))
    failed=$((failed + bad))
    [ "$bad" = 0 ] || broken+=("$name")
    printf -- '-- %s: %s, %d s\n' "$name" "$([ "$bad" = 0 ] && echo ok || echo "FAILED")" $((SECONDS - start))
    [ "$bad" = 0 ]
}

# The tests that passed and failed according to a log of cargo test, of lit, of the conformance runner or of test_python.sh.
count() {
    awk '
        /^test result: / { good += $4; bad += $6 }
        /^ *(Passed|Expectedly Failed) *: *[0-9]+/ { sub(/.*: */, ""); good += $1 }
        /^ *(Failed|Timed Out|Unresolved|Unexpectedly Passed) *: *[0-9]+/ { sub(/.*: */, ""); bad += $1 }
        /^[0-9]+ passed, [0-9]+ failed$/ { good += $1; bad += $3 }
        END { print good + 0, bad + 0 }' "$1"
}

# What the tests of Rust are about: an extension module cannot be linked into a test. `--rest` compiles it with the lints, and tools/test_python.sh tests it.
# The features are the same in all steps, so that nothing is compiled twice.
rust=(--workspace --exclude frazil-python --features frazil-tools/codes)

# Compiles with the lints (.cargo/config.toml has clippy-driver compile the workspace). Cargo repeats the warnings of what it compiled before,
# so none is missed.
compile() {
    cargo build --quiet "$@" 2>&1 | tee "$logs/compile"
    [ "${PIPESTATUS[0]}" = 0 ] && ! grep -q '^warning' "$logs/compile"
}

# All tests, and the tools, which are one program with three names. The selection is the same in both, so that nothing is built twice.
tests() {
    compile "${rust[@]}" --lib --tests --bin jit-opt --bin fixture &&
        ln -f "$CARGO_TARGET_DIR/debug/jit-opt" "$CARGO_TARGET_DIR/debug/jit-run" &&
        ln -f "$CARGO_TARGET_DIR/debug/jit-opt" "$CARGO_TARGET_DIR/debug/jit-reduce"
}

quick() {
    if [ -z "${FRAZIL_CORPUS:-}" ]; then
        export FRAZIL_CORPUS=none
        echo "test.sh: FRAZIL_CORPUS is not set; only the fixtures of the repository are compared"
    fi
    step format cargo fmt --check
    if step build tests; then
        step tests cargo test --quiet "${rust[@]}" --lib --tests --no-fail-fast
        step examples-in-docs cargo test --quiet "${rust[@]}" --doc --no-fail-fast
        step lit "$llvm/bin/lit" -sv --no-progress-bar lit-tests
    fi
}

rest() {
    step all-targets compile "${rust[@]}" --all-targets
    RUSTDOCFLAGS="-D warnings" step docs cargo doc --quiet --workspace --no-deps
    step public-interface tools/check/public_interface.sh
    step deny tools/check/deny.sh
    step embed cargo test --quiet --manifest-path tests/embed/Cargo.toml
    FRAZIL_VALGRIND=1 step valgrind cargo test --quiet "${rust[@]}" --test program
    FRAZIL_VALGRIND=1 step valgrind-libraries cargo test --quiet "${rust[@]}" --test suite -- processes preparation
    # The wheel contains the library. Its objects do not depend on the profile of the program that makes it, and this one is compiled already.
    step code-library "$CARGO_TARGET_DIR/debug/frazil-codes" crates/frazil/codes.bin tools/codes/*.py tests/fixtures/models/*
    step extension-module compile --package frazil-python --features precompiled
    step python tools/test_python.sh --torch --dev
    if step build tests; then
        step sizes-as-arguments cargo test --quiet "${rust[@]}" --test operators -- --engine=native --static-shapes=0
        step kill-points tools/check/kill_points.py --tools "$CARGO_TARGET_DIR/debug"
        step shared-cache tools/check/shared_cache.py --tools "$CARGO_TARGET_DIR/debug"
    fi
}

case ${1:-} in
"") quick ;;
--rest) rest ;;
*) echo "usage: tools/test.sh [--rest]" >&2; exit 2 ;;
esac

[ ${#late[@]} = 0 ] || echo "not run, since the time was up: ${late[*]}"
for name in "${broken[@]}"; do
    echo "failed: $name (see $logs/$name.log)"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
