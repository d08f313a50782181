"""The instances that we know, read from instances.toml on first use.

The file travels in the wheel; each entry names its source and the date of its price.
"""

from __future__ import annotations

import tomllib
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from rooflight.prices.model import Instance

_FILE = Path(__file__).with_name("instances.toml")


@cache
def instances() -> tuple[Instance, ...]:
    """All entries in the order of the file; an instance may have one for each of several regions."""
    rows = tomllib.loads(_FILE.read_text(encoding="utf-8"))["instance"]
    return tuple(map(_instance, rows))


def _instance(row: dict[str, Any]) -> Instance:
    usd = row.pop("usd_per_hour", None)
    also = tuple(row.pop("also", ()))
    return Instance(**row, also=also, usd_per_hour=None if usd is None else Decimal(usd))


@cache
def known() -> dict[tuple[str, str], Instance]:
    """By provider and name, both in lower case, an entry of each instance: what it is, whatever it costs."""
    return {key(i.provider, name): i for i in reversed(instances()) for name in i.names}


@cache
def providers() -> dict[str, str]:
    """How each provider is spelt, by its name in lower case."""
    return {i.provider.lower(): i.provider for i in instances()}


def key(provider: str, name: str) -> tuple[str, str]:
    """What tells one instance from another; providers differ in the case that they write."""
    return provider.strip().lower(), name.strip().lower()
