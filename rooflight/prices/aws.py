"""The price list of Amazon EC2 as AWS publishes it, as CSV or JSON.

https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current/index.csv (or .json, or of one
region: .../current/REGION/index.csv).  The CSV has five rows of metadata, then the names of the columns
(docs.aws.amazon.com/awsaccountbilling, "Reading the service price list file", read 2026-12-02); which rows
are on-demand Linux instances: src/gpuhunt/providers/aws.py in dstackai/gpuhunt@023e03d.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from rooflight.errors import Malformed, Refused, TooLarge
from rooflight.prices.catalogue import key, known
from rooflight.prices.days import day
from rooflight.prices.model import Instance
from rooflight.prices.offers import MAX_OFFERS, Tally
from rooflight.prices.table import numbered
from rooflight.prices.text import Text, lines
from rooflight.prices.walk import Path, walk

_PROVIDER = "AWS"
_METADATA_ROWS = 5
_NOT_OURS = "no GPU instance of our list"


@dataclass(frozen=True, slots=True)
class _Test:
    """What a field must hold for a row to be the plain on-demand price; a file may lack it."""

    column: str  # of the CSV
    attribute: str  # of a product in the JSON
    values: tuple[str, ...]
    otherwise: str  # why it is skipped


# In the JSON the term is told by its place and the unit by the price.
_TESTS = (
    _Test("TermType", "", ("OnDemand",), "reserved"),
    _Test("Operating System", "operatingSystem", ("Linux",), "another operating system"),
    _Test("Tenancy", "tenancy", ("Shared",), "another tenancy"),
    _Test("CapacityStatus", "capacitystatus", ("Used",), "a reservation of capacity"),
    _Test("Pre Installed S/W", "preInstalledSw", ("", "NA"), "with software"),
    _Test("MarketOption", "marketoption", ("", "OnDemand"), "a capacity block"),
    _Test("Location Type", "locationType", ("", "AWS Region"), "a zone outside of regions"),
    _Test("Unit", "", ("Hrs", "Hours"), "not by the hour"),
)
_REQUIRED = ("Instance Type", "TermType", "Operating System", "Tenancy", "Unit", "PricePerUnit", "Currency")


def read(text: Text, name: str, tally: Tally) -> str:
    """Note the prices of the file in ``tally``; the day of its publication, empty when it does not tell."""
    return _read_json(text.stream, name, tally) if text.is_json else _read_csv(text.stream, name, tally)


# --- CSV -------------------------------------------------------------------------------------------


def _read_csv(stream: TextIO, name: str, tally: Tally) -> str:
    reader = csv.reader(lines(stream, name), strict=True)
    records = numbered(reader, lambda: reader.line_num, name)
    rows = _head(records, name, tally)
    instance_type, width = rows.columns["Instance Type"], len(rows.columns)
    ours = {n for provider, n in known() if provider == _PROVIDER.lower()}
    for line, record in records:
        if len(record) != width:
            raise Malformed(
                f"{len(record)} cells where the header names {width} columns", where=f"{name}, line {line}"
            )
        if record[instance_type].lower() in ours:
            rows.price(record, f"line {line}")
        else:
            tally.skip(_NOT_OURS)
    return rows.published


def _head(records: Iterator[tuple[int, list[str]]], name: str, tally: Tally) -> _Rows:
    """What the metadata and the row of column names tell of the rows after them."""
    published = ""
    for _ in range(_METADATA_ROWS + 1):
        line, record = next(records, (0, [""]))
        if "SKU" in record:
            columns = {c: i for i, c in enumerate(record)}
            missing = [c for c in _REQUIRED if c not in columns]
            if missing or len(columns) != len(record):
                what = f"the column {missing[0]} is missing" if missing else "a column is there twice"
                raise Malformed(what, where=f"{name}, line {line}")
            return _Rows(columns, published, tally)
        if record[0] == "Publication Date" and len(record) > 1:
            published = day(record[1][:10])
    raise Refused(
        "no price list of AWS: the row of column names (SKU, …) is missing after the metadata",
        where=name,
        hint="fetch offers/v1.0/aws/AmazonEC2/current/index.csv, and leave its first rows as they are",
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a file by the place of each column."""

    columns: Mapping[str, int]
    published: str
    tally: Tally

    def price(self, record: list[str], where: str) -> None:
        """Note a row of an instance that we know."""
        told = {c: record[at] for c, at in self.columns.items()}
        instance = known()[key(_PROVIDER, told["Instance Type"])]
        if why := self._other(told):
            self.tally.skip(why)
        elif told["Currency"] != "USD":
            self.tally.reject(f"{instance.name} ({where})", "the price is not in USD")
        else:
            region = told.get("Region Code") or told.get("Location", "")
            since = told.get("EffectiveDate", "")
            _note(self.tally, instance, region, told["PricePerUnit"], where, since, self.published)

    def _other(self, told: Mapping[str, str]) -> str:
        """Why a row is not the plain on-demand price; empty when it is."""
        if "Capacity Block" in told.get("PriceDescription", ""):
            return "a capacity block"
        return next((t.otherwise for t in _TESTS if told.get(t.column, t.values[0]) not in t.values), "")


