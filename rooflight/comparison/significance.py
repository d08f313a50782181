"""Whether a difference is larger than the noise of the steps, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rooflight.comparison.ranktest import Shift, least_p, p_value, shift

SIGNIFICANT, LIKELY, WITHIN_NOISE, CANNOT_SAY = "significant", "likely", "within_noise", "cannot_say"
#: Chances of claiming a difference where there is none.
SIGNIFICANT_P, LIKELY_P = 0.05, 0.10
MIN_STEPS = 3


@dataclass(frozen=True, slots=True)
class Significance:
    """``verdict`` with its ``p`` (corrected where several parts were tested), and the same in words."""

    verdict: str
    p: float | None
    shift: Shift | None
    words: str


def of_total(a: Sequence[int], b: Sequence[int]) -> Significance:
    """Of the step times themselves, in ns."""
    if lacking := _lacking(a, b):
        return Significance(CANNOT_SAY, None, None, f"cannot say: {lacking}")
    return _judged(p_value(a, b), a, b)


def of_parts(a: Mapping[str, Sequence[int]], b: Mapping[str, Sequence[int]]) -> dict[str, Significance]:
    """Of each part; Holm's correction (Scandinavian Journal of Statistics 6, 1979) keeps the chance of any
    false claim over all of them at the level of one.  A part that takes no time on either side is none."""
    tested = [p for p in a if any(a[p]) or any(b[p])]
    lacking = {p: _lacking(a[p], b[p]) or _too_few(a[p], b[p], len(tested)) for p in tested}
    known = [p for p in tested if not lacking[p]]
    corrected = _holm({p: p_value(a[p], b[p]) for p in known})
    found = {p: Significance(CANNOT_SAY, None, None, f"cannot say: {lacking[p]}") for p in tested}
    found |= {p: _judged(corrected[p], a[p], b[p]) for p in known}
    return {p: found.get(p, Significance(WITHIN_NOISE, None, None, "takes no time")) for p in a}


def without_steps(words: str) -> Significance:
    """Where there is nothing that a noise could be measured by."""
    return Significance(CANNOT_SAY, None, None, f"cannot say: {words}")


def contrary(s: Significance, difference: int) -> Significance:
    """The same, with the remark that the typical step moved the other way than the mean (``difference`` is
    its sign), where it did: a few steps far out make the mean then."""
    if s.shift is None or s.shift.ns * difference >= 0:
        return s
    return replace(s, words=f"{s.words}; a few steps make the mean, the typical step moves the other way")


def _lacking(a: Sequence[int], b: Sequence[int]) -> str | None:
    few = [f"{name} has {len(steps)}" for name, steps in (("A", a), ("B", b)) if len(steps) < MIN_STEPS]
    return f"it takes {MIN_STEPS} steps on each side, {' and '.join(few)}" if few else None


def _too_few(a: Sequence[int], b: Sequence[int], parts: int) -> str | None:
    if least_p(len(a), len(b)) * parts <= LIKELY_P:
        return None
    return f"{len(a)} and {len(b)} steps are too few to tell one of {parts} parts from noise"


def _judged(p: float, a: Sequence[int], b: Sequence[int]) -> Significance:
    of = f"the noise of {len(a)} and {len(b)} steps ({p_words(p)})"
    if p <= SIGNIFICANT_P:
        verdict, words = SIGNIFICANT, f"larger than {of}"
    elif p <= LIKELY_P:
        verdict, words = LIKELY, f"probably larger than {of}"
    else:
        verdict, words = WITHIN_NOISE, f"within {of}"
    return Significance(verdict, p, shift(a, b), words)


def p_words(p: float) -> str:
    return f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"


def _holm(p: Mapping[str, float]) -> dict[str, float]:
    """The least goes times the number of all, the next times one less, never below the one before."""
    corrected, so_far = {}, 0.0
    for done, name in enumerate(sorted(p, key=lambda n: p[n])):
        so_far = max(so_far, min(1.0, p[name] * (len(p) - done)))
        corrected[name] = so_far
    return corrected
