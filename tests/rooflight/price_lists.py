"""Price lists as providers publish them, small."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from rooflight.prices.guards import Judged
from rooflight.prices.importing import import_prices

DAY = "2026-11-30"
AWS_COLUMNS = (
    "SKU", "OfferTermCode", "RateCode", "TermType", "PriceDescription", "EffectiveDate", "Unit",
    "PricePerUnit", "Currency", "Location", "Location Type", "Instance Type", "Tenancy", "Operating System",
    "CapacityStatus", "Pre Installed S/W", "MarketOption", "Region Code",
)  # fmt: skip
METADATA = [
    ("FormatVersion", "v1.0"),
    ("Disclaimer", "This pricing list is for informational purposes only, in general."),
    ("Publication Date", "2026-11-28T17:07:46Z"),
    ("Version", "20261128170746"),
    ("OfferCode", "AmazonEC2"),
]


def aws_row(instance: str = "p5.48xlarge", usd: str = "55.0400000000", **other: str) -> dict[str, str]:
    """A row of the CSV, by default the on-demand price of a plain Linux machine."""
    plain = {
        "SKU": "ABC", "TermType": "OnDemand", "PriceDescription": f"${usd} per On Demand Linux {instance}",
        "EffectiveDate": "2026-11-01", "Unit": "Hrs", "PricePerUnit": usd, "Currency": "USD",
        "Location": "US East (N. Virginia)", "Location Type": "AWS Region", "Instance Type": instance,
        "Tenancy": "Shared", "Operating System": "Linux", "CapacityStatus": "Used", "Pre Installed S/W": "NA",
        "MarketOption": "OnDemand", "Region Code": "us-east-1",
    }  # fmt: skip
    return plain | {k.replace("_", " "): v for k, v in other.items()}


def aws_csv(
    *rows: dict[str, str], columns: tuple[str, ...] = AWS_COLUMNS, head: list[Any] | None = None
) -> bytes:
    text = io.StringIO()
    out = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    out.writerows(METADATA if head is None else head)
    out.writerow(columns)
    out.writerows([r.get(c, "") for c in columns] for r in rows)
    return text.getvalue().encode()


def aws_json(*rows: dict[str, str]) -> bytes:
    """The same rows as the JSON has them: products and terms apart."""
    products, terms = {}, {}
    for n, r in enumerate(rows):
        sku = f"SKU{n}"
        products[sku] = {
            "sku": sku,
            "productFamily": "Compute Instance",
            "attributes": {
                "instanceType": r["Instance Type"], "tenancy": r["Tenancy"], "regionCode": r["Region Code"],
                "operatingSystem": r["Operating System"], "capacitystatus": r["CapacityStatus"],
                "preInstalledSw": r["Pre Installed S/W"], "marketoption": r["MarketOption"],
                "locationType": r["Location Type"],
            },
        }  # fmt: skip
        if r["TermType"] == "OnDemand":
            amount = {r["Currency"]: r["PricePerUnit"]}
            rate = {"unit": r["Unit"], "description": r["PriceDescription"], "pricePerUnit": amount}
            since = f"{r['EffectiveDate']}T00:00:00Z"
            terms[sku] = {f"{sku}.T": {"effectiveDate": since, "priceDimensions": {f"{sku}.T.R": rate}}}
    whole = {
        "formatVersion": "v1.0", "publicationDate": "2026-11-28T17:07:46Z", "products": products,
        "terms": {"OnDemand": terms, "Reserved": {"SKU0": {"x": {"priceDimensions": {}}}}},
    }  # fmt: skip
    return json.dumps(whole, indent=1).encode()


def azure_item(sku: str = "Standard_NC40ads_H100_v5", usd: float = 6.98, **other: Any) -> dict[str, Any]:
    """An item of the API, by default the price of a plain Linux machine."""
    plain = {
        "currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": usd, "unitPrice": usd,
        "armRegionName": "eastus", "location": "US East", "effectiveStartDate": "2024-06-01T00:00:00Z",
        "meterName": "NC40adsH100v5", "productName": "Virtual Machines NCadsH100v5 Series",
        "skuName": "Standard_NC40ads_H100_v5", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour",
        "type": "Consumption", "isPrimaryMeterRegion": True, "armSkuName": sku,
    }  # fmt: skip
    return plain | other


def azure_page(*items: dict[str, Any]) -> dict[str, Any]:
    return {"BillingCurrency": "USD", "Items": list(items), "NextPageLink": None, "Count": len(items)}


class Import:
    """Runs the importer on bytes, in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, data: bytes | Any, kind: str, **options: Any) -> Judged:
        path = self.folder / "prices.in"
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
        return import_prices([path], kind, day=DAY, **options)


def kept(judged: Judged) -> list[tuple[str, str, str]]:
    return [(i.name, i.region, str(i.usd_per_hour)) for i in judged.kept]
