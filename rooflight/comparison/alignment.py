"""Which kernel group of one run is which of the other.

Rounds of pairing, from the surest on: what is left of both runs after a round goes into the next.  Within a
round groups are looked up by what the round compares; of several alike the longest goes with the longest.
Nothing depends on the order of rows, or on which run is called A.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

from msgspec import Struct

from rooflight.comparison.exact import in_one_unit
from rooflight.comparison.groups import Group

#: What a pair is called, by how it was found; the last two have one side only.
MATCHES = ("same", "renamed", "retyped", "moved", "reshaped", "new", "vanished")
#: Families that say nothing of what a kernel does.
_NO_FAMILY = frozenset({None, "other", "triton_unknown"})


class Pair(Struct, frozen=True, gc=False):
    """A group of A and what it is in B; ``None`` where it is not there."""

    match: str
    a: Group | None
    b: Group | None

    @property
    def shown(self) -> Group:
        """The side by which it is named: B's, where it is there."""
        found = self.b or self.a
        if found is None:
            raise ValueError("a pair has a side at least")
        return found


def align(a: Sequence[Group], b: Sequence[Group]) -> list[Pair]:
    """Every group of both runs in exactly one pair; in n log n."""
    left, right, found = _longest_first(a), _longest_first(b), list[Pair]()
    for match, key in _ROUNDS:
        pairs = _paired(match, key, left, right)
        left, right = _without(left, (p.a for p in pairs)), _without(right, (p.b for p in pairs))
        found += pairs
    found += [Pair("vanished", g, None) for g in left]
    return found + [Pair("new", None, g) for g in right]


def _longest_first(groups: Sequence[Group]) -> list[Group]:
    times, _ = in_one_unit([g.ns for g in groups])
    order = sorted(range(len(groups)), key=lambda i: (-times[i], groups[i].key.text))
    return [groups[i] for i in order]


def _without(groups: Sequence[Group], taken: Iterable[Group | None]) -> list[Group]:
    keys = {g.key for g in taken if g is not None}
    return [g for g in groups if g.key not in keys]


def _same(g: Group) -> Hashable:
    return g.key


def _renamed(g: Group) -> Hashable:
    """Another kernel of the same family for the same call: a heuristic or a library chose anew."""
    k = g.key
    return None if _nameless(g) else (k.kind, k.op, k.module, k.dims, k.types, g.row.family)


def _replaced(g: Group) -> Hashable:
    """Whatever kernel does the same call; without dims a call is not known well enough."""
    k = g.key
    return None if k.op is None or k.dims is None else (k.kind, k.op, k.module, k.dims, k.types)


def _retyped(g: Group) -> Hashable:
    k = g.key
    return None if _nameless(g) or k.dims is None else (k.kind, k.op, k.module, k.dims, g.row.family)


def _retyped_whatever(g: Group) -> Hashable:
    k = g.key
    return None if k.op is None or k.dims is None else (k.kind, k.op, k.module, k.dims)


def _moved(g: Group) -> Hashable:
    """The same kernel on the same input in another module."""
    k = g.key
    return None if k.op is None else (k.kind, k.name, k.op, k.dims, k.types)


def _reshaped(g: Group) -> Hashable:
    k = g.key
    return None if k.op is None else (k.kind, k.name, k.op, k.module)


def _reshaped_in_module(g: Group) -> Hashable:
    k = g.key
    return None if _nameless(g) else (k.kind, g.row.family, k.op, k.module)


def _reshaped_elsewhere(g: Group) -> Hashable:
    k = g.key
    return None if _nameless(g) else (k.kind, g.row.family, k.op)


def _nameless(g: Group) -> bool:
    return g.key.op is None or g.row.family in _NO_FAMILY


_Key = Callable[[Group], Hashable]
_ROUNDS: tuple[tuple[str, _Key], ...] = (
    ("same", _same),
    ("renamed", _renamed),
    ("renamed", _replaced),
    ("retyped", _retyped),
    ("retyped", _retyped_whatever),
    ("moved", _moved),
    ("reshaped", _reshaped),
    ("reshaped", _reshaped_in_module),
    ("reshaped", _reshaped_elsewhere),
)


def _paired(match: str, key: _Key, a: Sequence[Group], b: Sequence[Group]) -> list[Pair]:
    """The pairs of a round."""
    mine, theirs = _buckets(key, a), _buckets(key, b)
    # Of what has one key the shorter list ends the pairing.
    return [Pair(match, x, y) for k in mine if k in theirs for x, y in zip(mine[k], theirs[k], strict=False)]


def _buckets(key: _Key, groups: Sequence[Group]) -> dict[Hashable, list[Group]]:
    """The groups that the round can tell, by key, in their order."""
    buckets: dict[Hashable, list[Group]] = defaultdict(list)
    for g in groups:
        if (k := key(g)) is not None:
            buckets[k].append(g)
    return buckets
