"""Fourier transforms.  FLOPs are a convention: 5 N log2 N for a complex transform of N points.

Not counted: what a transform in several passes moves in between; a normalisation.

Source: 5 N log2 N, and half of it for real transforms, is how FFTW's authors scale their figures
(http://www.fftw.org/speed/method.html, read 2026-12-02).
"""

from __future__ import annotations

import math

from rooflight.cost.arguments import Arguments
from rooflight.cost.derivation import named
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Work, pieces
from rooflight.dtypes import BY_NAME, DType

_COMPLEX_OF = {"fp16": "complex32", "fp32": "complex64", "fp64": "complex128"}
_REAL_OF = {c: r for r, c in _COMPLEX_OF.items()}


@cost_model("aten::_fft_c2c", family="fft")
def complex_to_complex(args: Arguments) -> Work:
    """5 N log2 N for each transform, N the points of the transformed dims; reads x, writes as much."""
    x = args.tensor(0)
    flops = _flops(x.numel, product([x.dims[d] for d in _dims(args, x)]), 5.0)
    return Work(flops, pieces(x), pieces(x.like()), x.dtype)


@cost_model("aten::_fft_r2c", family="fft")
def real_to_complex(args: Arguments) -> Work:
    """2.5 N log2 N; one-sided, the last transformed dim of the result has N/2 + 1 complex entries."""
    x, dims = args.tensor(0), _dims(args, args.tensor(0))
    flops = _flops(x.numel, product([x.dims[d] for d in dims]), 2.5)
    out = list(x.dims)
    if args.flag(3) is not False:
        out[dims[-1]] = out[dims[-1]] // 2 + 1
    return Work(flops, pieces(x), pieces(Piece(product(out), _mapped(x, _COMPLEX_OF))), x.dtype)


@cost_model("aten::_fft_c2r", family="fft")
def complex_to_real(args: Arguments) -> Work:
    """2.5 N log2 N, N counted in the result, whose last transformed dim is given."""
    x, dims, last = args.tensor(0), _dims(args, args.tensor(0)), args.integer(3)
    if last is None or last < 0:
        raise Unknown("no_values")
    out = list(x.dims)
    out[dims[-1]] = last
    numel = product(out)
    flops = _flops(numel, product([out[d] for d in dims]), 2.5)
    return Work(flops, pieces(x), pieces(Piece(numel, _mapped(x, _REAL_OF))), x.dtype)


def _dims(args: Arguments, x: Tensor) -> tuple[int, ...]:
    dims, rank = args.ints(1), len(x.dims)
    if not dims or any(not -rank <= d < rank for d in dims):
        raise Unknown("no_values")
    return tuple(d % rank for d in dims)


def _flops(numel: int, n: int, factor: float) -> int:
    if not numel or not n:
        return 0
    return named(round(factor * numel * math.log2(n)), f"{factor:g} x {numel:,} x log2({n:,})")


def _mapped(x: Tensor, table: dict[str, str]) -> DType | None:
    name = table.get(x.dtype.name) if x.dtype else None
    return BY_NAME[name] if name else None
