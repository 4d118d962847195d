#!/usr/bin/env bash
# Compares the public interface of the facade crate (`frazil`) with tests/public-interface/frazil.txt, which has one line for each public item, and prints
# the difference. The program in tests/public-interface lists the items, from rustdoc's JSON.
#
#   tools/check/public_interface.sh             compare
#   tools/check/public_interface.sh --update    write the file
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
file=tests/public-interface/frazil.txt
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/public-interface
# The lints of the workspace (.cargo/config.toml) are not needed.
export RUSTC_WORKSPACE_WRAPPER= CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER=

# rustdoc's JSON is an unstable option, which RUSTC_BOOTSTRAP allows. So the compiler is the workspace's, and no nightly one whose JSON changes. It is set for
# both commands: build scripts that read it would run again each time.
export RUSTC_BOOTSTRAP=1
cargo rustdoc --quiet --package frazil --lib -- -Z unstable-options --output-format json
found=$CARGO_TARGET_DIR/frazil.txt
cargo run --quiet --manifest-path tests/public-interface/Cargo.toml -- "$CARGO_TARGET_DIR/doc/frazil.json" >"$found"
[ -s "$found" ] || { echo "public_interface.sh: no public items were found"; exit 1; }

if [ "${1:-}" = --update ]; then
    cp "$found" "$file"
elif ! diff --unified=0 --label "$file" --label "the code" "$file" "$found"; then
    echo "public_interface.sh: the public interface differs from $file. If this is intended: tools/check/public_interface.sh --update, and an entry in CHANGELOG.md"
    exit 1
fi
