"""The errors of the service and what each is answered with; knows no web framework.

ServiceError
├── NotFound          there is no such thing, or not for this caller
├── Conflict          it contradicts what is stored
├── Unauthorized      who are you
├── Forbidden         not you
└── TooNew            the sender is newer than this server
"""

from __future__ import annotations

import errno
import re

from pydantic import BaseModel, Field
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from rooflight.errors import ProtocolMismatch, Refused, RooflightError

_SHOWN = 300  # characters of somebody's input that an answer repeats at most


class Problem(BaseModel):
    """What went wrong, where, and what to do."""

    type: str = Field(description="Names the kind of problem; stable.")
    title: str = Field(description="What is wrong.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="Title, place and advice in one sentence.")
    where: str = Field("", description="The place in the input: file, byte, line or field.")
    hint: str = Field("", description="What to do.")


class ServiceError(Exception):
    """An error that the service answers with on purpose."""

    status = 500

    def __init__(self, title: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(title)
        self.title, self.where, self.hint = title, where, hint


class NotFound(ServiceError):  # noqa: N818
    """There is no such thing, or not for this caller."""

    status = 404


class Conflict(ServiceError):  # noqa: N818
    """It contradicts what is stored."""

    status = 409


class Unauthorized(ServiceError):  # noqa: N818
    """No or no valid credentials."""

    status = 401


class Forbidden(ServiceError):  # noqa: N818
    """Valid credentials, but not for this."""

    status = 403


class TooNew(ServiceError):  # noqa: N818
    """The sender speaks a newer protocol than this server."""

    status = 426


def problem_of(error: Exception) -> Problem:
    """The problem that an error is answered with."""
    if isinstance(error, (Refused, ServiceError)):
        return problem(type(error).__name__, error.title, error.status, error.where, error.hint)
    if isinstance(error, ProtocolMismatch):
        return problem("ProtocolMismatch", str(error), 422)
    if isinstance(error, RooflightError):
        return problem(type(error).__name__, str(error), 422)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return problem(
            "NoSpace", "the disk of the server is full", 507, hint="free space, then send it again"
        )
    if isinstance(error, (PoolTimeout, DBAPIError)):
        return problem("Unavailable", "the database did not answer", 503, hint="try again in a moment")
    return problem("InternalError", "the server failed on this request", 500, hint="its log says why")


def problem(kind: str, title: str, status: int, where: str = "", hint: str = "") -> Problem:
    """A problem of a kind; what it repeats of somebody's input is cut short."""
    title, where = _short(title), _short(where)
    detail = title + (f" ({where})" if where else "") + (f". {hint}" if hint else "")
    slug = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind).lower()
    return Problem(
        type=f"urn:rooflight:problem:{slug}",
        title=title,
        status=status,
        detail=detail,
        where=where,
        hint=hint,
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
