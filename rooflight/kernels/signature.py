"""A demangled C++ name taken apart: the function's path, its template arguments, its parameters.

One pass from bracket to bracket, whatever the nesting: names come from outside and may be hostile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Characters looked at.  Real names reach about 6,000; what tells the family stands at the front.
LIMIT = 16_384

_CLOSES = {")": "(", ">": "<", "]": "[", "}": "{"}
#: A bracket, or all up to the next one.
_PIECE = re.compile(r"[()<>\[\]{}]|[^()<>\[\]{}]+")


@dataclass(frozen=True, slots=True)
class Signature:
    """``path`` is the qualified name without template arguments, ``args`` the text of its template
    arguments without parameter lists (those of lambdas stay: they carry the element type), ``params``
    the function's own parameter list."""

    path: str
    args: str
    params: str


def parse(name: str) -> Signature:
    """Take ``name`` apart; text that is no C++ signature is all path."""
    return _Scanner(_clean(name[:LIMIT])).run()


def split_args(args: str) -> list[str]:
    """The top-level arguments of a template argument text."""
    out: list[str] = []
    start = depth = 0
    for i, ch in enumerate(args):
        if ch in "<({[":
            depth += 1
        elif ch in ">)}]":
            depth = max(0, depth - 1)
        elif ch == "," and depth == 0:
            out.append(args[start:i].strip())
            start = i + 1
    out.append(args[start:].strip())
    return [a for a in out if a]


def _clean(name: str) -> str:
    text = name.replace("(anonymous namespace)::", "").replace("<unnamed>::", "").strip()
    text = text.removesuffix(".kd").partition(" [clone")[0]
    return text.removeprefix("void ")


class _Scanner:
    """State of the pass: the open brackets, and how many of them are parameter lists to leave out."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.path: list[str] = []
        self.args: list[str] = []
        self.open: list[str] = []
        self.dropping = 0

    def run(self) -> Signature:
        for found in _PIECE.finditer(self.text):
            piece, i = found[0], found.start()
            if piece in "(<[{":
                if piece == "(" and not self.open and self.path:
                    return self._done(self.text[i:])
                self._push(piece, i)
            elif piece in _CLOSES:
                self._pop(piece, i)
            elif self.open:
                self._keep(piece)
            elif " " in piece:
                # What stood before the space was the return type.
                name = piece.rpartition(" ")[2]
                self.path, self.args = [name] if name else [], []
            else:
                self.path.append(piece)
        return self._done("")

    def _done(self, params: str) -> Signature:
        return Signature("".join(self.path), "".join(self.args), params)

    def _keep(self, ch: str) -> None:
        if not self.dropping:
            self.args.append(ch)

    def _push(self, ch: str, i: int) -> None:
        kind = "L" if ch == "(" and self.text[max(0, i - 6) : i] == "lambda" else ch
        if self.open and kind != "(":
            self._keep(ch)
        self.dropping += kind == "("
        self.open.append(kind)

    def _pop(self, ch: str, i: int) -> None:
        want = _CLOSES[ch]
        if ch == ">" and (not self.open or self.open[-1] != "<" or self.text[i - 1] == "-"):
            return  # a comparison inside parentheses, or an arrow
        while self.open:
            kind = self.open.pop()
            self.dropping -= kind == "("
            if kind == want or (kind == "L" and want == "("):
                if self.open and kind != "(":
                    self._keep(ch)
                return
