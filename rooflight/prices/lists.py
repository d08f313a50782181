"""Price lists as CSV: our own form, and the columns of SkyPilot's and gpuhunt's catalogues.

| what | our form | SkyPilot vms.csv | gpuhunt |
|---|---|---|---|
| instance | instance | InstanceType | instance_name |
| USD per hour | usd_per_hour | Price | price |
| region | region | Region | location |
| spot | spot_usd_per_hour | SpotPrice | spot (true: the row is one) |
| GPU | | AcceleratorName, AcceleratorCount | gpu_name, gpu_count |

(sky/catalog/data_fetchers/fetch_azure.py in skypilot-org/skypilot@0089fca, src/gpuhunt/providers/aws.py in
dstackai/gpuhunt@023e03d.)  Neither of the latter has a provider, which is then to be named.
"""

from __future__ import annotations

from rooflight.errors import Refused
from rooflight.prices import table
from rooflight.prices.amount import shown
from rooflight.prices.catalogue import key, known
from rooflight.prices.days import day
from rooflight.prices.model import Instance
from rooflight.prices.offers import Tally
from rooflight.prices.table import Row, Table
from rooflight.prices.text import Text

_INSTANCE = ("instance", "instancetype", "instance_name")
_USD = ("usd_per_hour", "price")
_REGION = ("region", "location")
_SPOT_USD = ("spot_usd_per_hour", "spotprice")
_GPU = ("acceleratorname", "gpu_name")
_COUNT = ("acceleratorcount", "gpu_count")


def read(text: Text, name: str, tally: Tally, provider: str | None = None) -> str:
    """Note the prices of the file in ``tally``.  Empty: a list has no day of its own, its rows may."""
    rows = table.read(text.stream, name)
    columns = _Columns(rows)
    if columns.instance is None or columns.usd is None:
        raise Refused(
            "no price list: a column for the instance or for its price is missing",
            where=f"{name}, line 1",
            hint=f"name them {_INSTANCE[0]} and {_USD[0]}",
        )
    if provider is None and "provider" not in rows.columns:
        raise Refused("the list does not tell the provider", where=f"{name}, line 1", hint="say --provider")
    for row in rows.rows:
        columns.note(row, provider, tally)
    return ""


class _Columns:
    """Which column holds what; ``None`` where the list has none for it."""

    def __init__(self, rows: Table) -> None:
        self.instance = table.first(rows, *_INSTANCE)
        self.usd = table.first(rows, *_USD)
        self.region = table.first(rows, *_REGION) or ""
        self.spot_usd = table.first(rows, *_SPOT_USD) or ""
        self.gpu = table.first(rows, *_GPU)
        self.count = table.first(rows, *_COUNT) or ""

    def note(self, row: Row, provider: str | None, tally: Tally) -> None:
        """Note what a row says of an instance that we know."""
        name, where = row[self.instance or ""], f"line {row.line}"
        instance = known().get(key(provider or row["provider"], name))
        if instance is None:
            tally.skip("no GPU instance of our list")
        elif why := self._wrong(row, instance):
            tally.reject(f"{instance.name} {row[self.region]} ({where})", why)
        elif not row[self.usd or ""]:
            tally.skip("without an on-demand price")
        else:
            self._price(row, row[self.usd or ""], instance, tally, spot=row["spot"].lower() in ("true", "1"))
        if instance is not None and row[self.spot_usd]:
            self._price(row, row[self.spot_usd], instance, tally, spot=True)

    def _price(self, row: Row, amount: str, instance: Instance, tally: Tally, *, spot: bool) -> None:
        tally.price(
            instance,
            row[self.region],
            amount,
            where=f"line {row.line}",
            spot=spot,
            source=row["source"] or row.file,
            date=row["date"],
        )

    def _wrong(self, row: Row, instance: Instance) -> str:
        """Why a row cannot be the price of the instance with its GPUs; empty when it can."""
        if row["currency"].upper() not in ("", "USD"):
            return "the price is not in USD"
        if row["date"] and not day(row["date"]):
            return f"{shown(row['date'])} is no day"
        if self.gpu is not None and not row[self.gpu]:
            return "the row has no GPU: it may be the price of the host alone"
        count = row[self.count]
        if count and instance.gpu_count and not _same(count, instance.gpu_count):
            return f"the row has {count[:20]} GPUs, the instance {instance.gpu_count}"
        return ""


def _same(text: str, count: int) -> bool:
    try:
        return float(text) == count
    except ValueError:
        return False
