#!/usr/bin/env bash
# Installs what building and testing Frazil needs on Debian 12 beyond Rust: LLVM and MLIR 22, lit, FileCheck, CMake.
# Safe to run at any time: it says nothing and changes nothing when everything is there.
#
#   tools/setup.sh           install what is missing
#   tools/setup.sh --check   only say what is missing (exit status 1)
set -euo pipefail

rust_minor=95
llvm=${LLVM_SYS_221_PREFIX:-/usr/lib/llvm-22}

fail() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

# Each line: a file (or command) that proves the package is there, and the Debian package that brings it.
# What these depend on (llvm-22, libclang-common-22-dev, libxml2-dev, libz3-dev, libffi-dev, python3 for lit) comes along.
requirements() {
    cat <<EOF
$llvm/bin/llvm-config            llvm-22-dev
$llvm/lib/libLLVMCore.a          llvm-22-dev
$llvm/lib/libMLIRCAPIIR.a        libmlir-22-dev
$llvm/lib/libPolly.a             libpolly-22-dev
$llvm/lib/libclang.so            libclang-22-dev
$llvm/bin/FileCheck              llvm-22-tools
$llvm/bin/lit                    llvm-22-tools
/usr/include/zlib.h              zlib1g-dev
/usr/include/zstd.h              libzstd-dev
c++                              g++
make                             make
cmake                            cmake
strace                           strace
valgrind                         valgrind
EOF
}

missing_packages() {
    local probe package
    while read -r probe package; do
        case $probe in
        /*) [ -e "$probe" ] || echo "$package" ;;
        *) command -v "$probe" >/dev/null || echo "$package" ;;
        esac
    done < <(requirements) | sort -u
}

check_rust() {
    local version minor
    command -v cargo >/dev/null && version=$(rustc --version 2>/dev/null) ||
        fail "Rust is not installed. See https://rustup.rs, then run this again."
    minor=${version#rustc 1.}
    minor=${minor%%.*}
    [ "$minor" -ge "$rust_minor" ] 2>/dev/null ||
        fail "Rust 1.$rust_minor or newer is needed; this is '$version'. Try: rustup update stable"
    local component
    for component in rustfmt clippy; do
        local binary=$component
        [ "$component" = clippy ] && binary=clippy-driver
        [ -x "$(rustc --print sysroot)/bin/$binary" ] && continue
        command -v rustup >/dev/null || fail "$component is missing from this Rust installation."
        rustup component add "$component"
    done
}

# Runs a command as root: directly, or through sudo where that can work.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        sudo "$@"
    else
        fail "installing packages needs root, and sudo is not available here. As root, run:" \
            "    apt-get update && apt-get install --no-install-recommends ${packages[*]}"
    fi
}

check_rust
mapfile -t packages < <(missing_packages)
[ "${#packages[@]}" = 0 ] && exit 0

[ "${1:-}" = --check ] && fail "missing packages: ${packages[*]}"
command -v apt-get >/dev/null || fail \
    "this machine has no apt. Install LLVM and MLIR 22 with their development files and static MLIR libraries, libclang 22," \
    "lit, FileCheck, zlib, zstd, a C++ compiler, make and CMake, and set LLVM_SYS_221_PREFIX, MLIR_SYS_220_PREFIX and" \
    "TABLEGEN_220_PREFIX to where LLVM stands (looked in $llvm)."

echo "setup: installing ${packages[*]}"
as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
for package in "${packages[@]}"; do
    candidate=$(apt-cache policy "$package" | sed -n 's/^ *Candidate: //p')
    [ -n "$candidate" ] && [ "$candidate" != "(none)" ] || fail \
        "apt knows no package '$package'. Debian 12 has LLVM 22 in its security archive (bookworm-security, main);" \
        "on other releases https://apt.llvm.org says how to add it."
done
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"

mapfile -t packages < <(missing_packages)
[ "${#packages[@]}" = 0 ] || fail \
    "these packages are installed but what they bring was not found (LLVM was looked for in $llvm): ${packages[*]}"
