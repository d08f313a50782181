"""A user's own price list: what it says wins, and what is wrong in it is named by line and column."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path

import pytest

from rooflight.errors import Refused
from rooflight.prices import find_instance, instances, price_per_gpu_hour, read_own, with_own
from rooflight.prices.model import Instance
from rooflight.prices.own import COLUMNS, parse, write

HEADER = "provider,instance,usd_per_hour,region,date,source\n"


def one(row: str, header: str = HEADER) -> Instance:
    (found,) = parse(io.StringIO(header + row + "\n"), "prices.csv")
    return found


def test_an_amount_keeps_its_digits_and_the_rest_comes_from_our_list() -> None:
    own = one("aws,P5.48xlarge,41.280000000000000001,us-east-1,2026-11-30,contract of 2026")
    assert own.usd_per_hour == Decimal("41.280000000000000001")
    assert (own.provider, own.name) == ("AWS", "p5.48xlarge")
    assert (own.gpu_id, own.gpu_count, own.vcpu) == ("h100-sxm", 8, 192)
    assert (own.region, own.date, own.source) == ("us-east-1", "2026-11-30", "contract of 2026")
    assert (own.origin, own.confidence) == ("prices.csv", "own")


def test_an_instance_that_we_do_not_know() -> None:
    own = one(
        "Basement,node7,9.60,,2026-12-01,power,NVIDIA H100 80GB HBM3,4", HEADER[:-1] + ",gpu_id,gpu_count\n"
    )
    assert (own.provider, own.gpu_id, own.gpu_count) == ("Basement", "h100-sxm", 4)
    assert price_per_gpu_hour(own) == Decimal("2.4")  # 9.60 / 4


def test_what_a_row_says_of_the_gpus_wins() -> None:
    own = one("AWS,g5.48xlarge,16.288,,2026-12-01,,l4,4", HEADER[:-1] + ",gpu_id,gpu_count\n")
    assert (own.gpu_id, own.gpu_count) == ("l4", 4)


def test_columns_come_in_any_order_and_case_and_others_are_left_alone() -> None:
    header = "Note,USD_per_hour,Instance, Provider ,source,date,region,currency\n"
    own = one('"a, b",50,p5.48xlarge,AWS,,2026-12-01,,usd', header)
    assert own.usd_per_hour == 50
    assert own.source == ""


@pytest.mark.parametrize(
    ("row", "place", "what"),
    [
        ("AWS,p5.48xlarge,zero,,2026-12-01,", "line 2, column usd_per_hour", "no plain number"),
        ("AWS,p5.48xlarge,0,,2026-12-01,", "line 2, column usd_per_hour", "zero"),
        ("AWS,p5.48xlarge,-55.04,,2026-12-01,", "line 2, column usd_per_hour", "negative"),
        ("AWS,p5.48xlarge,NaN,,2026-12-01,", "line 2, column usd_per_hour", "no plain number"),
        ("AWS,p5.48xlarge,Infinity,,2026-12-01,", "line 2, column usd_per_hour", "no plain number"),
        ("AWS,p5.48xlarge,$55.04,,2026-12-01,", "line 2, column usd_per_hour", "no plain number"),
        ("AWS,p5.48xlarge,55.04 EUR,,2026-12-01,", "line 2, column usd_per_hour", "no plain number"),
        ('AWS,p5.48xlarge,"1,055.04",,2026-12-01,', "line 2, column usd_per_hour", "no plain number"),
        ("AWS,p5.48xlarge,٥٥,,2026-12-01,", "line 2, column usd_per_hour", "no plain number"),
        ("AWS,p5.48xlarge,1e30,,2026-12-01,", "line 2, column usd_per_hour", "more than 1000 USD"),
        # 8 GPUs x 1000 USD = 8000 USD
        ("AWS,p5.48xlarge,8000.01,,2026-12-01,", "line 2, column usd_per_hour", "more than 1000 USD"),
        ("AWS,p5.48xlarge," + "9" * 100_000 + ",,2026-12-01,", "line 2, column usd_per_hour", "longer than"),
        ("AWS,p5.48xlarge,,,2026-12-01,", "line 2, column usd_per_hour", "empty"),
        (",p5.48xlarge,50,,2026-12-01,", "line 2, column provider", "empty"),
        ("AWS,,50,,2026-12-01,", "line 2, column instance", "empty"),
        ("AWS,p5.48xlarge,50,,,", "line 2, column date", "empty"),
        ("AWS,p5.48xlarge,50,,2026-13-01,", "line 2, column date", "no day"),
        ("AWS,p5.48xlarge,50,,20261201,", "line 2, column date", "no day"),
        ("AWS,p5.48xlarge,50,,snapshot,", "line 2, column date", "no day"),
        ("AWS,p5.48xlage,50,,2026-12-01,", "line 2, column instance", "no instance of AWS that we know"),
        ("AWS,p5.48xlarge,50,2026-12-01,", "line 2", "5 cells where the header names 6 columns"),
        ('AWS,"p5.48xlarge,50,,2026-12-01,', "line 2", "no CSV"),
        ("AWS,p5.48xlarge,50,,2026-12-01,\nAWS,P5.48XLARGE,51,,2026-12-01,", "line 3", "line 2"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_line_and_column(row: str, place: str, what: str) -> None:
    with pytest.raises(Refused) as refusal:
        one(row)
    assert f"prices.csv, {place}" in str(refusal.value)
    assert what in str(refusal.value)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    ("header", "row", "place", "what"),
    [
        (HEADER[:-1] + ",currency\n", "AWS,p5.48xlarge,50,,2026-12-01,,EUR", "column currency", "convert"),
        (HEADER[:-1] + ",gpu_id\n", "AWS,new,50,,2026-12-01,,H100", "column gpu_id", "h100-sxm"),
        (HEADER[:-1] + ",gpu_id\n", "AWS,new,50,,2026-12-01,,Foo X1", "column gpu_id", "no GPU"),
        (HEADER[:-1] + ",gpu_id\n", "AWS,new,50,,2026-12-01,,h100-sxm", "column instance", "gpu_count"),
        # Two dies, each a device of its own: a price per card would be twice that of a device.
        (
            HEADER[:-1] + ",gpu_id\n",
            "AWS,new,50,,2026-12-01,,mi250x-card",
            "column gpu_id",
            "several devices",
        ),
        (HEADER[:-1] + ",gpu_count\n", "AWS,new,50,,2026-12-01,,0", "column gpu_count", "no number of GPUs"),
        (
            HEADER[:-1] + ",gpu_count\n",
            "AWS,new,50,,2026-12-01,,0.5",
            "column gpu_count",
            "no number of GPUs",
        ),
        ("provider,instance,eur_per_hour,region,date,source\n", "", "line 1", "usd_per_hour is missing"),
        ("provider;instance;usd_per_hour\n", "", "line 1", "semicolons"),
        (HEADER[:-1] + ",region\n", "", "line 1", "region is there twice"),
        ("", "", "prices.csv", "empty"),
    ],
)
def test_a_header_or_further_column_that_is_wrong(header: str, row: str, place: str, what: str) -> None:
    with pytest.raises(Refused) as refusal:
        parse(io.StringIO(header + row), "prices.csv")
    assert place in str(refusal.value)
    assert what in str(refusal.value)


def test_one_instance_in_two_regions_is_two_prices() -> None:
    text = HEADER + "AWS,p5.48xlarge,50,us-east-1,2026-12-01,\nAWS,p5.48xlarge,51,eu-north-1,2026-12-01,\n\n"
    listed = with_own(parse(io.StringIO(text), "prices.csv"))
    assert find_instance("p5.48xlarge", among=listed) is None
    found = find_instance("p5.48xlarge", region="EU-NORTH-1", among=listed)
    assert found is not None
    assert found.usd_per_hour == 51


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_in_any_encoding_that_a_spreadsheet_writes(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text(HEADER.replace("\n", "\r\n") + "AWS,p5.48xlarge,50,,2026-12-01,Verträge\r\n", encoding)
    (own,) = read_own(path)
    assert own.source == "Verträge"


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="No such file"):
        read_own(tmp_path / "none.csv")
    with pytest.raises(Refused, match="directory"):
        read_own(tmp_path)


def test_bytes_that_are_no_table_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    for data in (b"\x00" * 5000, bytes(range(256)) * 50, b"\x1f\x8b\x08\x00broken", b"a" * (2 << 20)):
        path.write_bytes(data)
        with pytest.raises(Refused):
            read_own(path)


def test_what_is_written_is_read_back() -> None:
    priced = [i for i in instances() if i.usd_per_hour is not None and i.date[:2] == "20"]
    assert len(priced) > 20
    text = io.StringIO()
    write(instances(), text)
    assert text.getvalue().startswith(",".join(COLUMNS) + "\n")
    rows = [
        r for r in text.getvalue().splitlines(keepends=True) if "snapshot" not in r and "undated" not in r
    ]
    back = parse(io.StringIO("".join(rows)), "prices.csv")
    assert [(i.provider, i.name, i.usd_per_hour, i.region, i.date, i.source) for i in back] == [
        (i.provider, i.name, i.usd_per_hour, i.region, i.date, i.source) for i in priced
    ]
