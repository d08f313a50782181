#!/usr/bin/env bash
# What the agent does on a machine with a GPU, in under four minutes; `scripts/gpu_check.sh --help` tells more.
# The Python is that of scripts/setup, unless ROOFLIGHT_PYTHON names one that has torch, numpy, msgspec and isal.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${ROOFLIGHT_PYTHON:-}
if [ -z "$python" ]; then
    "$here/setup"
    python=$here/../.venv/bin/python
fi
exec "$python" "$here/gpu_check.py" "$@"
