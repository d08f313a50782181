"""Times that lie too far out: none of them may pass int64 in a sum or a difference, and turn around."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight.errors import TooLarge
from rooflight.trace.timeline import Timeline
from rooflight.trace.times import MAX_NS
from tests.drawing import timeline_from_events

YEARS_95 = MAX_NS // 1000  # in us


def event(cat: str, ts: Any, dur: Any, stream: int = 7) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": "ProfilerStep#1", "pid": 0, "tid": stream, "ts": ts, "dur": dur,
        "args": {"device": 0, "stream": stream},
    }  # fmt: skip


def test_the_farthest_of_all_sums_fits() -> None:
    """Wall times lie within [-MAX, 2 MAX], and 3 MAX is below 2^63."""
    assert 3 * MAX_NS < 2**63


@pytest.mark.parametrize("number", [float, int, str])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_start_beyond_95_years_is_none(number: Any, sign: int) -> None:
    late = [event("kernel", number(sign * (YEARS_95 + 1000)), 1), event("kernel", 5, 1)]
    t = timeline_from_events(late)
    assert t.invalid_events == {"bad_ts": 1}
    assert timeline_from_events([event("kernel", number(sign * (YEARS_95 - 1000)), 1)]).invalid_events == {}


def test_an_end_beyond_95_years_is_none() -> None:
    """The host's row encloses nothing, and is left out."""
    half = YEARS_95 // 2
    rows = [
        event("kernel", half, half + 1),
        event("cpu_op", half, half + 1),
        event("kernel", half, half // 2),
    ]
    t = timeline_from_events(rows)
    assert t.invalid_events == {"bad_dur": 1}
    assert t.gpu.dur.tolist() == [0, half // 2 * 1000]
    assert len(t.host) == 0


@pytest.mark.parametrize("cat", ["kernel", "user_annotation"])
def test_durations_whose_sum_would_turn_around_are_refused(cat: str) -> None:
    """Four of 24 years, on streams of their own: 96; three are 72."""

    def several(n: int) -> Timeline:
        return timeline_from_events([event(cat, 0, YEARS_95 // 4 + 1, stream) for stream in range(n)])

    assert len(several(3).gpu) + len(several(3).host) == 3
    with pytest.raises(TooLarge, match="add up to 95 years"):
        several(4)


@pytest.mark.parametrize(("base", "read"), [(MAX_NS, MAX_NS), (MAX_NS + 1, 0), (2**63 - 1, 0), (-1, 0)])
def test_a_base_beyond_95_years_is_unknown(base: int, read: int) -> None:
    assert timeline_from_events([event("kernel", 1, 1)], baseTimeNanoseconds=base).meta.base_ns == read
