"""What holds for all rules."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight.findings import Found, Seen, all_rules, find
from rooflight.findings.registry import rule
from tests.rooflight.findings import drawn_memory


def test_findings_come_with_the_largest_saving_first() -> None:
    """Those without a figure stand last."""
    savings = [f.saving_us for f in drawn_memory.DRAWN["casts"].trigger.findings().values()]
    assert len(savings) > 2
    known = [s for s in savings if s is not None]
    assert known == sorted(known, reverse=True)
    assert savings == known + [None] * (len(savings) - len(known))


def test_a_code_is_given_once_and_says_what_it_sees() -> None:
    def silent(_: Any) -> list[Found]:
        return []

    sign_in = {"why": "", "fix": "", "false_alarms": ""}
    with pytest.raises(ValueError, match="two rules have the code 'input-starved'"):
        rule("input-starved", "again", **sign_in)(silent)
    with pytest.raises(ValueError, match="does not say what it sees"):
        rule("silent", "silent", **sign_in)(silent)
    assert "silent" not in {r.code for r in all_rules()}


@pytest.mark.parametrize("entry", all_rules(), ids=lambda r: r.code)
def test_a_rule_says_why_how_and_when_not(entry: Any) -> None:
    assert all((entry.title, entry.sees, entry.why, entry.fix, entry.false_alarms))


class _Recorded:
    """Facts of a wall of 1000 ns."""

    wall_ns = 1000


def test_a_saving_is_at_most_the_time_and_at_least_one_in_a_hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: Any) -> list[Found]:
        return [Found((Seen("more than it took"),), 100, 500.0, ""), Found((Seen("little"),), 9, 9.9, "")]

    from rooflight.findings import registry

    monkeypatch.setattr(registry, "_RULES", {})
    check.__doc__ = "Nothing."
    rule("one", "one", why="", fix="", false_alarms="")(check)
    assert [f.saving_ns for _, f in find(_Recorded())] == [100.0]  # type: ignore[arg-type]
    assert find(_Recorded(), withheld=True) == []  # type: ignore[arg-type]
