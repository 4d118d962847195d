#!/usr/bin/env bash
# Builds the wheel of the Python package into target/wheels, and prints its path.
#
#   tools/wheel.sh                 the wheel for Python 3.10 and newer
#   tools/wheel.sh --dev           the same from a development build, which checks arithmetic for overflow and is built sooner
#   tools/wheel.sh --python        prints the Python of the virtual environment with what building and testing need, made where it is missing
#
# The environment is ~/.cache/frazil/python, or where FRAZIL_PYTHON_ENV says. Nothing is installed outside that folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${FRAZIL_PYTHON_ENV:-${XDG_CACHE_HOME:-$HOME/.cache}/frazil/python}
packages=('maturin>=1.9,<2' numpy pytest mypy)
# Made last: an environment with it is whole.
done_file=$folder/.complete-1

if [ ! -e "$done_file" ]; then
    command -v python3 >/dev/null || { echo "wheel: python3 is missing" >&2; exit 1; }
    echo "wheel: installing ${packages[*]} into $folder" >&2
    python3 -m venv "$folder" 2>/dev/null >&2 || {
        echo "wheel: python3 cannot make virtual environments; on Debian, install python3-venv" >&2
        exit 1
    }
    "$folder/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}" >&2
    touch "$done_file"
fi
if [ "${1:-}" = --python ]; then
    echo "$folder/bin/python"
    exit 0
fi

# The wheel contains the code library, which belongs to these sources.
tools/setup.sh >&2
library=crates/frazil/codes.bin
if [ ! -f "$library" ] || [ -n "$(find crates/planner/src crates/codegen/src tools/codes -newer "$library" -print -quit)" ]; then
    make --no-print-directory codes >&2
fi
out=${CARGO_TARGET_DIR:-target}/wheels
rm -f "$out"/frazil-*.whl
profile=--release
[ "${1:-}" != --dev ] || profile=--profile=dev
# maturin calls the wheel by the oldest manylinux tag whose symbols it uses, and refuses libraries that other systems may lack.
PYO3_PYTHON=$folder/bin/python "$folder/bin/maturin" build --quiet "$profile" --strip --features precompiled --manifest-path crates/python/Cargo.toml \
    --interpreter "$folder/bin/python" --out "$out" >&2
wheel=$(ls "$out"/frazil-*.whl)
bytes=$(stat -c %s "$wheel")
if [ "$profile" = --release ] && [ "$bytes" -gt 45000000 ]; then
    echo "wheel: $wheel has $bytes bytes; expected at most 45,000,000" >&2
    exit 1
fi
echo "$wheel"
