"""From the files of a provider to a price list of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rooflight.errors import Refused
from rooflight.prices import aws, azure, lists
from rooflight.prices.guards import Judged, judge
from rooflight.prices.offers import Tally
from rooflight.prices.text import Text, opened

KINDS = ("aws", "azure", "csv")


def import_prices(
    paths: Sequence[Path], kind: str, *, provider: str | None = None, day: str | None = None
) -> Judged:
    """The believable on-demand prices of our instances in ``paths``, which are judged together.

    ``kind`` is one of ``KINDS``; ``provider`` is for lists that do not tell it.  Prices are as of ``day``
    (ISO), else of the day that the file tells, else of the day when it was last changed.  Raises
    :class:`~rooflight.errors.Refused` when a file is none of its kind or broken.
    """
    tally, days = Tally(), []
    for path in paths:
        part = Tally()
        told = _read(path, kind, provider, part)
        days.append(day or told or _changed(path))
        _add(tally, part, path.name if len(paths) > 1 else "", days[-1])
    return judge(tally, max(days), "")


def _read(path: Path, kind: str, provider: str | None, tally: Tally) -> str:
    readers: dict[str, Callable[[Text, str, Tally], str]] = {
        "aws": aws.read,
        "azure": azure.read,
        "csv": lambda text, name, part: lists.read(text, name, part, provider),
    }
    with opened(path) as text:
        return readers[kind](text, path.name, tally)


def _changed(path: Path) -> str:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    except OSError as e:
        raise Refused(f"cannot read {path}: {e.strerror or e}") from e
    except (ValueError, OverflowError) as e:
        raise Refused(f"{path.name} was changed at no possible time", hint="say --date") from e


def _add(tally: Tally, part: Tally, name: str, day: str) -> None:
    """Put what one file told to the rest; of several files a place begins with the file's name."""
    before = f"{name} " if name else ""
    tally.offers += (replace(o, where=before + o.where, date=o.date or day) for o in part.offers)
    tally.skipped += part.skipped
    tally.rejected += part.rejected
