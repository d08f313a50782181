"""What makes two runs hard to compare, or impossible: said before any difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from rooflight.comparison.recordings import Recording
from rooflight.comparison.side import Side
from rooflight.kernels import MATRIX_FAMILIES
from rooflight.protocol import Ceiling, Roofs

#: By weight: the two are not the same thing; read with care; good to know.
NOT_COMPARABLE, CAUTION, REMARK = "not_comparable", "caution", "remark"
WEIGHTS = (NOT_COMPARABLE, CAUTION, REMARK)
#: What a trace says of itself rather than of the software that it was recorded with.
_NO_SOFTWARE = frozenset({"trace_id"})
#: Ceilings that differ by less than this do not move a regime.
_SAME_ROOF = 0.005
_LISTED = 4
#: A step of so many medians is no step like the others: a warm-up, a checkpoint, a neighbour.
_SLOW = Fraction(3, 2)


@dataclass(frozen=True, slots=True)
class Note:
    """One reason: ``code`` and ``weight`` are of closed lists, ``a`` and ``b`` what each run has."""

    code: str
    weight: str
    words: str
    a: str | None = None
    b: str | None = None


def notes(a: Side, b: Side) -> list[Note]:
    """All reasons, the heaviest first."""
    found = [
        *_devices(a, b),
        *_dtypes(a, b),
        *_sizes(a, b),
        *_basis(a, b),
        *_quality("A", a),
        *_quality("B", b),
        *_slow_steps("A", a),
        *_slow_steps("B", b),
        *_software(a, b),
        *_roofs(a, b),
        *_groups(a, b),
        *_hosts(a, b),
    ]
    return sorted(found, key=lambda n: WEIGHTS.index(n.weight))


def comparable(several: Sequence[Note]) -> bool:
    """Whether nothing speaks against comparing at all."""
    return all(n.weight != NOT_COMPARABLE for n in several)


def _devices(a: Side, b: Side) -> Iterator[Note]:
    names = [_all(s, _device) for s in (a, b)]
    if a.recordings[0].on_cpu != b.recordings[0].on_cpu:
        words = "one run worked on a GPU, the other on the CPU: their parts are not the same things"
        yield Note("device_kind", NOT_COMPARABLE, words, *names)
    elif names[0] is None or names[1] is None:
        what = "CPU" if a.recordings[0].on_cpu else "GPU"
        words = f"the {what} model is not recorded on {_which(*names)}: it may be another"
        yield Note("gpu_unknown", REMARK if what == "CPU" else CAUTION, words, *names)
    elif names[0] != names[1]:
        yield Note("gpu_model", NOT_COMPARABLE, f"another device: {names[0]} against {names[1]}", *names)


def _device(r: Recording) -> str | None:
    return (r.roofs.gpu_id if r.roofs else None) or r.name


def _dtypes(a: Side, b: Side) -> Iterator[Note]:
    types = [_matrix_dtype(s) for s in (a, b)]
    if None not in types and types[0] != types[1]:
        words = f"matrix work in another number type: mostly {types[0]} against {types[1]}"
        yield Note("dtype", NOT_COMPARABLE, words, *types)


def _matrix_dtype(s: Side) -> str | None:
    """The number type that most matrix kernel time is in."""
    time: dict[str, float] = {}
    for r in s.recordings:
        for k in r.rows:
            if k.dtype is not None and k.family in MATRIX_FAMILIES:
                time[k.dtype] = time.get(k.dtype, 0.0) + k.time_us
    return min(time, key=lambda t: (-time[t], t), default=None)


def _sizes(a: Side, b: Side) -> Iterator[Note]:
    world = [s.document.world_size or len(s.recordings) for s in (a, b)]
    if world[0] != world[1]:
        words = f"another number of processes: {world[0]} against {world[1]}"
        yield Note("world_size", NOT_COMPARABLE, words, str(world[0]), str(world[1]))
        return
    ranks = [", ".join(str(r.rank.rank) for r in s.recordings[:_LISTED]) for s in (a, b)]
    if [r.rank.rank for r in a.recordings] != [r.rank.rank for r in b.recordings]:
        counts = [f"{len(s.recordings)} ({named})" for s, named in zip((a, b), ranks, strict=True)]
        words = f"other ranks were recorded: {counts[0]} against {counts[1]} of {world[0]}"
        yield Note("ranks", CAUTION, words, *ranks)


def _basis(a: Side, b: Side) -> Iterator[Note]:
    lacking = [not all(r.steps for r in s.recordings) for s in (a, b)]
    if lacking[0] != lacking[1]:
        which = "A" if lacking[0] else "B"
        words = f"{which} has no steps: whole recordings are compared, whatever work they hold"
        yield Note("no_steps", NOT_COMPARABLE, words)
    elif all(lacking):
        words = "no steps on either side: whole recordings are compared, which takes the same work in both"
        yield Note("no_steps", CAUTION, words)
    for which, s in (("A", a), ("B", b)):
        if s.by_step and any(r.inferred for r in s.recordings):
            yield Note("inferred_steps", CAUTION, f"the steps of {which} are inferred, nobody marked them")


def _quality(which: str, s: Side) -> Iterator[Note]:
    for r in s.recordings:
        if r.rank.verdict_withheld is None and r.rank.grade != "unreliable":
            continue
        why = r.rank.verdict_withheld or "; ".join(r.rank.grade_reasons) or "unreliable recording"
        rank = f" (rank {r.rank.rank})" if len(s.recordings) > 1 else ""
        yield Note("unreliable", CAUTION, f"{which}{rank} allows no verdict: {why}")
        return


def _slow_steps(which: str, s: Side) -> Iterator[Note]:
    """Steps that pull the mean, and the parts with it, away from the typical step."""
    if not s.steps:
        return
    usual = median(Fraction(t) for t in s.steps)
    slow = sum(t > _SLOW * usual for t in s.steps)
    if slow:
        words = f"{slow} of {len(s.steps)} steps of {which} took over 1.5 times the median and pull the mean"
        yield Note("slow_steps", CAUTION, words)


def _software(a: Side, b: Side) -> Iterator[Note]:
    left, right = (_versions(s) for s in (a, b))
    for key in sorted(left.keys() & right.keys()):
        if left[key] != right[key]:
            words = f"another {key}: {left[key]} against {right[key]}"
            yield Note(f"software.{key}", CAUTION, words, left[key], right[key])
    for which, only, other in (("A", left, right), ("B", right, left)):
        if lone := sorted(only.keys() - other.keys()):
            listed = ", ".join(f"{key} {only[key]}" for key in lone[:_LISTED])
            yield Note("software_unknown", REMARK, f"recorded in {which} only: {listed}")


def _versions(s: Side) -> dict[str, str]:
    software = s.recordings[0].rank.software
    return {key: text for key, text in software.items() if key not in _NO_SOFTWARE}


def _roofs(a: Side, b: Side) -> Iterator[Note]:
    """Other ceilings under the same device move regimes and roof fractions though no kernel did."""
    one, other = a.recordings[0].roofs, b.recordings[0].roofs
    if one is None or other is None or one.gpu_id is None or one.gpu_id != other.gpu_id:
        return
    moved = [name for name in _ceilings(one) if not _alike(_ceilings(one)[name], _ceilings(other).get(name))]
    if moved:
        words = (
            f"the roofs of the same device differ ({', '.join(moved[:_LISTED])}): regimes may move with them"
        )
        yield Note("roofs", CAUTION, words)


def _ceilings(roofs: Roofs) -> dict[str, Ceiling]:
    named = {"memory": roofs.memory, "link": roofs.link, "pcie": roofs.pcie}
    return {**roofs.compute, **{name: c for name, c in named.items() if c is not None}}


def _alike(one: Ceiling, other: Ceiling | None) -> bool:
    if other is None or one.practical is None or other.practical is None:
        return True
    return abs(one.practical - other.practical) <= _SAME_ROOF * max(one.practical, other.practical)


def _groups(a: Side, b: Side) -> Iterator[Note]:
    lacking = [which for which, s in (("A", a), ("B", b)) if s.groups is None]
    if lacking:
        which = " and ".join(lacking)
        words = f"kernel groups are not compared: {which} lacks their exclusive time; analyse the trace anew"
        yield Note("no_exclusive", CAUTION, words)


def _hosts(a: Side, b: Side) -> Iterator[Note]:
    hosts = [_all(s, lambda r: r.rank.host) for s in (a, b)]
    if None not in hosts and hosts[0] != hosts[1]:
        yield Note("host", REMARK, f"another machine: {hosts[0]} against {hosts[1]}", *hosts)


def _all(s: Side, of: Callable[[Recording], str | None]) -> str | None:
    """What the recordings have, each once; ``None`` where one does not tell."""
    values = [of(r) for r in s.recordings]
    if None in values:
        return None
    distinct = sorted({v for v in values if v is not None})
    more = f" and {len(distinct) - _LISTED} more" if len(distinct) > _LISTED else ""
    return ", ".join(distinct[:_LISTED]) + more


def _which(a: str | None, b: str | None) -> str:
    return "either side" if a is None and b is None else "one side"
