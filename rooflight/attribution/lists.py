"""Lists of whole numbers as collectives record them: ``"[0, 1, 2]"``."""

from __future__ import annotations

import msgspec

_decode = msgspec.json.Decoder(list[int]).decode
#: What the profiler writes has thirty entries at most.
_LONGEST = 1 << 16


def whole_numbers(text: object) -> list[int]:
    """The numbers; none of a list that was cut (``[0, 1, ...]``) or is no list."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return []
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return []
