"""How a number came about, for those who ask: whole numbers that remember what they were made of.

A formula is plain arithmetic on the sizes of its arguments.  Given sizes that remember, the same formula
answers counts that can be told in words, and none has to say its derivation itself.  Nobody else pays:
outside :func:`remembering` all numbers are plain.

Example: with A = [64, 128] and B = [128, 32], 2 * m * n * k is "2 x A[0] x B[1] x A[1]" in symbols and
"2 x 64 x 32 x 128" in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_remembers: ContextVar[bool] = ContextVar("remembers", default=False)
_LONG_SUM = 6  # terms; the optimizers' lists have hundreds


@contextmanager
def remembering() -> Iterator[None]:
    """Numbers that are named in here remember."""
    token = _remembers.set(True)
    try:
        yield
    finally:
        _remembers.reset(token)


def named(value: int, name: str) -> int:
    """``value``, to be called ``name`` in words; what it was made of is told apart from where it is used."""
    if not _remembers.get():
        return value
    made = (value,) if isinstance(value, Derived) and value.parts else ()
    return Derived(value, name=name, parts=made)


def unnamed(value: int) -> int:
    """``value`` as a term of its own, which is told as the number that it is."""
    return value if isinstance(value, Derived) or not _remembers.get() else Derived(value)


class Derived(int):
    """A whole number with its ``name``, or the two ``parts`` that its ``sign`` joined.  A name and one
    part: a figure with a word of its own, and what that is made of."""

    name: str
    sign: str
    parts: tuple[int, ...]

    def __new__(cls, value: int, sign: str = "", parts: tuple[int, ...] = (), name: str = "") -> Derived:
        made = super().__new__(cls, value)
        made.sign, made.parts, made.name = sign, parts, name
        return made

    def __mul__(self, other: int) -> int:
        return _joined(self, "x", other)

    def __rmul__(self, other: int) -> int:
        return _joined(other, "x", self)

    def __add__(self, other: int) -> int:
        return _joined(self, "+", other)

    def __radd__(self, other: int) -> int:
        return _joined(other, "+", self)

    def __sub__(self, other: int) -> int:
        return _joined(self, "-", other)

    def __rsub__(self, other: int) -> int:
        return _joined(other, "-", self)

    def __floordiv__(self, other: int) -> int:
        return _joined(self, "//", other)

    def __rfloordiv__(self, other: int) -> int:
        return _joined(other, "//", self)


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "x": int.__mul__,
    "+": int.__add__,
    "-": int.__sub__,
    "//": int.__floordiv__,
}


def _joined(a: int, sign: str, b: int) -> int:
    if not isinstance(a, int) or not isinstance(b, int):
        return NotImplemented
    value = _ARITHMETIC[sign](a, b)
    if sign == "x":
        # A plain 0 or 1 is a condition (k > 0), no factor.
        for plain, other in ((a, b), (b, a)):
            if not isinstance(plain, Derived) and plain in (0, 1):
                return other if plain else value
    elif not isinstance(b, Derived) and b == (1 if sign == "//" else 0):
        return a
    elif sign == "+" and not isinstance(a, Derived) and a == 0:
        return b
    return Derived(value, sign, (a, b))


def symbols(n: int) -> str:
    """``n`` by the names of what it was made of."""
    return _written(n, lambda leaf: leaf.name or f"{leaf:,}")


def numbers(n: int) -> str:
    """``n`` by the numbers that it was made of."""
    return _written(n, lambda leaf: f"{leaf:,}")


def where(n: int) -> dict[str, int]:
    """The figures in ``n`` that have a word of their own, with what each is made of."""
    found: dict[str, int] = {}
    waiting = [n]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Derived) and not _is_long(part):
            if part.name and part.parts:
                found[part.name] = part.parts[0]
            waiting.extend(reversed(part.parts))
    return found


def _written(n: int, leaf: Callable[[Derived], str]) -> str:
    if not isinstance(n, Derived):
        return f"{n:,}"
    if n.name or not n.parts:
        return leaf(n)
    if n.sign == "+":
        terms = _terms(n, "+")
        if len(terms) > _LONG_SUM:
            # The sum is a number of its own: its terms would fill the screen.
            return leaf(Derived(n, name=f"(sum of {len(terms):,} terms)"))
        return " + ".join(_written(t, leaf) for t in terms)
    if n.sign == "x":
        return " x ".join(_enclosed(f, leaf, "+-/") for f in _terms(n, "x"))
    left, right = n.parts
    weak = "+-" if n.sign == "//" else ""
    first = _enclosed(left, leaf, weak)
    return f"{first} {n.sign} {_enclosed(right, leaf, weak + ('x/' if n.sign == '//' else '+-'))}"


def _enclosed(n: int, leaf: Callable[[Derived], str], weaker: str) -> str:
    text = _written(n, leaf)
    if not isinstance(n, Derived) or n.name or not n.parts or _is_long(n):
        return text
    return f"({text})" if n.sign[0] in weaker else text


def _is_long(n: Derived) -> bool:
    return n.sign == "+" and len(_terms(n, "+")) > _LONG_SUM


def _terms(n: int, sign: str) -> list[int]:
    """The operands of nested sums or products, in order; without recursion, as lists may be long."""
    found: list[int] = []
    waiting = [n]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Derived) and part.sign == sign and not part.name:
            waiting.extend(reversed(part.parts))
        else:
            found.append(part)
    return found
