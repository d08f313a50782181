"""From a provider's price file to a price list: which rows count, and which are not believed.

The forms follow the documentation of AWS and Azure; the files here are made up.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rooflight.errors import Malformed, Refused, TooLarge, Truncated
from rooflight.prices import read_own
from rooflight.prices.guards import Judged
from rooflight.prices.importing import import_prices
from rooflight.prices.own import write

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


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    return Import(tmp_path)


def kept(judged: Judged) -> list[tuple[str, str, str]]:
    return [(i.name, i.region, str(i.usd_per_hour)) for i in judged.kept]


# --- AWS -------------------------------------------------------------------------------------------

OTHER_ROWS = [
    (aws_row("m7i.large"), "no GPU instance of our list"),
    (aws_row(""), "no GPU instance of our list"),
    (aws_row(TermType="Reserved"), "reserved"),
    (aws_row(Operating_System="Windows"), "another operating system"),
    (aws_row(Tenancy="Dedicated"), "another tenancy"),
    (aws_row(CapacityStatus="UnusedCapacityReservation", usd="0.00"), "a reservation of capacity"),
    ({**aws_row(), "Pre Installed S/W": "SQL Ent"}, "with software"),
    (aws_row(MarketOption="CapacityBlock"), "a capacity block"),
    (aws_row(usd="0.00", PriceDescription="$0.00 per p5.48xlarge Capacity Block"), "a capacity block"),
    (aws_row(Location_Type="AWS Local Zone"), "a zone outside of regions"),
    (aws_row(Unit="Quantity"), "not by the hour"),
]  # fmt: skip


@pytest.mark.parametrize("form", [aws_csv, aws_json])
def test_the_on_demand_linux_price_is_taken_and_the_rest_counted(form: Any, imported: Import) -> None:
    told = imported(form(aws_row(), *(r for r, _ in OTHER_ROWS)), "aws")
    assert kept(told) == [("p5.48xlarge", "us-east-1", "55.0400000000")]
    if form is aws_csv:
        assert told.skipped == {
            "no GPU instance of our list": 2, "reserved": 1, "another operating system": 1,
            "another tenancy": 1, "a reservation of capacity": 1, "with software": 1, "a capacity block": 2,
            "a zone outside of regions": 1, "not by the hour": 1,
        }  # fmt: skip
    else:
        # A product of which there is only a reserved term has no on-demand price.
        assert told.skipped["without an on-demand price"] == 1
    assert told.skipped.total() == len(OTHER_ROWS)
    assert told.rejected == ()
    (p5,) = told.kept
    assert (p5.gpu_id, p5.gpu_count) == ("h100-sxm", 8)


def test_a_list_of_aws_is_dated_by_its_publication(tmp_path: Path) -> None:
    for form in (aws_csv, aws_json):
        path = tmp_path / "index"
        path.write_bytes(form(aws_row()))
        (p5,) = import_prices([path], "aws").kept
        assert p5.date == "2026-11-28"
        assert p5.source == "AWS Price List AmazonEC2, published 2026-11-28"


def test_a_list_of_before_capacity_blocks_lacks_columns(imported: Import) -> None:
    older = tuple(c for c in AWS_COLUMNS if c not in ("MarketOption", "Region Code", "Location Type"))
    told = imported(aws_csv(aws_row(), columns=older), "aws")
    assert kept(told) == [("p5.48xlarge", "US East (N. Virginia)", "55.0400000000")]


def test_a_list_without_what_tells_a_plain_price_is_refused(imported: Import) -> None:
    lacking = tuple(c for c in AWS_COLUMNS if c != "Operating System")
    with pytest.raises(Malformed, match="Operating System is missing"):
        imported(aws_csv(aws_row(), columns=lacking), "aws")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"provider,instance\nAWS,p5.48xlarge\n",
        b"\n" * 100,
        b"{}",
        b'{"Items": []}',
        b"[]",
        b"PK\x03\x04 not a price list",
    ],
)
def test_what_is_no_list_of_aws_is_said_to_be_none(data: bytes, imported: Import) -> None:
    with pytest.raises(Refused, match="no price list of AWS"):
        imported(data, "aws")


@pytest.mark.parametrize(
    ("usd", "why"),
    [
        ("0.0000000000", "zero"),
        ("-1", "negative"),
        ("n/a", "no plain number"),
        ("", "no plain number"),
        ("nan", "no plain number"),
        ("8000.5", "more than 1000 USD per GPU"),  # 8 GPUs
        ("1" * 300, "no plain number"),
    ],
)
def test_an_amount_that_can_be_no_price_is_rejected(usd: str, why: str, imported: Import) -> None:
    for form, place in ((aws_csv, "line 7"), (aws_json, "SKU0")):
        told = imported(form(aws_row(usd=usd)), "aws")
        assert told.kept == ()
        (rejection,) = told.rejected
        assert "p5.48xlarge us-east-1" in str(rejection)
        assert place in str(rejection)
        assert why in str(rejection)
        assert len(str(rejection)) < 300


def test_another_currency_is_rejected(imported: Import) -> None:
    for form in (aws_csv, aws_json):
        told = imported(form(aws_row(Currency="CNY")), "aws")
        assert told.kept == ()
        assert "not in USD" in str(told.rejected[0])


def test_rows_that_are_cut_or_broken_are_named_by_line(imported: Import) -> None:
    whole = aws_csv(aws_row(), aws_row())
    with pytest.raises(Malformed, match="line 8"):
        imported(whole[:-40], "aws")
    with pytest.raises(TooLarge, match="line 9"):
        imported(whole + b"x" * (3 << 20), "aws")


def test_the_json_may_be_cut_anywhere(imported: Import) -> None:
    whole = aws_json(aws_row(), aws_row("g6.xlarge", "0.8048"))
    for end in range(1, len(whole), 7):
        with pytest.raises(Refused):
            imported(whole[:end], "aws")


def test_json_terms_before_products_cannot_be_joined(imported: Import) -> None:
    doc = json.loads(aws_json(aws_row()))
    turned = {"terms": doc["terms"], "products": doc["products"]}
    with pytest.raises(Malformed, match="before the products"):
        imported(turned, "aws")


def test_json_of_other_shapes_is_no_traceback(imported: Import) -> None:
    for products in ([], {"a": 1}, {"a": {"attributes": []}}, {"a": {"attributes": {"instanceType": {}}}}):
        try:
            told = imported({"products": products, "terms": {"OnDemand": {"a": [1]}}}, "aws")
        except Refused:
            continue
        assert told.kept == ()
    rates: list[Any] = [[1], {"r": 1}, {"r": {"unit": "Hrs", "pricePerUnit": 3}}]
    terms: list[Any] = [[], {"t": 1}, *({"t": {"priceDimensions": r}} for r in rates)]
    for term in terms:
        doc = json.loads(aws_json(aws_row()))
        doc["terms"]["OnDemand"]["SKU0"] = term
        assert imported(doc, "aws").kept == ()


def test_json_nested_too_deeply_is_refused(imported: Import) -> None:
    with pytest.raises(Malformed, match="nested too deeply"):
        imported(b'{"products": {"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}", "aws")


@pytest.mark.parametrize("form", [aws_csv, aws_json])
def test_memory_does_not_grow_with_the_file(form: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.gz"
    strangers = [aws_row("m7i.large", PriceDescription="x" * 4000)] * 3_000
    whole = form(aws_row(), *strangers)
    assert len(whole) > 10 << 20
    path.write_bytes(gzip.compress(whole, 1))
    del whole, strangers
    tracemalloc.start()
    try:
        told = import_prices([path], "aws", day=DAY)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(told.kept) == 1
    assert told.skipped.total() == 3_000
    assert peak < 4 << 20


# --- Azure -----------------------------------------------------------------------------------------

OTHER_ITEMS = [
    (azure_item("Standard_D4s_v5"), "no GPU instance of our list"),
    (azure_item(type="Reservation", reservationTerm="1 Year", usd=25007.0), "reserved"),
    (azure_item(type="DevTestConsumption"), "for development and tests"),
    (azure_item(productName="Virtual Machines NCadsH100v5 Series Windows"), "Windows, or no plain machine"),
    (azure_item(productName="Virtual Machines NCCadsv5 Srs Win"), "Windows, or no plain machine"),
    (azure_item(productName="NCadsH100v5 Series Cloud Services"), "Windows, or no plain machine"),
    (azure_item(productName="NCadsH100v5 Series Dedicated Host"), "Windows, or no plain machine"),
    (azure_item(serviceName="Cloud Services"), "of another service"),
    (azure_item(unitOfMeasure="1 Month"), "not by the hour"),
    (azure_item(effectiveEndDate="2025-01-01T00:00:00Z"), "an ended price"),
    (azure_item(usd=2.1, meterName="NC40adsH100v5 Spot"), "a spot price"),
    (azure_item(usd=1.4, skuName="NC40adsH100v5 Low Priority"), "a spot price"),
]


def test_the_consumption_price_is_taken_and_the_rest_counted(imported: Import) -> None:
    told = imported(azure_page(azure_item(), *(i for i, _ in OTHER_ITEMS)), "azure")
    assert kept(told) == [("Standard_NC40ads_H100_v5", "eastus", "6.98")]
    assert told.skipped == {why: sum(w == why for _, w in OTHER_ITEMS) for why in {w for _, w in OTHER_ITEMS}}
    assert told.kept[0].source == "Azure Retail Prices API"
    assert told.kept[0].date == DAY


def test_pages_come_in_any_form_that_they_are_saved_in(imported: Import) -> None:
    one, other = azure_item(), azure_item("Standard_NC24ads_A100_v4", 3.673)
    pages = [azure_page(one), azure_page(other)]
    texts = [
        json.dumps(azure_page(one, other)),
        json.dumps(pages),
        json.dumps([one, other]),
        "\n".join(map(json.dumps, pages)),  # one after another
        "".join(json.dumps(p, indent=2) for p in pages),
    ]
    forms = [t.encode() for t in texts]
    forms += [texts[0].encode("utf-8-sig"), texts[0].encode("utf-16"), gzip.compress(texts[0].encode())]
    for data in forms:
        assert kept(imported(data, "azure")) == [
            ("Standard_NC24ads_A100_v4", "eastus", "3.673"),
            ("Standard_NC40ads_H100_v5", "eastus", "6.98"),
        ]


def test_several_files_are_judged_together(tmp_path: Path) -> None:
    # 6.98 and 15.00 differ 2.15 times.
    for name, item in (("a", azure_item()), ("b", azure_item(usd=15.0, armRegionName="brazilsouth"))):
        (tmp_path / f"{name}.json").write_text(json.dumps(azure_page(item)))
    told = import_prices([tmp_path / "a.json", tmp_path / "b.json"], "azure", day=DAY)
    assert told.kept == ()
    assert {str(r).split(":")[0] for r in told.rejected} == {
        "Standard_NC40ads_H100_v5 eastus 6.98 (a.json item 1)",
        "Standard_NC40ads_H100_v5 brazilsouth 15.0 (b.json item 1)",
    }


def test_a_name_of_azures_own_stands_for_ours(imported: Import) -> None:
    told = imported(azure_page(azure_item("Standard_ND96asr_v4", 27.197)), "azure")
    assert kept(told) == [("Standard_ND96asr_A100_v4", "eastus", "27.197")]


@pytest.mark.parametrize(
    "price", [0, 0.0, -6.98, "free", None, True, [6.98], {"USD": 6.98}, 1e999, 6.98e6, "6,98"]
)
def test_no_price_of_azure(price: Any, imported: Import) -> None:
    told = imported(azure_page(azure_item(retailPrice=price)), "azure")
    assert told.kept == ()
    assert len(told.rejected) == 1
    assert "item 1" in str(told.rejected[0])


def test_another_currency_of_azure_is_rejected(imported: Import) -> None:
    told = imported(azure_page(azure_item(currencyCode="EUR")), "azure")
    assert told.kept == ()
    assert "not in USD" in str(told.rejected[0])


@pytest.mark.parametrize(
    "data", [b"", b"SKU,Price\n", b"{}", b"[]", b'{"error": {"code": "400"}}', b'"Items"', b"[1, 2]"]
)
def test_what_is_no_answer_of_azure_is_said_to_be_none(data: bytes, imported: Import) -> None:
    with pytest.raises(Refused, match="Azure Retail Prices"):
        imported(data, "azure")


def test_a_page_that_is_cut_is_said_to_be(imported: Import) -> None:
    whole = json.dumps(azure_page(azure_item())).encode()
    for end in (40, 100, 400, len(whole) - 1):
        with pytest.raises(Truncated):
            imported(whole[:end], "azure")
    with pytest.raises(Truncated, match="gzip"):
        imported(gzip.compress(whole)[:-9], "azure")
    with pytest.raises(Malformed, match="gzip"):
        imported(gzip.compress(whole)[:30] + b"\xff" * 40, "azure")
    with pytest.raises(Malformed, match="character"):
        imported(whole.replace(b'"USD", ', b'"USD"; ', 1), "azure")


def test_a_region_is_a_region(imported: Import) -> None:
    told = imported(azure_page(azure_item(armRegionName="=cmd|' /C calc'!A0\x1b[2J")), "azure")
    assert told.kept == ()
    assert "no region" in str(told.rejected[0])
    assert "\x1b" not in str(told.rejected[0])


def test_a_million_characters_of_one_item_are_refused(imported: Import) -> None:
    with pytest.raises(TooLarge, match="longer than"):
        imported(azure_page(azure_item(meterName="x" * (9 << 20))), "azure")


# --- lists as CSV ----------------------------------------------------------------------------------


def test_our_own_form_passes_the_guards_too(imported: Import) -> None:
    text = (
        "provider,instance,usd_per_hour,spot_usd_per_hour,region,date,source\n"
        "AWS,p5.48xlarge,55.04,20,us-east-1,2026-11-09,a page\n"
        "AWS,p4d.24xlarge,21.96,22,us-east-1,2026-11-09,a page\n"
        "AWS,g6.xlarge,,0.3,us-east-1,2026-11-09,a page\n"
        "AWS,g5.xlarge,1.006,,us-east-1,yesterday,a page\n"
    )
    told = imported(text.encode(), "csv")
    assert kept(told) == [("p5.48xlarge", "us-east-1", "55.04")]
    assert (told.kept[0].date, told.kept[0].source) == ("2026-11-09", "a page")
    above = "the spot price is above it: p4d.24xlarge us-east-1 22 (line 3)"
    assert [str(r) for r in told.rejected] == [
        "g5.xlarge us-east-1 (line 5): 'yesterday' is no day",
        f"p4d.24xlarge us-east-1 21.96 (line 3): {above}",
    ]


def test_the_columns_of_other_catalogues(imported: Import) -> None:
    skypilot = (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
        "AvailabilityZone\n"
        "p5.48xlarge,H100,8.0,192.0,2048.0,x,55.04,20.1,us-east-1,us-east-1a\n"
        "p5.48xlarge,H100,8.0,192.0,2048.0,x,55.04,21.1,us-east-1,us-east-1b\n"
        "m7i.large,,,2,8,,0.1,0.05,us-east-1,us-east-1a\n"
    )
    told = imported(skypilot.encode(), "csv", provider="aws")
    assert kept(told) == [("p5.48xlarge", "us-east-1", "55.04")]
    assert told.skipped == {"no GPU instance of our list": 1, "the same price again": 1, "a spot price": 2}
    gpuhunt = (
        "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size\n"
        "p5.48xlarge,us-east-1,55.04,192,2048,8,H100,80,False,\n"
        "p5.48xlarge,us-east-1,20.5,192,2048,8,H100,80,True,\n"
        "p5.4xlarge,us-east-1,6.88,16,256,8,H100,80,False,\n"
    )
    told = imported(gpuhunt.encode(), "csv", provider="AWS")
    assert kept(told) == [("p5.48xlarge", "us-east-1", "55.04")]
    assert [str(r) for r in told.rejected] == [
        "p5.4xlarge us-east-1 (line 4): the row has 8 GPUs, the instance 1"
    ]


def test_the_price_of_the_host_alone_is_no_price_of_the_instance(imported: Import) -> None:
    # SkyPilot's list of Google Cloud prices the GPUs in rows of their own.
    text = (
        "InstanceType,AcceleratorName,AcceleratorCount,Price,Region\n"
        "a2-highgpu-1g,,,0.73948,us-central1\n"
        ",A100,1,2.93,us-central1\n"
    )
    told = imported(text.encode(), "csv", provider="GCP")
    assert told.kept == ()
    assert "host alone" in str(told.rejected[0])


def test_a_list_needs_a_provider_an_instance_and_a_price(imported: Import) -> None:
    with pytest.raises(Refused, match="--provider"):
        imported(b"instance,price\np5.48xlarge,55\n", "csv")
    with pytest.raises(Refused, match="name them instance and usd_per_hour"):
        imported(b"provider,cost\nAWS,55\n", "csv")


# --- what is not believed --------------------------------------------------------------------------


def regions(imported: Import, **prices: str) -> Judged:
    rows = (
        aws_row(usd=usd, Region_Code=region.replace("_", "-"), SKU=region) for region, usd in prices.items()
    )
    return imported(aws_csv(*rows), "aws")


def test_regions_that_differ_twofold_are_still_believed(imported: Import) -> None:
    assert len(regions(imported, a="40", b="80").kept) == 2


def test_of_two_regions_that_differ_more_neither_is_believed(imported: Import) -> None:
    # The public list's bug: 78.4 / 33.6 = 2.33 times.
    told = regions(imported, us_central1="33.6", us_east4="78.4")
    assert told.kept == ()
    low, high = "p5.48xlarge us-central1 33.6 (line 7)", "p5.48xlarge us-east4 78.4 (line 8)"
    assert [str(r) for r in told.rejected] == [
        f"{low}: regions differ 2.33 times, more than 2: {high}",
        f"{high}: regions differ 2.33 times, more than 2: {low}",
    ]


def test_the_one_that_stands_apart_goes(imported: Import) -> None:
    told = regions(imported, a="33.6", b="78.4", c="80", d="87.8")
    # The middle is sqrt(78.4 x 80) = 79.2: 79.2 / 33.6 = 2.36, and 87.8 / 79.2 = 1.11.
    assert [i.region for i in told.kept] == ["b", "c", "d"]
    assert [str(r).split(" (")[0] for r in told.rejected] == ["p5.48xlarge a 33.6"]
    told = regions(imported, a="40", b="42", c="44", d="400")
    assert [i.region for i in told.kept] == ["a", "b", "c"]
    told = regions(imported, a="10", b="40", c="42", d="44", e="200")
    assert [i.region for i in told.kept] == ["b", "c", "d"]


def test_what_is_kept_is_never_spread_more_than_twofold(imported: Import) -> None:
    for n in range(60):
        prices = {f"r{i}": str(1 + (n * 7919 + i * i * 104729) % 97) for i in range(n % 9)}
        told = regions(imported, **prices)
        amounts = [i.usd_per_hour for i in told.kept if i.usd_per_hour is not None]
        assert len(told.kept) + len(told.rejected) == len(prices)
        if amounts:
            assert max(amounts) <= 2 * min(amounts)


def test_other_instances_are_not_compared(imported: Import) -> None:
    told = imported(aws_csv(aws_row(), aws_row("g6.xlarge", "0.8048")), "aws")
    assert [i.name for i in told.kept] == ["g6.xlarge", "p5.48xlarge"]


def test_a_price_below_its_spot_price_is_rejected(imported: Import) -> None:
    spot = azure_item(usd=7.5, skuName="NC40adsH100v5 Spot")
    elsewhere = azure_item(usd=7.2, armRegionName="westus")
    told = imported(azure_page(azure_item(), spot, elsewhere), "azure")
    assert kept(told) == [("Standard_NC40ads_H100_v5", "westus", "7.2")]
    above = "the spot price is above it: Standard_NC40ads_H100_v5 eastus 7.5 (item 2)"
    assert [str(r) for r in told.rejected] == [f"Standard_NC40ads_H100_v5 eastus 6.98 (item 1): {above}"]
    same = azure_item(usd=6.98, skuName="NC40adsH100v5 Spot")
    assert len(imported(azure_page(azure_item(), same), "azure").kept) == 1


def test_of_two_prices_for_the_same_the_newest_that_holds_counts(imported: Import) -> None:
    rows = (
        aws_row(usd="98.32", EffectiveDate="2024-01-01"),
        aws_row(usd="55.04", EffectiveDate="2025-06-01"),
        aws_row(usd="50.00", EffectiveDate="2027-01-01"),  # after DAY
    )
    for form in (aws_csv, aws_json):
        told = imported(form(*rows), "aws")
        assert kept(told) == [("p5.48xlarge", "us-east-1", "55.04")]
        assert told.skipped == {"an older price": 1, "a price of the future": 1}


def test_two_prices_of_the_same_day_are_both_rejected(imported: Import) -> None:
    told = imported(aws_csv(aws_row(usd="55.04"), aws_row(usd="98.32")), "aws")
    assert told.kept == ()
    assert len(told.rejected) == 2
    assert "another price for the same" in str(told.rejected[0])


def test_a_list_that_was_made_is_a_list_of_ones_own(tmp_path: Path, imported: Import) -> None:
    told = imported(
        aws_csv(
            aws_row(), aws_row(usd="60.1", Region_Code="eu-north-1"), aws_row("g6.xlarge", "0.8048000000")
        ),
        "aws",
    )
    text = io.StringIO()
    write(told.kept, text)
    rest = '2026-11-30,"AWS Price List AmazonEC2, published 2026-11-28"'
    assert text.getvalue().splitlines() == [
        "provider,instance,usd_per_hour,region,date,source",
        f"AWS,g6.xlarge,0.8048000000,us-east-1,{rest}",
        f"AWS,p5.48xlarge,60.1,eu-north-1,{rest}",
        f"AWS,p5.48xlarge,55.0400000000,us-east-1,{rest}",
    ]
    path = tmp_path / "prices.csv"
    path.write_text(text.getvalue())
    own = read_own(path)
    assert [i.usd_per_hour for i in own] == [Decimal("0.8048"), Decimal("60.1"), Decimal("55.04")]
