"""Which failed request is sent again, and when (DEFINITIONS §14)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

#: Everything else would fail the same way again.
RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Retry:
    """At most ``tries`` in all; exponential waits with full jitter from ``base_s`` up to ``cap_s``.

    A server that asks for more patience than ``patience_s`` is not waited for.
    """

    tries: int = 5
    base_s: float = 0.5
    cap_s: float = 300.0
    patience_s: float = 600.0

    def wait_s(
        self, attempt: int, retry_after_s: float | None, draw: Callable[[], float] = random.random
    ) -> float | None:
        """Seconds before the try after number ``attempt`` (from 1); ``None``: give up.

        ``retry_after_s``, what the server asked for, is a minimum; ``draw`` gives 0 to 1.
        """
        if attempt >= self.tries or (retry_after_s or 0.0) > self.patience_s:
            return None
        # The exponent is bounded first: 2.0 ** 2000 overflows.
        longest = min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, 30))
        return max(draw() * longest, retry_after_s or 0.0)


def retry_after_s(header: str | None, now: datetime | None = None) -> float | None:
    """A Retry-After header, seconds or HTTP date, in seconds from ``now``; ``None`` when it says neither."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
