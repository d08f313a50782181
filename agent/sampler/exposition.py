"""Prometheus' text, as an exporter writes it: names, labels and values.

https://prometheus.io/docs/instrumenting/exposition_formats/.  The text is another program's: what is too
long or makes no sense is skipped and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

LONGEST_LINE = 8192
MOST_LABELS = 64
_LABEL = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|(?=}))')
_CLOSED = re.compile(r"\s*}")
_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "\\": "\\", '"': '"'}
_LONGEST_NUMBER = 40


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: ``value`` is whole where it is written so, since 64 bits do not fit a float."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass
class Exposition:
    """``wanted`` are the names that matter; lines of others are passed over without a look."""

    wanted: Set[str]
    skipped: int = field(default=0, init=False)

    def samples(self, text: str) -> Iterator[Sample]:
        """The lines that can be read; ``skipped`` counts the others."""
        for line in text.split("\n"):
            name = _NAME.match(line)
            if name is None or name[0] not in self.wanted:
                continue
            sample = _sample(name[0], line[name.end() :]) if len(line) <= LONGEST_LINE else None
            if sample is None:
                self.skipped += 1
            else:
                yield sample


def _sample(name: str, rest: str) -> Sample | None:
    labels: dict[str, str] | None = {}
    rest = rest.lstrip(" \t")
    if rest.startswith("{"):
        labels, rest = _labels(rest)
    words = rest.split()
    if labels is None or len(words) not in (1, 2):  # the second is a time, which exporters leave out
        return None
    value = _number(words[0])
    return None if value is None else Sample(name, labels, value)


def _labels(text: str) -> tuple[dict[str, str] | None, str]:
    """The labels and what follows them; ``None`` where they are broken or named twice."""
    labels: dict[str, str] = {}
    at = 1
    while (found := _LABEL.match(text, at)) and len(labels) < MOST_LABELS:
        name, value = found[1], found[2]
        if name in labels:
            return None, ""
        labels[name] = _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), value)
        at = found.end()
    closed = _CLOSED.match(text, at)
    return (None, "") if closed is None else (labels, text[closed.end() :])


def _number(text: str) -> float | None:
    if len(text) > _LONGEST_NUMBER or not text.isascii() or "_" in text:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None
