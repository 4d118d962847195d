#!/usr/bin/env bash
# Makes the virtual environment with what the benchmarks compare with, and prints its Python's path. Says and does nothing else when it
# is there.
#
#   tools/peers.sh           in ~/.cache/frazil/peers, or where FRAZIL_PEERS says
#
# PyTorch and its libraries take about 5 GB and some minutes. Nothing is installed outside that folder.
set -euo pipefail

folder=${FRAZIL_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/frazil/peers}
packages=(torch torchvision onnx onnxscript onnxruntime openvino safetensors numpy)
# Made last: an environment with it is whole.
done_file=$folder/.complete

if [ ! -e "$done_file" ]; then
    command -v python3 >/dev/null || { echo "peers: python3 is missing" >&2; exit 1; }
    echo "peers: installing ${packages[*]} into $folder" >&2
    python3 -m venv "$folder" 2>/dev/null >&2 || {
        echo "peers: python3 cannot make virtual environments; on Debian, install python3-venv" >&2
        exit 1
    }
    "$folder/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}" >&2
    touch "$done_file"
fi
echo "$folder/bin/python"