# --- JSON ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Product:
    instance: Instance
    region: str


def _enter(path: Path) -> bool:
    return path == () or path in (("products",), ("terms",)) or (len(path) == 2 and path[0] == "terms")


def _read_json(stream: TextIO, name: str, tally: Tally) -> str:
    published, products, seen = "", dict[str, _Product](), False
    for path, value in walk(stream, name, _enter):
        match path:
            case ("publicationDate",):
                published = day(str(value)[:10])
            case ("products", str(sku)):
                seen = True
                if product := _product(value, tally):
                    if len(products) >= MAX_OFFERS:
                        raise TooLarge(f"more than {MAX_OFFERS:,} products of instances that we know")
                    products[sku] = product
            case ("terms", "OnDemand", str(sku)):
                if not seen:
                    raise Malformed("the terms come before the products", where=name)
                if sku in products:
                    _terms(products.pop(sku), sku, value, published, tally)
    if not seen:
        raise Refused(
            "no price list of AWS: it has no products",
            where=name,
            hint="fetch offers/v1.0/aws/AmazonEC2/current/index.json",
        )
    for _ in products:
        tally.skip("without an on-demand price")
    return published


def _product(value: Any, tally: Tally) -> _Product | None:
    told = _dict(_dict(value).get("attributes"))
    instance = known().get(key(_PROVIDER, str(told.get("instanceType", ""))))
    if instance is None:
        tally.skip(_NOT_OURS)
        return None
    for test in _TESTS:
        if test.attribute and told.get(test.attribute, test.values[0]) not in test.values:
            tally.skip(test.otherwise)
            return None
    return _Product(instance, str(told.get("regionCode") or told.get("location") or ""))


def _terms(product: _Product, sku: str, terms: Any, published: str, tally: Tally) -> None:
    """Note the prices of a product: ``{term: {effectiveDate, priceDimensions: {rate: {…}}}}``."""
    for term in _dict(terms).values():
        for rate in _dict(_dict(term).get("priceDimensions")).values():
            _rate(product, sku, _dict(rate), str(_dict(term).get("effectiveDate", "")), published, tally)


def _rate(
    product: _Product, sku: str, rate: dict[str, Any], since: str, published: str, tally: Tally
) -> None:
    if "Capacity Block" in str(rate.get("description", "")):
        tally.skip("a capacity block")
        return
    if rate.get("unit") not in ("Hrs", "Hours"):
        tally.skip("not by the hour")
        return
    amounts, where = _dict(rate.get("pricePerUnit")), f"SKU {sku[:40]}"
    if "USD" not in amounts:
        tally.reject(f"{product.instance.name} ({where})", "the price is not in USD")
        return
    _note(tally, product.instance, product.region, amounts["USD"], where, since, published)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _note(
    tally: Tally, instance: Instance, region: str, amount: object, where: str, since: str, published: str
) -> None:
    source = f"AWS Price List AmazonEC2{f', published {published}' if published else ''}"
    tally.price(instance, region, amount, where=where, since=since, source=source)
