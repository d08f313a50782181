"""Everything from outside is bounded: an integer fits a BIGINT, a name fits a page."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

NonNegative = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Time = Annotated[float, Meta(ge=0)]
Text = Annotated[str, Meta(max_length=65_536)]
#: What a step holds, as somebody counts it: tokens, samples.
UnitName = Annotated[str, Meta(min_length=1, max_length=40)]
Units = Annotated[float, Meta(gt=0, le=1e18)]
UnitsPerStep = Annotated[dict[UnitName, Units], Meta(max_length=16)]
