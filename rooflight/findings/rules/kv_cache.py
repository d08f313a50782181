"""Attention of one new token over all that came before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from rooflight.findings.evidence import amount
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.findings.scores import Sizes, runs_of
from rooflight.roofline.groups import Group
from rooflight.trace.tables import distinct

_SHARE = 0.1
_ATTENTION = frozenset({"attention_fwd", "attention_decode"})
#: By name these have one query for each sequence, whatever was recorded.
_DECODE = "attention_decode"
_BYTES = {"c10::BFloat16": 2, "c10::Half": 2, "float": 4, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1}
_GB = 1e9


@rule(
    "kv-cache-reads",
    "Each new token reads the whole key-value cache",
    regime="memory",
    why="With one query for each sequence the attention reads every key and value once for a handful of "
    "FLOPs: the memory is all that counts, and the cache grows with every token.  Unlike weights, which "
    "the requests of a batch share, each request has a cache of its own.",
    fix="A paged cache (vLLM, SGLang), so that more requests fit and the weights are read for all of them at "
    "once; keys and values in fp8 or int8; fewer key-value heads (GQA, MLA) or a sliding window; shared "
    "prefixes read once (cascade attention).",
    false_alarms="Where one answer at a time is wanted as soon as can be and its context is long, these "
    "reads are the work.  By name alone a kernel may also serve prompts; one learned query that pools a "
    "sequence looks the same and has no cache.",
)
def kv_cache(facts: Facts) -> Iterator[Found]:
    """Attention kernels with one query for each sequence, by their shapes, else by their name, and batched
    products of one row on both sides of a softmax, that take a tenth of the time or more."""
    reads = {i: _read(g) for i, g, _ in facts.kernels() if _is_decode(g)} | _products(facts)
    if not reads:
        return
    when = facts.instants_of(reads)
    if sum(facts.group_ns(i) for i in reads) < _SHARE * facts.wall_ns:
        return
    seen = Seen(f"{amount(facts, when)}; {_bytes(facts, reads)}", groups=facts.most(reads))
    assumption = "how the cache is stored, and what could share a pass, is not recorded"
    yield Found.over(when, (seen,), None, assumption)


def _bytes(facts: Facts, reads: dict[int, int | None]) -> str:
    known = {i: size for i, size in reads.items() if size is not None}
    if not known:
        return "how many bytes of keys and values they read is not recorded"
    total = sum(size * facts.launches(i) for i, size in known.items())
    part = "" if len(known) == len(reads) else "those of known shapes "
    each = f"{total / facts.counted / _GB:.3g} GB{' per step' if facts.spans else ''}"
    return f"{part}read {each} of keys and values"


def _products(facts: Facts) -> dict[int, int | None]:
    """The products of attention in single kernels, one row each, and the bytes of the keys or values that
    they read."""
    sizes, rows = Sizes.of(facts), facts.kernel_rows
    runs, of = runs_of(facts, rows, sizes), facts.groups.of_event[rows]
    # One query, and more than one key.
    one = (sizes.rows[of[runs.first]] == 1) & (sizes.right[of[runs.last]] > sizes.out[of[runs.last]])
    found = distinct(of[np.concatenate((runs.first[one], runs.last[one]))]).tolist()
    return {i: round(int(sizes.right[i]) * float(sizes.width[i])) for i in found}


def _is_decode(g: Group) -> bool:
    if g.name.family not in _ATTENTION:
        return False
    query, keys = _tensor(g.dims, 0), _tensor(g.dims, 1)
    if len(query) != 4 or len(keys) != 4:
        return g.name.family == _DECODE
    # [batch, heads, length, size] or [batch, length, heads, size]: no layout has fewer query than key heads.
    return any(query[axis] == 1 < keys[axis] for axis in (1, 2))


def _read(g: Group) -> int | None:
    """Bytes of keys and values of a launch; ``None`` where they are not recorded."""
    tensors, width = [_tensor(g.dims, place) for place in (1, 2)], _width(g.types)
    if width is None or any(len(t) != 4 for t in tensors):
        return None
    return width * sum(prod(t) for t in tensors)


def _tensor(text: str | None, place: int) -> list[int]:
    dims = _item(text, place)
    found = isinstance(dims, list) and all(isinstance(d, int) and 0 <= d < 1 << 40 for d in dims)
    return dims if found else []


def _width(text: str | None) -> int | None:
    name = _item(text, 1)
    return _BYTES.get(name) if isinstance(name, str) else None


def _item(text: str | None, place: int) -> Any:
    try:
        return json.loads(text or "[]")[place]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
