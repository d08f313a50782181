"""What to do with an answer of the server: done, try again later, or never."""

from __future__ import annotations

import email.utils
import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

#: Worth another try: the server is overloaded, restarting or unreachable.
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
#: The token is missing, wrong or too weak: sending the body again changes nothing.
UNAUTHORISED = frozenset({401, 403})
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 300.0


class Fate(Enum):
    """What becomes of a message."""

    DELIVERED = "delivered"
    AGAIN = "again"
    UNAUTHORISED = "unauthorised"
    TOO_LARGE = "too large"
    REFUSED = "refused"


def fate(status: int) -> Fate:
    """The fate of a message by the HTTP status that it got; redirections are not followed, so refused."""
    if 200 <= status < 300:
        return Fate.DELIVERED
    if status in AGAIN:
        return Fate.AGAIN
    if status in UNAUTHORISED:
        return Fate.UNAUTHORISED
    return Fate.TOO_LARGE if status == 413 else Fate.REFUSED


@dataclass
class Backoff:
    """Waits that double from a second to five minutes, each drawn from 0 to its bound, so that agents
    that lost the same server do not return at the same moment."""

    draw: random.Random
    tries: int = 0

    def wait_s(self, least_s: float = 0.0) -> float:
        """The next wait, at least ``least_s`` (what the server asked for)."""
        bound = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(self.tries, 16))
        self.tries += 1
        return max(least_s, self.draw.uniform(0, bound))


def retry_after_s(headers: Mapping[str, str], now: float) -> float:
    """``Retry-After`` in seconds from ``now`` (epoch), written as seconds or as a date; 0 without one."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal() and len(value) < 10:
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return 0.0
