"""Where rules sign in, and the findings of a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NotRequired, TypedDict, TypeVar, Unpack

from rooflight.attribution.intervals import Set, union_of
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Rule
from rooflight.findings.waits import Waits

T = TypeVar("T")
Check = Callable[[T], Iterable[Found]]
#: A saving under this share of the wall time is not worth a line.
LEAST = 0.01


class Words(TypedDict):
    """What a rule says of itself; ``quiet``: it speaks of the recording, also where no verdict is given."""

    why: str
    fix: str
    false_alarms: str
    regime: NotRequired[str | None]
    quiet: NotRequired[bool]


_RULES: dict[str, Rule[Facts]] = {}
_RUN_RULES: dict[str, Rule[Waits]] = {}


def rule(code: str, title: str, **words: Unpack[Words]) -> Callable[[Check[Facts]], Check[Facts]]:
    """Sign a check in under ``code``.  Raises ValueError for a code that is taken, a check without words."""
    return _signing(_RULES, code, title, words)


def run_rule(code: str, title: str, **words: Unpack[Words]) -> Callable[[Check[Waits]], Check[Waits]]:
    """As :func:`rule`, for what only the comparison of the ranks tells."""
    return _signing(_RUN_RULES, code, title, words)


def _signing(
    rules: dict[str, Rule[T]], code: str, title: str, words: Words
) -> Callable[[Check[T]], Check[T]]:
    def sign_in(check: Check[T]) -> Check[T]:
        _sign_in(rules, Rule(code, title, check, **words))
        return check

    return sign_in


def _sign_in(rules: dict[str, Rule[T]], rule: Rule[T]) -> None:
    if rule.code in {**_RULES, **_RUN_RULES}:
        raise ValueError(f"two rules have the code {rule.code!r}")
    if not rule.sees:
        raise ValueError(f"the rule {rule.code!r} does not say what it sees")
    rules[rule.code] = rule


def all_rules() -> tuple[Rule[Any], ...]:
    """All rules, in the order they signed in, those about a run last."""
    return (*_RULES.values(), *_RUN_RULES.values())


def find_in_run(waits: Waits) -> list[tuple[Rule[Waits], Found]]:
    """What the comparison of the ranks says of one of them; without verdicts only what is said of the
    recordings themselves."""
    rules = [rule for rule in _RUN_RULES.values() if rule.quiet or not waits.withheld]
    found = [(rule, one) for rule in rules for one in rule.check(waits) if one.seen]
    return [(rule, _capped(one)) for rule, one in found if _is_worth(one, waits.wall_ns)]


def run_codes() -> frozenset[str]:
    """The codes that :func:`find_in_run` may give."""
    return frozenset(_RUN_RULES)


def find(facts: Facts, *, withheld: bool = False) -> list[tuple[Rule[Facts], Found]]:
    """The findings, the largest saving first, those without a figure last.

    No saving is more than the time of the rows it speaks of, and none is listed under 1 % of the wall time.
    ``withheld``: the recording allows no verdicts; only what is said of the recording itself stays.
    """
    found = [
        (rule, one)
        for rule in _RULES.values()
        if rule.quiet or not withheld
        for one in rule.check(facts)
        if one.seen
    ]
    worth = [(rule, _capped(one)) for rule, one in found if _is_worth(one, facts.wall_ns)]
    return sorted(worth, key=lambda pair: -1.0 if pair[1].saving_ns is None else -pair[1].saving_ns - 1)


def spoken_of(found: Iterable[Found]) -> Set:
    """The instants that findings with a saving speak of (DEFINITIONS §18): what they save together is no
    more than these."""
    return union_of(*(one.when for one in found if one.saving_ns is not None))


def _is_worth(found: Found, wall_ns: float) -> bool:
    return found.saving_ns is None or found.saving_ns >= LEAST * wall_ns > 0


def _capped(found: Found) -> Found:
    if found.saving_ns is None or found.saving_ns <= found.time_ns:
        return found
    return replace(found, saving_ns=float(found.time_ns))
