"""Days as they come in: ISO, and nothing else."""

from __future__ import annotations

import re
from datetime import date

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def day(text: str) -> str:
    """``text`` if it is a day as in 2026-11-30, else empty."""
    try:
        return date.fromisoformat(text).isoformat() if _DAY.fullmatch(text) else ""
    except ValueError:
        return ""
