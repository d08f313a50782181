"""A part of a device is a device of its own: a MIG instance, a compute partition, some of the SMs (§10).

Its peaks are the whole device's times its share of the SMs: as many as it reports, else the slices that its
profile names.  Its bandwidth goes by its share of the memory, and is unknown where that is: a part that sees
all of the memory shares the bandwidth with the others, nobody knows how.  Sources, read 2026-12-02:

- NVIDIA MIG user guide, https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html
  (1g.10gb is 1/7 of the SMs, 1/8 of memory and L2; A30 and RTX PRO 6000 have four slices) and
  .../mig-device-names.html (2c.3g.20gb: two of the three compute slices, the memory of all three).
- ROCm/rocm-systems@0da2091 projects/amdsmi/docs/conceptual/partition.md (DPX 2, TPX 3, QPX 4 devices, CPX one
  per XCD; NPS2 to NPS8 give each a part of the stacks; an XCD alone on its stacks has all their bandwidth),
  ROCm/rocm-docs@2b48ffc docs/reference/gpu-specs.rst (38 CU per XCD on CDNA3, 32 on CDNA4).  The driver
  tells each partition its even share of the memory or, where told to, that of all partitions on the same
  stacks (amdgpu_amdkfd_xcp_memory_size in Linux).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from rooflight.hardware.model import Gpu

_GIB = 2**30
_MIB_PER_GIB = 1_024
_MIG = re.compile(
    r"(?P<whole>.+?)[\s/(-]+(?:mig[\s-]+)?"
    r"(?P<profile>(?:(?P<c>\d)c\.)?(?P<g>\d)g\.(?P<gb>\d{1,3})gb(?:[+-][a-z.]{2,8})*)\)?",
    re.IGNORECASE,
)
_MODE = re.compile(r"(?P<whole>.+?)[\s/]+(?P<mode>dpx|tpx|qpx|cpx)", re.IGNORECASE)
_UNITS = re.compile(r"(?P<whole>[^/]+)/(?P<units>\d{1,4})(?:sm|cu)", re.IGNORECASE)
#: A profile of a virtual GPU, "GRID A100-10C" or "NVIDIA A100-4-20C": GB and the letter of its licence.
_VIRTUAL = re.compile(r"-(?:\d+-)?\d+[abcqv]$", re.IGNORECASE)
#: XCDs of a device: CPX makes a device of each.
_XCDS = {"mi300x": 8, "mi325x": 8, "mi300a": 6, "mi350x": 8, "mi355x": 8}
_MODES = {"dpx": 2, "tpx": 3, "qpx": 4}
_MIG_SLICES = {"8.0": 7, "9.0": 7, "10.0": 7, "10.3": 7}
_FOUR_SLICES = ("a30", "rtxpro6000-ws", "rtxpro6000-se", "rtxpro6000-mq")
_MEMORY_SLICES = 8
#: An instance reports up to 1.3 points less of the memory than its slices are (19968 of 40960 MiB are 4/8).
_MIG_TOLERANCE = 0.015
_AMD_TOLERANCE = 0.02


class Part(NamedTuple):
    """What a name says of a part: the name of the whole, and a MIG profile (``c`` of ``g`` compute slices,
    ``gb`` of memory), the ``mode`` of a partition or a number of SMs or CUs (as ids have it)."""

    whole: str
    label: str
    g: int = 0
    c: int = 0
    gb: int = 0
    mode: str = ""
    units: int = 0


def part_of(name: str) -> Part | None:
    """The part that a name tells of, ``None`` for the name of a whole device."""
    if found := _MIG.fullmatch(name):
        c, g = int(found["c"] or found["g"]), int(found["g"])
        return Part(found["whole"], found["profile"].lower(), g, c, int(found["gb"]))
    if found := _MODE.fullmatch(name):
        return Part(found["whole"], found["mode"].lower(), mode=found["mode"].lower())
    if found := _UNITS.fullmatch(name):
        return Part(found["whole"], "", units=int(found["units"]))
    return None


def is_virtual(name: str) -> bool:
    """Whether a name is a virtual GPU's profile.  Its share of the time is not known, so it has no roof."""
    return _VIRTUAL.search(name.strip()) is not None


def cut(whole: Gpu, part: Part, sm_count: int | None = None, memory_bytes: int | None = None) -> Gpu | None:
    """The part of ``whole`` that a name tells of, ``None`` for one that cannot be."""
    if part.units:
        return by_units(whole, sm_count or part.units, memory_bytes)
    if not part.mode:
        return _mig_instance(whole, part, sm_count)
    units = next((cus for cus, mode in modes(whole).items() if mode == part.mode), 0)
    return by_units(whole, sm_count or units, memory_bytes) if units else None


