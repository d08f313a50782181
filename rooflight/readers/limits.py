"""What is accepted, and the meter that refuses the rest while it comes in."""

from __future__ import annotations

from dataclasses import dataclass

from rooflight.errors import TooLarge


@dataclass(frozen=True, slots=True)
class Limits:
    """What is accepted: unpacked bytes, unpacked over packed bytes, and rows; past one of them reading stops
    with :class:`~rooflight.errors.TooLarge`.

    Real traces compress 10 to 40 times; the ratio only counts beyond ``ratio_floor`` bytes, since a
    short file of equal rows is no attack.
    """

    max_bytes: int = 8 << 30
    max_ratio: int = 200
    ratio_floor: int = 16 << 20
    max_events: int = 100_000_000


DEFAULT_LIMITS = Limits()


class Meter:
    """Counts the bytes of the file and those that they unpack to."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.bytes_in = 0
        self.bytes_out = 0

    def unpacked(self, n: int) -> None:
        """``n`` more bytes were unpacked; :class:`TooLarge` once that passes a limit."""
        self.bytes_out += n
        limits = self.limits
        if self.bytes_out > limits.max_bytes:
            raise TooLarge(
                f"too large: more than the limit of {limits.max_bytes} bytes when unpacked",
                where=f"after {self.bytes_in} bytes of the file",
                hint="record fewer steps, or raise the limit",
            )
        if self.bytes_out > max(limits.ratio_floor, limits.max_ratio * self.bytes_in):
            raise TooLarge(
                f"too large: it unpacks to over {limits.max_ratio} times its size, which exceeds the limit",
                where=f"after {self.bytes_in} bytes of the file",
                hint="a trace compresses 10 to 40 times; this is no trace, or not one that we open",
            )
