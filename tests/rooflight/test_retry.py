"""How long a try waits, and how often there is one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from rooflight.retry import Retry, retry_after_s

# ---- retry rules ----


def test_retry_after_in_seconds_and_as_a_date():
    now = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
    assert retry_after_s("120", now) == 120.0
    assert retry_after_s(" 0 ", now) == 0.0
    assert retry_after_s("Tue, 01 Dec 2026 12:01:30 GMT", now) == 90.0
    assert retry_after_s("Tue, 01 Dec 2026 11:00:00 GMT", now) == 0.0
    assert retry_after_s("soon", now) is None
    assert retry_after_s("-5", now) is None
    assert retry_after_s(None, now) is None


@given(
    st.integers(1, 3000),
    st.none() | st.floats(0, 1e6),
    st.floats(0, 1),
    st.builds(Retry, tries=st.integers(1, 4000)),
)
def test_a_wait_is_within_its_bounds(attempt, asked, draw, retry):
    wait = retry.wait_s(attempt, asked, lambda: draw)
    if wait is None:
        assert attempt >= retry.tries or (asked or 0) > retry.patience_s
        return
    assert (asked or 0) <= wait <= max(retry.cap_s, asked or 0)


def test_jitter_is_full():
    draws: list[Callable[[], float]] = [lambda: 0.0, lambda: 0.5, lambda: 1.0]
    assert [Retry().wait_s(3, None, d) for d in draws] == [0.0, 1.0, 2.0]  # 0.5 x 2^2 = 2
    assert Retry(tries=99).wait_s(50, None, lambda: 1.0) == 300.0
