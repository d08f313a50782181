"""What a reader takes away from a comparison, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from rooflight.comparison.comparability import NOT_COMPARABLE
from rooflight.comparison.comparison import Comparison
from rooflight.comparison.significance import CANNOT_SAY, WITHIN_NOISE

#: Parts as they are spoken of.
NAMES = {
    "compute": "compute-bound kernels",
    "memory": "memory-bound kernels",
    "latency": "latency-bound kernels",
    "unknown": "kernels of unknown cost",
    "communication": "exposed communication",
    "copy": "exposed copies",
    "input": "waiting for input",
    "sync": "waiting for the device (sync)",
    "dispatch": "dispatch",
    "host": "other host work",
    "launch": "launch",
    "dependency": "dependencies",
    "unknown_idle": "idle time of unknown cause",
}
#: From this share of the difference on a part is all of it, or worth a word.
_ALL, _SOME = Fraction(9, 10), Fraction(1, 10)


def headline(c: Comparison) -> list[str]:
    """The first sentences: what speaks against comparing, the difference, where it comes from."""
    return [*_warnings(c), _total(c), *_cause(c)]


def ms(ns: Fraction) -> str:
    """Nanoseconds as milliseconds with sensible precision."""
    value = float(ns) / 1e6
    return (
        f"{value:,.1f} ms"
        if abs(value) >= 100
        else f"{value:.2f} ms"
        if abs(value) >= 1
        else f"{value:.3f} ms"
    )


def signed_ms(ns: Fraction) -> str:
    """As :func:`ms`, with its sign; a minus that is one."""
    text = ms(abs(ns))
    return text if not ns else f"+{text}" if ns > 0 else f"−{text}"


def signed_pct(part: Fraction, whole: Fraction) -> str:
    """A share with its sign; a dash of nothing."""
    if not whole:
        return "–"
    value = float(100 * part / whole)
    return f"{value:+.1f} %".replace("-", "−") if part else "0.0 %"


def _warnings(c: Comparison) -> Iterator[str]:
    against = [n.words for n in c.notes if n.weight == NOT_COMPARABLE]
    if against:
        yield f"Not comparable: {'; '.join(against)}."


def _total(c: Comparison) -> str:
    total, unit = c.total, "per step" if c.by_step else "in the recording"
    if not total.difference:
        return f"A and B take the same: {ms(total.a)} {unit}."
    longer = "longer" if total.difference > 0 else "less"
    share = f"{abs(float(100 * total.difference / total.a)):.1f} % {longer}" if total.a else longer
    means = f"{ms(total.a)} → {ms(total.b)} {unit} ({signed_ms(total.difference)})"
    return f"B takes {share}: {means}, {total.significance.words}."


def _cause(c: Comparison) -> Iterator[str]:
    """The part that makes most of the difference, and the one that most goes against it."""
    total = c.total.difference
    if not total:
        return
    sign = 1 if total > 0 else -1
    along = {p: sign * x.difference for p, x in c.parts.items()}
    most = max(along, key=lambda p: along[p])
    share = along[most] / (sign * total)
    how = (
        "The whole difference is"
        if _ALL <= share <= 2 - _ALL
        else "Most of it is"
        if share > 1 / 2
        else "First"
    )
    sentence = f"{how} {NAMES[most]} ({_said(c, most)})"
    against = min(along, key=lambda p: along[p])
    if -along[against] >= _SOME * abs(total):
        sentence += f"; against it goes {NAMES[against]} ({_said(c, against)})"
    yield sentence + "."


def _said(c: Comparison, part: str) -> str:
    change = c.parts[part]
    text = signed_ms(change.difference)
    verdict = change.significance.verdict
    if verdict == WITHIN_NOISE:
        return f"{text}, within the noise"
    return text if verdict == CANNOT_SAY else f"{text}, {verdict}"
