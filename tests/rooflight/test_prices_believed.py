"""Price lists as CSV, and which of their prices are believed."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path

import pytest

from rooflight.errors import Refused
from rooflight.prices import read_own
from rooflight.prices.guards import Judged
from rooflight.prices.own import write
from tests.rooflight.price_lists import Import, aws_csv, aws_json, aws_row, azure_item, azure_page, kept


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    return Import(tmp_path)


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
