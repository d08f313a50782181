"""The instances that we know: what the collected table says, and how one is found and sorted."""

from __future__ import annotations

import csv
import runpy
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from rooflight.hardware.catalogue import by_id
from rooflight.prices import (
    Wanted,
    find_instance,
    find_instances,
    instances,
    price_per_gpu_hour,
    selected,
    with_own,
)
from rooflight.prices.entry import entry
from rooflight.prices.model import Instance
from tests import shared

TABLE = shared.traces_dir().parent / "hardware" / "instances.csv"
#: Column of the table -> key of the JSON entry.
CELLS = {
    "provider": "provider",
    "gpu_id": "gpu_id",
    "gpu_count": "gpu_count",
    "vcpu": "vcpu",
    "ram_gib": "ram_gib",
    "gpu_mem_mib_each": "gpu_mem_mib",
    "network_gbps": "network_gbps",
    "interconnect": "interconnect",
    "usd_per_hour": "usd_per_hour",
    "region": "region",
    "price_date": "price_date",
    "source": "source",
    "confidence": "confidence",
    "notes": "notes",
}


def table() -> list[dict[str, str]]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.traces
def test_every_cell_of_the_collected_table_is_there() -> None:
    rows = table()
    assert len(rows) == len(instances()) >= 70
    for row, instance in zip(rows, instances(), strict=True):
        told = entry(instance)
        # The region in parentheses only told two rows of one instance apart.
        assert row["instance"] in (instance.name, f"{instance.name} ({instance.region})")
        for column, key in CELLS.items():
            value = told[key]
            if not row[column]:
                assert value in (None, ""), (instance.name, key)
            elif row[column].startswith("name from the task"):
                assert value == "none read: the name alone"
            elif isinstance(value, (int, float)):
                assert value == float(row[column]), (instance.name, key)
            else:
                assert value == row[column], (instance.name, key)
        if row["usd_per_gpu_hour"]:
            # The table has it with four decimals.
            assert told["usd_per_gpu_hour"] == pytest.approx(float(row["usd_per_gpu_hour"]), abs=6e-5)


@pytest.mark.traces
def test_the_file_is_what_the_script_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(shared.CHECKOUT / "scripts"))
    script = runpy.run_path(str(shared.CHECKOUT / "scripts/make_instances.py"))
    assert script["main"](["make_instances.py", str(TABLE), str(tmp_path / "out.toml")]) == 0
    sys.modules.pop("make_specs", None)
    made = (tmp_path / "out.toml").read_text()
    assert made == (shared.CHECKOUT / "rooflight/prices/instances.toml").read_text()


def test_every_gpu_is_one_of_the_catalogue() -> None:
    assert {i.gpu_id for i in instances()} <= set(by_id())


def test_every_price_has_its_date_and_every_entry_its_source() -> None:
    assert [i.name for i in instances() if i.usd_per_hour is not None and not i.date] == []
    assert [i.name for i in instances() if not i.source] == []


def test_a_price_that_was_not_seen_is_unknown_and_never_zero() -> None:
    unseen = find_instance("g5.48xlarge")
    assert unseen is not None
    assert unseen.usd_per_hour is None
    assert price_per_gpu_hour(unseen) is None
    assert entry(unseen)["usd_per_gpu_hour"] is None
    assert [i.name for i in instances() if i.usd_per_hour is not None and i.usd_per_hour <= 0] == []


def test_the_price_of_a_gpu_hour() -> None:
    p5 = find_instance("p5.48xlarge")
    assert p5 is not None
    assert p5.usd_per_hour == Decimal("55.04")
    assert price_per_gpu_hour(p5) == Decimal("6.88")  # 55.04 / 8
    # 989.4 TFLOP/s of dense bf16 / 6.88 USD = 143.808
    assert entry(p5)["bf16_tflops_per_usd"] == 143.808


def test_a_number_of_gpus_that_is_not_known_is_not_one() -> None:
    uncounted = find_instance("Standard_NC128ds_xl_RTXPRO6000BSE_v6")
    assert uncounted is not None
    assert uncounted.usd_per_hour == Decimal("6.38")
    assert price_per_gpu_hour(uncounted) is None


