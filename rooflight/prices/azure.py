"""Pages of the Azure Retail Prices API, as they were saved.

https://prices.azure.com/api/retail/prices?$filter=serviceName eq 'Virtual Machines' answers pages of
``{BillingCurrency, Items: [...], NextPageLink, Count}`` (learn.microsoft.com/rest/api/cost-management/
retail-prices, read 2026-12-02).  A file may hold one page, several one after another or in a list, or a
list of items.  Which products are no plain Linux machines: fetch_azure.py in skypilot-org/skypilot@0089fca.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rooflight.errors import Refused
from rooflight.prices.catalogue import key, known
from rooflight.prices.offers import Tally
from rooflight.prices.text import Text
from rooflight.prices.walk import Path, walk

_PROVIDER = "Azure"
_OTHER_PRODUCTS = (" Win", "Cloud Services", "CloudServices", "Dedicated")
_SOURCE = "Azure Retail Prices API"


def read(text: Text, name: str, tally: Tally) -> str:
    """Note the prices of the file in ``tally``.  Empty: the API does not tell the day of its answer."""
    found = False
    if text.is_json:
        for number, item in enumerate(_items(text, name), 1):
            found = True
            _item(item, f"item {number}", tally)
    if not found:
        raise Refused(
            "no answer of the Azure Retail Prices API: it has no Items",
            where=name,
            hint="save what https://prices.azure.com/api/retail/prices answers, page by page",
        )
    return ""


def _items(text: Text, name: str) -> Iterator[dict[str, Any]]:
    for path, value in walk(text.stream, name, _enter):
        match path:
            case ("Items", int()) | (int(),) if isinstance(value, dict):
                page = value.get("Items") if len(path) == 1 else None
                yield from (i for i in page if isinstance(i, dict)) if isinstance(page, list) else (value,)
            case _:
                pass


def _enter(path: Path) -> bool:
    return path in ((), ("Items",))


def _item(item: dict[str, Any], where: str, tally: Tally) -> None:
    instance = known().get(key(_PROVIDER, _text(item, "armSkuName")))
    if instance is None:
        tally.skip("no GPU instance of our list")
    elif why := _other(item):
        tally.skip(why)
    elif _text(item, "currencyCode") not in ("", "USD"):
        tally.reject(f"{instance.name} ({where})", "the price is not in USD")
    else:
        meter = f"{_text(item, 'meterName')} {_text(item, 'skuName')}"
        tally.price(
            instance,
            _text(item, "armRegionName"),
            item.get("retailPrice"),
            where=where,
            spot="Spot" in meter or "Low Priority" in meter,
            since=_text(item, "effectiveStartDate"),
            source=_SOURCE,
        )


def _other(item: dict[str, Any]) -> str:
    """Why an item is no price of a plain Linux machine by the hour; empty when it is."""
    kind = _text(item, "type") or _text(item, "priceType")
    if kind != "Consumption":
        return {"Reservation": "reserved", "DevTestConsumption": "for development and tests"}.get(
            kind, "of another kind than Consumption"
        )
    if _text(item, "serviceName") not in ("", "Virtual Machines"):
        return "of another service"
    if any(word in _text(item, "productName") for word in _OTHER_PRODUCTS):
        return "Windows, or no plain machine"
    if _text(item, "unitOfMeasure") != "1 Hour":
        return "not by the hour"
    return "an ended price" if _text(item, "effectiveEndDate") else ""


def _text(item: dict[str, Any], field: str) -> str:
    value = item.get(field)
    return value if isinstance(value, str) else ""
