"""A user's own price list: a CSV with a row for each instance and region.

    provider,instance,usd_per_hour,region,date,source
    AWS,p5.48xlarge,41.28,us-east-1,2026-11-30,contract of 2026

``region`` and ``source`` may be empty.  An instance that is not in our list also needs ``gpu_id`` (an id or
a device's name) and ``gpu_count``.  Amounts are USD; a column ``currency`` may say so.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TextIO

from rooflight.errors import Malformed
from rooflight.hardware.names import alike, find
from rooflight.prices import table
from rooflight.prices.amount import NoAmount, shown, usd
from rooflight.prices.catalogue import key, known, providers
from rooflight.prices.days import day
from rooflight.prices.model import Instance
from rooflight.prices.table import Row
from rooflight.prices.text import opened

COLUMNS = ("provider", "instance", "usd_per_hour", "region", "date", "source")
MAX_ROWS = 20_000
_COUNT = re.compile(r"[1-9]\d{0,3}", re.ASCII)


def read_own(path: str | Path) -> tuple[Instance, ...]:
    """The instances of a price list at their own prices; ``origin`` is the file's name.

    Raises :class:`~rooflight.errors.Refused` naming line and column of what is wrong.
    """
    path = Path(path)
    with opened(path) as text:
        return parse(text.stream, path.name)


def parse(stream: TextIO, name: str) -> tuple[Instance, ...]:
    """As :func:`read_own`, of a text that is called ``name``."""
    rows = table.read(stream, name, limit=MAX_ROWS)
    table.require(rows, COLUMNS, name)
    lines: dict[tuple[str, str, str], int] = {}
    found = []
    for row in rows.rows:
        instance = _instance(row)
        place = (*key(instance.provider, instance.name), instance.region.lower())
        if place in lines:
            raise Malformed(
                f"line {lines[place]} has a price of this instance in this region already",
                where=row.where("instance"),
            )
        lines[place] = row.line
        found.append(instance)
    return tuple(found)


def write(instances: Iterable[Instance], stream: TextIO) -> None:
    """The price list of ``instances`` that have a price, as :func:`parse` reads it."""
    out = csv.writer(stream, lineterminator="\n")
    out.writerow(COLUMNS)
    for i in instances:
        if i.usd_per_hour is not None:
            out.writerow((i.provider, i.name, f"{i.usd_per_hour:f}", i.region, i.date, i.source))


def _instance(row: Row) -> Instance:
    for column in ("provider", "instance", "usd_per_hour", "date"):
        if not row[column]:
            raise Malformed("the cell is empty", where=row.where(column))
    base = _base(row)
    return replace(
        base,
        usd_per_hour=_usd(row, base.gpu_count),
        region=row["region"],
        date=_day(row),
        source=row["source"],
        confidence="own",
        notes="",
        origin=row.file,
    )


def _base(row: Row) -> Instance:
    """What the instance is: by our list, and by what the row says of its GPUs, which wins."""
    ours = known().get(key(row["provider"], row["instance"]))
    gpu_id, gpu_count = _gpu(row), _count(row)
    if ours is not None:
        return replace(ours, gpu_id=gpu_id or ours.gpu_id, gpu_count=gpu_count or ours.gpu_count)
    if gpu_id is None or gpu_count is None:
        raise Malformed(
            f"{shown(row['instance'])} is no instance of {row['provider']} that we know",
            where=row.where("instance"),
            hint="correct its name, or say in the columns gpu_id and gpu_count what it has",
        )
    provider = providers().get(row["provider"].lower(), row["provider"])
    return Instance(provider=provider, name=row["instance"], gpu_id=gpu_id, gpu_count=gpu_count)


def _gpu(row: Row) -> str | None:
    if not row["gpu_id"]:
        return None
    gpu = find(row["gpu_id"])
    if gpu is None:
        near = ", ".join(g.id for g in alike(row["gpu_id"])[:5])
        raise Malformed(
            f"{shown(row['gpu_id'])} is no GPU of the catalogue",
            where=row.where("gpu_id"),
            hint=f"it may be one of {near}" if near else "`rooflight gpus` lists the ids",
        )
    if gpu.device_unit == "card":
        raise Malformed(
            f"{gpu.id} is a card of several devices",
            where=row.where("gpu_id"),
            hint="name one of its devices, and count those in gpu_count",
        )
    return gpu.id


def _count(row: Row) -> int | None:
    if not row["gpu_count"]:
        return None
    if not _COUNT.fullmatch(row["gpu_count"]):
        raise Malformed(f"{shown(row['gpu_count'])} is no number of GPUs", where=row.where("gpu_count"))
    return int(row["gpu_count"])


def _usd(row: Row, gpu_count: int | None) -> Decimal:
    currency = row["currency"].upper()
    if currency not in ("", "USD"):
        raise Malformed(
            f"the currency is {shown(row['currency'])}, and prices are in USD",
            where=row.where("currency"),
            hint="convert the amounts: a rate is not assumed",
        )
    try:
        return usd(row["usd_per_hour"], gpu_count)
    except NoAmount as e:
        raise Malformed(
            str(e),
            where=row.where("usd_per_hour"),
            hint="write USD per hour of the whole instance, as in 98.32",
        ) from e


def _day(row: Row) -> str:
    if not (told := day(row["date"])):
        raise Malformed(
            f"{shown(row['date'])} is no day", where=row.where("date"), hint="write it as in 2026-11-30"
        )
    return told
