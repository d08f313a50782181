"""Itanium-mangled names (`_ZN...`), as far as a reader needs them: identifiers and builtin types.

Not a demangler: a lexer that never looks back, so that any text costs one pass.  It stops at what it
does not know and gives what it has.  Grammar: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NUMBER = re.compile(r"\d+")
_LITERAL_END = re.compile(r"n?[\da-f]*E")
_SUBSTITUTION = re.compile(r"S(?:[tabsiod]|[0-9A-Z]*_)")
_PARAMETER = re.compile(r"T(?:[0-9]*_|n|y|t|p)")
_EXTENDED = re.compile(r"D(?:F16b|[FBU]\d{1,5}_|[a-z])")
_OPENERS = "NIJXF"
_MAX_IDENTIFIER = 1_024


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is id, type, open or close; ``depth`` the brackets open around it."""

    kind: str
    text: str
    depth: int


def is_mangled(name: str) -> bool:
    """Whether the name is an Itanium-mangled one."""
    return name.startswith("_Z") and len(name) > 3


def tokens(name: str) -> Iterator[Token]:
    """Identifiers, builtin types and brackets in order."""
    pos, open_literals = 2, list[bool]()
    while pos < len(name):
        ch = name[pos]
        depth = len(open_literals)
        if ch.isdigit():
            text, pos = _identifier(name, pos)
            if not text:
                return
            yield Token("id", text, depth)
        elif ch == "L":
            pos, opened = _literal(name, pos)
            if opened:
                open_literals.append(opened == "N")
                yield Token("open", opened, depth)
        elif ch in _OPENERS:
            open_literals.append(False)
            yield Token("open", ch, depth)
            pos += 1
        elif ch == "E":
            was_literal = open_literals.pop() if open_literals else False
            yield Token("close", ch, len(open_literals))
            pos = _skip_literal(name, pos + 1) if was_literal else pos + 1
        else:
            text, pos = _code(name, pos)
            if text:
                yield Token("type", text, depth)


def _identifier(name: str, pos: int) -> tuple[str, int]:
    digits = _NUMBER.match(name, pos)
    if digits is None or len(digits[0]) > 5:
        return "", len(name)
    start = digits.end()
    size = int(digits[0])
    if not 0 < size <= _MAX_IDENTIFIER:
        return "", len(name)
    return name[start : start + size], start + size


def _literal(name: str, pos: int) -> tuple[int, str]:
    """Past a literal; of one with a nested type or an encoding, past its opening only."""
    if name.startswith("LN", pos):
        return pos + 2, "N"
    if name.startswith("L_Z", pos):
        return pos + 3, "Z"
    after = pos + 2
    if name[pos + 1 : pos + 2].isdigit():
        _, after = _identifier(name, pos + 1)
    elif sub := _SUBSTITUTION.match(name, pos + 1):
        after = sub.end()
    return _skip_literal(name, after), ""


def _skip_literal(name: str, pos: int) -> int:
    end = _LITERAL_END.match(name, pos)
    return end.end() if end else pos


def _code(name: str, pos: int) -> tuple[str, int]:
    """A builtin type code, or "" for a substitution, a qualifier or an operator."""
    for pattern in (_SUBSTITUTION, _PARAMETER):
        if found := pattern.match(name, pos):
            return "", found.end()
    if found := _EXTENDED.match(name, pos):
        return found[0], found.end()
    return (name[pos] if name[pos].islower() else ""), pos + 1


def outer_path(name: str) -> list[str]:
    """The identifiers of the function's own qualified name, outermost first."""
    path: list[str] = []
    for t in tokens(name):
        if t.kind == "id":
            path.append(t.text)
            if t.depth == 0:
                break
        elif t.kind in ("open", "close") and not (t.text == "N" and not path):
            break
    return [p for p in path if not p.startswith("_GLOBAL__N")]


def identifiers(name: str) -> list[str]:
    """All identifiers in order."""
    return [t.text for t in tokens(name) if t.kind == "id" and not t.text.startswith("_GLOBAL__N")]
