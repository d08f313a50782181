"""From a device's marketing name to its entry, by whole tokens (DEFINITIONS §10).

A name matches an entry when it is one of the names seen from drivers, or when it holds every token of
the model and nothing that the entry does not say: "RTX A1000" is no A100 and "H100 PCIe" no "H100 NVL",
since no token is ever a part of another.  Two entries that match are none.  A name that goes on with a MIG
profile or a partition's mode is a slice of the entry before it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from rooflight.hardware.catalogue import by_id, gpus
from rooflight.hardware.model import Gpu
from rooflight.hardware.slices import cut, part_of

_TOKEN = re.compile(r"[a-z0-9]+")
_LONGEST = 256
#: Vendor and brand words, which say nothing about the model.
_BRANDS = {
    "nvidia": "NVIDIA",
    "tesla": "NVIDIA",
    "geforce": "NVIDIA",
    "amd": "AMD",
    "instinct": "AMD",
    "radeon": "AMD",
    "intel": "Intel",
    "r": "",
    "tm": "",
}
#: Words of a catalogue name that a driver or a person may leave out.
_OPTIONAL = frozenset({"generation", "data", "center", "gpu", "jetson"})


class _Entry(NamedTuple):
    gpu: Gpu
    model: frozenset[str]
    says: frozenset[str]


def find(name: str) -> Gpu | None:
    """The entry that ``name`` (or an id of the catalogue) stands for, or the slice of one; ``None`` when
    there is none or more than one.  Never a default."""
    text = shortened(name)
    if part := part_of(text):
        whole = _whole(part.whole)
        return cut(whole, part) if whole else None
    return _whole(text)


def shortened(name: str) -> str:
    """As much of a name as is looked at."""
    return name[:_LONGEST].strip()


def _whole(text: str) -> Gpu | None:
    text = text.strip()
    if exact := by_id().get(text):
        return exact
    said = tokens(text)
    if not said:
        return None
    if seen := _seen().get(said):
        return seen
    matches = [e.gpu for e in _entries() if e.model <= said <= e.says]
    return matches[0] if len(matches) == 1 else None


def alike(name: str) -> list[Gpu]:
    """The entries that say every word of a name which is too short to be one of them; none for a name
    that says more than they do."""
    said = tokens(name[:_LONGEST]) - _OPTIONAL
    return [e.gpu for e in _entries() if said and said <= e.says]


def tokens(name: str) -> frozenset[str]:
    """The tokens of a name without its brand words."""
    return frozenset(_TOKEN.findall(name.lower())).difference(_BRANDS)


def vendor_of(name: str) -> str | None:
    """The vendor that the name's brand words tell, if any."""
    words = _TOKEN.findall(name[:_LONGEST].lower())
    return next((_BRANDS[w] for w in words if _BRANDS.get(w)), None)


@cache
def _seen() -> dict[frozenset[str], Gpu]:
    """Names that drivers report.  Profilers see a GCD or a stack, so whole cards have no names."""
    return {tokens(n): g for g in gpus() for n in g.names}


@cache
def _entries() -> tuple[_Entry, ...]:
    return tuple(_entry(g) for g in gpus() if g.names)


def _entry(gpu: Gpu) -> _Entry:
    model = tokens(gpu.name)
    texts = " ".join((gpu.variant, gpu.mem_type or "", *gpu.names))
    says = model | tokens(texts) | _OPTIONAL
    # "A100-SXM-80GB" and "A100-SXM4-80GB" are the same board.
    says |= {"sxm"} if any(t.startswith("sxm") for t in says) else set()
    return _Entry(gpu, model - _OPTIONAL, says)
