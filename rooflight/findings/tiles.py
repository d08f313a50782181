"""How the tiles of a matrix product fit its sizes."""

from __future__ import annotations

import json
import re
from math import ceil, prod
from typing import Any

from rooflight.roofline.groups import Group

#: MT128x256x32 (Tensile), tilesize128x128x64 (cuDNN), nvjet_tst_64x8_64x16_4x1 (cuBLAS: tile, then depth and
#: stages, then cluster), 128x256_ and 128x128x64_ (CUTLASS, cuBLAS).
_TILE = re.compile(
    r"MT(\d{1,3})x(\d{1,3})x|tilesize(\d{2,3})x(\d{2,3})x|^nvjet_(?:[a-z]\w*?_)?(\d{1,3})x(\d{1,3})(?=_|x)"
    r"|_(\d{2,3})x(\d{2,3})(?:x\d{2,3})?(?=_|$)",
    re.ASCII,
)
#: The places of the two factors among the arguments.
_FACTORS = {
    "aten::mm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::bmm": (0, 1),
    "aten::baddbmm": (1, 2),
    "aten::_scaled_mm": (0, 1),
}


def tile_of(name: str) -> tuple[int, int] | None:
    """The part of the result that a block makes, by the kernel's name: rows and columns, or the other way
    round, since libraries differ in which they name first."""
    found = _TILE.search(name[:500])
    if found is None:
        return None
    rows, columns = (int(n) for n in found.groups() if n is not None)
    return rows, columns


def sizes_of(g: Group) -> tuple[int, int] | None:
    """Rows and columns of the result of a product."""
    places = _FACTORS.get(g.op or "")
    if places is None:
        return None
    left, right = (_dims(g.dims, place) for place in places)
    if len(left) < 2 or len(right) < 2 or min(*left, *right) < 1:
        return None
    return left[-2], right[-1]


def filled(sizes: tuple[int, int], tile: tuple[int, int]) -> float:
    """The share of the tiles that the result fills, whichever way round they lie better."""
    ways = (tile, tile[::-1])
    return max(prod(n / (ceil(n / t) * t) for n, t in zip(sizes, way, strict=True)) for way in ways)


def _dims(text: str | None, place: int) -> list[int]:
    try:
        dims: Any = json.loads(text or "[]")[place]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return dims if isinstance(dims, list) and all(isinstance(d, int) for d in dims) else []
