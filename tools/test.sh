#!/usr/bin/env bash
# Runs every check that has to pass, one after the other, and goes on after a failure so that one run shows them all.
# The last line is "N passed, N failed": the tests counted one by one, any other step as one.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/setup.sh || { echo "0 passed, 1 failed"; exit 1; }

llvm=${LLVM_SYS_221_PREFIX:-/usr/lib/llvm-22}
logs=${CARGO_TARGET_DIR:-target}/test-logs
mkdir -p "$logs"
passed=0
failed=0
broken=()

# step NAME COMMAND...: shows the command's output, keeps it in a log, and counts what it says about tests.
step() {
    local name=$1 log=$logs/$1.log start=$SECONDS good bad status
    shift
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

# The tests that passed and failed according to a log of cargo test, of lit or of the conformance runner.
count() {
    awk '
        /^test result: / { good += $4; bad += $6 }
        /^ *(Passed|Expectedly Failed) *: *[0-9]+/ { sub(/.*: */, ""); good += $1 }
        /^ *(Failed|Timed Out|Unresolved|Unexpectedly Passed) *: *[0-9]+/ { sub(/.*: */, ""); bad += $1 }
        END { print good + 0, bad + 0 }' "$1"
}

step format cargo fmt --check
step lints cargo clippy --quiet --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" step docs cargo doc --quiet --workspace --no-deps
step embed cargo test --quiet --manifest-path tests/embed/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}"
# The tools are built with the tests: alone they would be built once more, since dependencies have fewer features then.
if step build cargo test --quiet --workspace --no-run; then
    step tests cargo test --quiet --workspace --no-fail-fast
    step lit "$llvm/bin/lit" -sv --no-progress-bar lit-tests
fi

for name in "${broken[@]}"; do
    echo "failed: $name (see $logs/$name.log)"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