def test_a_part_without_bf16_has_no_bf16_per_dollar() -> None:
    v100 = find_instance("p3.8xlarge")
    assert v100 is not None
    assert entry(v100)["usd_per_gpu_hour"] == 3.06  # 12.24 / 4
    assert entry(v100)["bf16_tflops_per_usd"] is None


def test_a_snapshot_is_said_to_be_one() -> None:
    b200 = find_instance("p6-b200.48xlarge")
    assert b200 is not None
    assert entry(b200)["price_date"] == "snapshot"


@pytest.mark.parametrize("name", ["P5.48XLARGE", " p5.48xlarge ", "p5.48xlarge"])
def test_a_name_is_found_in_any_case(name: str) -> None:
    found = find_instance(name)
    assert found is not None
    assert found.name == "p5.48xlarge"


@pytest.mark.parametrize("name", ["", "p5", "48xlarge", "p5.48xlarg", "H100", "NVIDIA H100 80GB HBM3"])
def test_an_instance_is_never_guessed(name: str) -> None:
    assert find_instance(name) is None


def test_a_name_that_the_provider_uses_too_is_found() -> None:
    found = find_instance("Standard_ND96asr_v4")
    assert found is not None
    assert found.name == "Standard_ND96asr_A100_v4"


def test_one_instance_in_two_regions_needs_the_region() -> None:
    assert len(find_instances("a2-highgpu-1g")) == 2
    assert find_instance("a2-highgpu-1g") is None
    asia = find_instance("a2-highgpu-1g", region="asia-east1")
    assert asia is not None
    assert asia.usd_per_hour == Decimal("3.790142")
    iowa = find_instance("a2-highgpu-1g", region="us-central1")
    assert iowa is not None
    assert iowa.usd_per_hour is None


def test_a_price_of_another_region_does_not_stand_in() -> None:
    assert find_instance("p5.48xlarge", region="eu-north-1") is None
    # Its region is not told, and so it is no price of this one.
    assert find_instance("Standard_ND96isr_H100_v5", region="brazilsouth") is None
    assert find_instance("p5.48xlarge", provider="azure") is None


def test_the_cheapest_gpu_hour_comes_first_and_the_unknown_last() -> None:
    listed = selected(instances(), Wanted(gpu_ids=["h100-sxm"]))
    prices = [price_per_gpu_hour(i) for i in listed]
    known = [p for p in prices if p is not None]
    assert len(known) > 8
    assert known == sorted(known)
    assert prices[: len(known)] == known
    assert prices[len(known) :] == [None]  # a3-megagpu-8g
    assert listed[0].name == "Community H100 SXM"  # 2.69
    assert {i.gpu_id for i in listed} == {"h100-sxm"}


def test_own_prices_win_for_the_whole_instance() -> None:
    ours = find_instance("p5.48xlarge")
    assert ours is not None
    own = replace(ours, usd_per_hour=Decimal(40), region="eu-north-1", origin="prices.csv")
    listed = with_own([own])
    assert find_instances("p5.48xlarge", among=listed) == (own,)
    assert len(listed) == len(instances())
    # A later list wins over an earlier one.
    newer = replace(own, usd_per_hour=Decimal(39), region="", origin="newer.csv")
    assert find_instance("p5.48xlarge", among=with_own([own], [newer])) == newer
    # Without a region it is meant for all of them.
    assert find_instance("p5.48xlarge", region="us-west-2", among=with_own([newer])) == newer
    assert find_instance("p5.48xlarge", region="us-west-2", among=listed) is None
    # The price of a region wins over the one for all.
    both = with_own([own, newer])
    assert find_instance("p5.48xlarge", region="eu-north-1", among=both) == own
    assert find_instance("p5.48xlarge", region="us-west-2", among=both) == newer
    assert find_instance("p5.48xlarge", among=both) is None


def test_names_of_two_providers_are_two_instances() -> None:
    one = Instance("A", "big", "b200", 8, usd_per_hour=Decimal(8), origin="x")
    other = Instance("B", "big", "b200", 8, usd_per_hour=Decimal(9), origin="x")
    listed = with_own([one], [other])
    assert find_instance("big", among=listed) is None
    assert find_instance("big", provider="b", among=listed) == other
