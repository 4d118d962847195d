#!/usr/bin/env bash
# Tests the Python package: builds the wheel, installs it into a fresh virtual environment with NumPy alone, and runs its tests there.
# The last line is "N passed, N failed".
#
#   tools/test_python.sh           with NumPy
#   tools/test_python.sh --torch   also in the environment of tools/peers.sh, which has PyTorch
#   tools/test_python.sh --dev     with a development build of the wheel; tools/wheel.sh describes it
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

python=$(tools/wheel.sh --python) || { echo "0 passed, 1 failed"; exit 1; }
build=()
[[ " $* " != *" --dev "* ]] || build=(--dev)
wheel=$(tools/wheel.sh "${build[@]}") || { echo "0 passed, 1 failed"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

# run PYTHON [ARGUMENTS...]: the tests with the package of the wheel, from a folder that has no other one.
run() {
    local interpreter=$1 log=$scratch/log good bad status
    shift
    (cd "$scratch" && PYTHONPATH=$scratch/site "$interpreter" -m pytest -q -p no:cacheprovider -c "$root/crates/python/pyproject.toml" \
        --rootdir "$root/crates/python" "$root/crates/python/tests" "$@") 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    # pytest's last line: "1 failed, 747 passed, 4 skipped in 96.65s".
    good=$(tail -1 "$log" | grep -oE '[0-9]+ passed' | cut -d' ' -f1)
    bad=$(tail -1 "$log" | grep -oE '[0-9]+ (failed|error)' | awk '{ sum += $1 } END { print sum + 0 }')
    passed=$((passed + ${good:-0}))
    failed=$((failed + ${bad:-0}))
    if [ "$status" != 0 ] && [ "${bad:-0}" = 0 ]; then failed=$((failed + 1)); fi
}

"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$scratch/site" "$wheel" || failed=$((failed + 1))
run "$python" "${PYTEST_ARGS[@]:-}"
if [[ " $* " == *" --torch "* ]]; then
    peers=$(tools/peers.sh)
    "$peers" -m pip install --quiet --disable-pip-version-check --target "$scratch/pytest" pytest || failed=$((failed + 1))
    mv "$scratch/pytest/"* "$scratch/site/" 2>/dev/null
    run "$peers" -k torch
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
