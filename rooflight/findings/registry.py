"""Where rules sign in, and the findings of a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Rule

Check = Callable[[Facts], Iterable[Found]]
#: A saving under this share of the wall time is not worth a line.
LEAST = 0.01

_RULES: dict[str, Rule] = {}


def rule(
    code: str,
    title: str,
    *,
    why: str,
    fix: str,
    false_alarms: str,
    regime: str | None = None,
    quiet: bool = False,
) -> Callable[[Check], Check]:
    """Sign a check in under ``code``.  Raises ValueError for a code that is taken, a check without words."""

    def sign_in(check: Check) -> Check:
        if code in _RULES:
            raise ValueError(f"two rules have the code {code!r}")
        if not (check.__doc__ or "").strip():
            raise ValueError(f"the rule {code!r} does not say what it sees")
        _RULES[code] = Rule(code, title, check, why, fix, false_alarms, regime, quiet)
        return check

    return sign_in


def all_rules() -> tuple[Rule, ...]:
    """All rules, in the order they signed in."""
    return tuple(_RULES.values())


def find(facts: Facts, *, withheld: bool = False) -> list[tuple[Rule, Found]]:
    """The findings, the largest saving first, those without a figure last.

    No saving is more than the time of the rows it speaks of, and none is listed under 1 % of the wall time.
    ``withheld``: the recording allows no verdicts; only what is said of the recording itself stays.
    """
    found = [
        (rule, one)
        for rule in all_rules()
        if rule.quiet or not withheld
        for one in rule.check(facts)
        if one.seen
    ]
    worth = [(rule, _capped(one)) for rule, one in found if _is_worth(one, facts.wall_ns)]
    return sorted(worth, key=lambda pair: -1.0 if pair[1].saving_ns is None else -pair[1].saving_ns - 1)


def _is_worth(found: Found, wall_ns: int) -> bool:
    return found.saving_ns is None or found.saving_ns >= LEAST * wall_ns > 0


def _capped(found: Found) -> Found:
    if found.saving_ns is None or found.saving_ns <= found.time_ns:
        return found
    return Found(found.seen, found.time_ns, float(found.time_ns), found.assumption)
