"""The errors of the domain.

RooflightError
├── Refused              the input cannot be used; says what, where and what to do
│   ├── NotATrace        readable, but nothing we know
│   ├── Truncated        it ends before its end
│   ├── Malformed        it is broken at a place
│   └── TooLarge         it passes a limit
├── MissingExtra         an optional library is needed for this
└── ProtocolMismatch     a document of a version that we do not read

The domain states the fact; the shell (command line, HTTP) adds exit status or status code.
"""

from __future__ import annotations


class RooflightError(Exception):
    """Base of all errors that Rooflight raises on purpose."""


class Refused(RooflightError):
    """An input that is not accepted.

    ``title`` says what is wrong, ``where`` the place in the input (file, byte, line, field),
    ``hint`` what the user can do.  ``status`` is the HTTP status it maps to.
    """

    status = 422

    def __init__(self, title: str, *, where: str = "", hint: str = "") -> None:
        self.title, self.where, self.hint = title, where, hint
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        advice = f". {self.hint}" if self.hint else ""
        return f"{self.title}{place}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword arguments do not survive the default pickling, and refusals cross process borders.
        return _rebuild, (type(self), self.title, self.where, self.hint)


def _rebuild(kind: type[Refused], title: str, where: str, hint: str) -> Refused:
    return kind(title, where=where, hint=hint)


class NotATrace(Refused):
    """The document is whole, but it is no trace that we know."""


class Truncated(Refused):
    """The input ends before its end."""

    status = 400


class Malformed(Refused):
    """The input is broken at a place that is named."""

    status = 400


class TooLarge(Refused):
    """The input passes a limit."""

    status = 413


class MissingExtra(RooflightError):
    """An optional library is needed; the message names the extra that brings it."""


class ProtocolMismatch(RooflightError):
    """A document whose schema version this program does not read."""
