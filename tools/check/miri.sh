#!/usr/bin/env bash
# Runs the tests of the crates with unsafe code that need no foreign code in Miri, which reports undefined behaviour: the arenas, and the thread
# pool of the runtime. Miri needs a nightly toolchain; rustup installs what is missing.
#
#   tools/check/miri.sh [TEST...]    all tests, or those whose names contain one of these words
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fail() {
    printf 'miri: %s\n' "$@" >&2
    exit 1
}

command -v rustup >/dev/null || fail "rustup is needed, for a nightly toolchain. See https://rustup.rs."
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    rustup toolchain install nightly --profile minimal --component miri --component rust-src ||
        fail "a nightly toolchain with Miri cannot be installed. With a network: rustup toolchain install nightly --component miri,rust-src"
fi

# The lints of the workspace (.cargo/config.toml) belong to the stable toolchain.
export RUSTC_WORKSPACE_WRAPPER= CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER=
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/miri
for crate in frazil-arena frazil-rt; do
    cargo +nightly miri test --quiet -p "$crate" --lib -- "$@"
done
