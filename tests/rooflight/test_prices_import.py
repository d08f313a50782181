"""Price lists of AWS and Azure: what is taken, and what is refused."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from rooflight.errors import Malformed, Refused, TooLarge, Truncated
from rooflight.prices.importing import import_prices
from tests.rooflight.price_lists import (
    AWS_COLUMNS,
    DAY,
    Import,
    aws_csv,
    aws_json,
    aws_row,
    azure_item,
    azure_page,
    kept,
)


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    return Import(tmp_path)


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
