"""Kernel names as several tools print them, told apart by what they mean.

The profiler prints ``void ns::gemm<float, 4>(float*, float const*)`` where Nsight Compute prints
``void ns::gemm<float, (int)4>(T1 *, const T1 *)``, or ``gemm`` alone; rocprof adds ``.kd``.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rooflight.kernels.signature import LIMIT, parse

_LAMBDA = re.compile(r"\[lambda(\([^()\[\]]{0,4000}\)) \(instance (\d+)\)\]")
_WORDS = re.compile(r"\bconst\b|\s+")
_SUFFIX = re.compile(r"\b(\d+)(?:ull|ul|u|ll|l)\b")
_TRUTH = {"true": "1", "false": "0"}
_TRUTHS = re.compile(r"\b(?:true|false)\b")


@lru_cache(maxsize=16_384)
def canonical(name: str) -> str:
    """The qualified name with its template arguments, however they are written: without parameters, casts,
    spaces and the letters behind numbers.  A name beyond the limit of what is parsed stands for itself."""
    if len(name) > LIMIT:
        return name
    signature = parse(_LAMBDA.sub(r"{lambda\1#\2}", name.removesuffix(" (.kd)")))
    if not signature.path:
        return name
    args = _TRUTHS.sub(lambda m: _TRUTH[m[0]], _SUFFIX.sub(r"\1", signature.args))
    return f"{_WORDS.sub('', signature.path)}<{_WORDS.sub('', args)}>"


@lru_cache(maxsize=16_384)
def base(name: str) -> str:
    """The function's name alone, as Nsight Compute prints it by ``--print-kernel-base function``."""
    return parse(name[:LIMIT].removesuffix(" (.kd)")).path.rpartition("::")[2] or name


def is_base(name: str) -> bool:
    """Whether a tool printed the function's name alone."""
    return not any(sign in name for sign in "<(:[ ")