def by_units(whole: Gpu, sm_count: int, memory_bytes: int | None) -> Gpu | None:
    """The part of ``whole`` that reports ``sm_count`` SMs or CUs; ``None`` when it has not so many, or
    cannot be parted so: then it is another board of that name (Jetson Orin has 8, 14 or 16 SMs)."""
    if whole.sm_count is None or not 0 < sm_count < whole.sm_count:
        return None
    units = "CU" if whole.vendor == "AMD" else "SM"
    mode = modes(whole).get(sm_count)
    if mode is None and not _mig_slices(whole):
        return None
    label = mode or f"{sm_count}{units.lower()}"
    memory = _share_of_memory(whole, whole.sm_count // sm_count if mode else 0, memory_bytes)
    share = sm_count / whole.sm_count
    return _part(
        whole,
        label,
        f"{label.upper()} partition" if mode else f"{sm_count} {units}",
        compute=share,
        memory=memory,
        l2=share if mode else memory,
        sm_count=sm_count,
        ground=f"{sm_count} of {whole.sm_count} {units}s",
        shared="; alone at work it may reach more" if mode and memory == share else "",
    )


def modes(whole: Gpu) -> dict[int, str]:
    """The compute partitions of a device: CUs of one -> name of the mode."""
    xcds = _XCDS.get(whole.id)
    if xcds is None or whole.sm_count is None:
        return {}
    counts = {n: mode for mode, n in _MODES.items() if xcds % n == 0} | {xcds: "cpx"}
    return {whole.sm_count // n: mode for n, mode in counts.items()}


def _mig_instance(whole: Gpu, part: Part, sm_count: int | None) -> Gpu | None:
    slices = _mig_slices(whole)
    if not 0 < part.c <= part.g <= slices:
        return None
    total = whole.mem_gb or (whole.mem_mib or 0) / _MIB_PER_GIB
    memory = _nearest_slice(part.gb / total, _MEMORY_SLICES) if total else None
    if memory == 1 and part.g < slices:  # only the instance of all slices has all of the memory
        return None
    share, ground = part.c / slices, f"{part.c} of {slices} compute slices"
    if sm_count is not None and whole.sm_count is not None:
        if not 0 < sm_count <= whole.sm_count:
            return None
        share, ground = sm_count / whole.sm_count, f"{sm_count} of {whole.sm_count} SMs"
    shared = ", shared with the other compute instances" if part.c < part.g else ""
    return _part(
        whole,
        part.label,
        f"MIG {part.label}",
        compute=share,
        memory=memory,
        l2=memory,
        sm_count=sm_count,
        ground=ground,
        shared=shared,
        mem_gb=part.gb,
    )


def _mig_slices(whole: Gpu) -> int:
    """Compute slices of a device that can be parted into MIG instances, 0 of any other."""
    return 4 if whole.id in _FOUR_SLICES else _MIG_SLICES.get(whole.compute, 0)


def _part(
    whole: Gpu,
    label: str,
    what: str,
    *,
    compute: float,
    memory: float | None,
    l2: float | None,
    sm_count: int | None,
    ground: str,
    shared: str = "",
    mem_gb: float | None = None,
) -> Gpu:
    """``whole`` with its figures cut; links and power belong to the whole device."""
    bandwidth = "its bandwidth is unknown" if memory is None else f"{_fraction(memory)} of the memory{shared}"
    return replace(
        whole,
        id=f"{whole.id}/{label}",
        variant=f"{whole.variant}, {what}".removeprefix(", "),
        matrix={d: round(p * compute, 3) for d, p in whole.matrix.items()},
        vector={d: round(p * compute, 3) for d, p in whole.vector.items()},
        sm_count=sm_count,
        mem_bw_gbs=_scaled(whole.mem_bw_gbs, memory),
        mem_gb=mem_gb or _scaled(whole.mem_gb, memory),
        mem_mib=None,
        l2_mib=_scaled(whole.l2_mib, l2),
        llc_mib=None,
        tdp_w=None,
        link=None,
        link_gbs_per_dir=None,
        link_gbs_total=None,
        names=(),
        notes=f"a slice of {whole.id}: {ground}, {bandwidth}",
        slice_of=whole.id,
    )


def _fraction(share: float) -> str:
    n = next((n for n in (1, 2, 3, 4, 6) if (share * n).is_integer()), _MEMORY_SLICES)
    return f"{round(share * n)}/{n}"


def _scaled(value: float | None, share: float | None) -> float | None:
    return None if value is None or share is None else round(value * share, 3)


def _share_of_memory(whole: Gpu, parts: int, memory_bytes: int | None) -> float | None:
    """The share of the memory that a part sees; ``None`` when it sees all of it or an odd share.
    ``parts`` are the partitions that the device is cut into, 0 when it is not cut into equal ones."""
    if not whole.mem_gb or not memory_bytes:
        return None
    seen = memory_bytes / (whole.mem_gb * _GIB)
    if not parts:
        share = _nearest_slice(seen, _MEMORY_SLICES)
        return share if share and share < 1 else None
    domains = {parts} | {n for n in (2, 4, 8) if parts % n == 0}
    return next((1 / n for n in sorted(domains) if abs(seen * n - 1) <= _AMD_TOLERANCE), None)


def _nearest_slice(share: float, slices: int) -> float | None:
    nearest = round(share * slices)
    fits = 0 < nearest <= slices and abs(share - nearest / slices) <= _MIG_TOLERANCE
    return nearest / slices if fits else None
