#!/usr/bin/env bash
# What `make demo` shows: a real archive is frozen, compiled and run, and called from a C program that links nothing but a
# small shared library and the C library.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

model=tests/fixtures/models/residual_cnn
shape=1x3x32x32
release=${CARGO_TARGET_DIR:-target}/release
out=${CARGO_TARGET_DIR:-target}/demo

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$(printf '\033[1m') dim=$(printf '\033[2m') green=$(printf '\033[32m') plain=$(printf '\033[0m')
else
    bold='' dim='' green='' plain=''
fi

title() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
good() { printf '%s%s%s\n' "$green" "$*" "$plain"; }
# Shows a command and runs it.
run() {
    printf '%s$ %s%s\n' "$dim" "$*" "$plain"
    "$@"
}

title "Building (a few minutes the first time)"
tools/setup.sh
cargo build --quiet --release -p frazil-tools -p frazil-tests --bins
PATH=$PWD/$release:$PATH
rm -rf "$out"
mkdir -p "$out"
good "jit-opt has $(($(stat -c %s "$release/jit-opt") / 1000000)) MB"

title "A scripted PyTorch model ($model), frozen"
run jit-opt $model/model.pt --freeze -o "$out/frozen.ir"
run jit-opt "$out/frozen.ir" --elide-constants-larger-than=4

title "Both engines, next to what PyTorch computed"
for engine in interp native; do
    mkdir -p "$out/$engine"
    run jit-run $model/model.pt --calls $model/case.json --out "$out/$engine" --engine=$engine
    good "$(fixture compare $model "$out/$engine")"
done
mkdir -p "$out/frozen"
run jit-run "$out/frozen.ir" --calls $model/case.json --out "$out/frozen"
good "$(fixture compare $model "$out/frozen")"

title "Latency on one thread"
for engine in interp native; do
    figures=$(jit-run $model/model.pt --input zeros:$shape --engine=$engine --threads=1 --bench --json | tail -n 1)
    printf '%-8s median %s ms\n' $engine "$(sed 's/.*"median_ms": *\([0-9.e+-]*\).*/\1/' <<<"$figures")"
done

title "A shared library and a C program"
run jit-opt $model/model.pt --freeze --input-shape=$shape -o "$out/libresidual_cnn.so"
ls -l "$out" | awk '/residual_cnn/ { print $5, $9 }'
run cc -O2 -Wall -Wextra -Werror -I "$out" examples/c/demo.c -L "$out" -lresidual_cnn -Wl,-rpath,'$ORIGIN' -lm -o "$out/demo"
run ldd "$out/demo"
if ldd "$out/demo" | grep -qiE 'llvm|mlir|frazil|torch|stdc\+\+'; then
    echo "demo: the program links more than it should" >&2
    exit 1
fi
fixture raw $model call0.arg0 "$out/input.f32"
fixture raw $model call0.result "$out/expected.f32"
run "$out/demo" "$out/input.f32" "$out/expected.f32"
good "Done. The library and its header are in $out."
