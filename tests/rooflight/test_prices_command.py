"""``rooflight gpus instances`` and ``rooflight prices``: what is printed, written and answered."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rooflight.cli.main import main

OWN = (
    "provider,instance,usd_per_hour,region,date,source\n"
    "AWS,p5.48xlarge,20.00,us-east-1,2026-11-30,our contract\n"
)
LIST = (
    "provider,instance,usd_per_hour,region\n"
    "AWS,p5.48xlarge,55.04,us-east-1\n"
    "AWS,p5.48xlarge,60.00,eu-north-1\n"
    "AWS,m7i.large,0.1,us-east-1\n"
    "AWS,g6.xlarge,0,us-east-1\n"
)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(OWN)
    return path


def answer(capsys: pytest.CaptureFixture[str], *args: str | Path) -> Any:
    assert main(["gpus", "instances", "--format", "json", *map(str, args)]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_json_is_sorted_by_the_price_of_a_gpu_hour(capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys)
    prices = [r["usd_per_gpu_hour"] for r in rows]
    known = [p for p in prices if p is not None]
    assert known == sorted(known)
    assert len(known) > 50
    assert set(prices[len(known) :]) == {None}
    assert all(r["source"] for r in rows)


def test_a_gpu_and_a_provider_select(capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys, "--gpu", "NVIDIA H100 80GB HBM3", "--provider", "aws")
    assert {(r["instance"], r["gpu_id"]) for r in rows} == {
        ("p5.4xlarge", "h100-sxm"),
        ("p5.48xlarge", "h100-sxm"),
    }
    # Of a name that may be several boards all are listed, and of a stranger none.
    assert {r["gpu_id"] for r in answer(capsys, "--gpu", "H100")} == {"h100-sxm", "h100-pcie", "h100-nvl"}
    assert answer(capsys, "--gpu", "Foo X1") == []
    assert [r["instance"] for r in answer(capsys, "--region", "asia-east1")] == ["a2-highgpu-1g"]


def test_a_price_of_ones_own_wins_and_says_so(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ours,) = (r for r in answer(capsys) if r["instance"] == "p5.48xlarge")
    assert (ours["usd_per_hour"], ours["price_from"]) == (55.04, None)
    (mine,) = (r for r in answer(capsys, "--prices", own) if r["instance"] == "p5.48xlarge")
    assert (mine["usd_per_hour"], mine["usd_per_gpu_hour"], mine["price_from"]) == (20.0, 2.5, "mine.csv")
    assert (mine["price_date"], mine["source"]) == ("2026-11-30", "our contract")


def test_the_table_tells_date_region_and_source(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "instances", "--gpu", "h100-sxm", "--provider", "AWS", "--prices", str(own)]) == 0
    head, first, second, *rest = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "USD/GPU", "h", "USD/h", "GPUs", "bf16/USD", "GPU", "provider", "instance", "region", "as", "of",
        "source",
    ]  # fmt: skip
    # 989.4 TFLOP/s / 2.50 USD = 395.8; / 6.88 = 143.8
    assert first.split() == [
        "2.5000", "20.0000", "8", "395.8", "h100-sxm", "AWS", "p5.48xlarge", "us-east-1", "2026-11-30", "[1]",
    ]  # fmt: skip
    assert second.split()[:4] == ["6.8800", "6.8800", "1", "143.8"]
    assert second.split()[-2:] == ["snapshot", "[2]"]
    assert "  [1] your mine.csv: our contract" in rest


def test_a_price_that_is_not_known_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "instances", "--gpu", "mi300x"]) == 0
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split()[:4] == ["–", "–", "8", "–"]


def test_no_instance_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "instances", "--provider", "nobody"]) == 0
    assert "no instance" in capsys.readouterr().out


def test_a_broken_list_is_one_line_and_status_2(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own.write_text(OWN.replace("20.00", "20\x1b[31m EUR"))
    assert main(["gpus", "instances", "--prices", str(own)]) == 2
    err = capsys.readouterr().err
    assert "mine.csv, line 2, column usd_per_hour" in err
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_names_from_a_list_do_not_drive_the_terminal(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own.write_text(
        'provider,instance,usd_per_hour,region,date,source,gpu_id,gpu_count\n'
        '"x\x1b[2J",node,1,"r\x07",2026-11-30,"s\x1b[31m",l4,1\n'
    )  # fmt: skip
    assert main(["gpus", "instances", "--prices", str(own)]) == 0
    out = capsys.readouterr().out
    assert "node" in out
    assert "\x1b" not in out
    assert "\x07" not in out


@pytest.mark.parametrize("option", ["--gpu", "--provider", "--region", "--prices"])
def test_an_option_of_the_list_without_the_list_is_misuse(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gpus", "h100-sxm", option, "x"]) == 2
    assert "rooflight gpus instances" in capsys.readouterr().err


def test_the_catalogue_answers_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "h100-sxm", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == "h100-sxm"
    assert main(["gpus", "instance", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) is None


# --- rooflight prices ------------------------------------------------------------------------------


def test_a_list_is_made_and_the_rest_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list.csv").write_text(LIST)
    out = tmp_path / "prices.csv"
    assert (
        main(["prices", "--from", "csv", str(tmp_path / "list.csv"), "--date", "2026-11-30", "-o", str(out)])
        == 0
    )
    assert out.read_text().splitlines() == [
        "provider,instance,usd_per_hour,region,date,source",
        "AWS,p5.48xlarge,60.00,eu-north-1,2026-11-30,list.csv",
        "AWS,p5.48xlarge,55.04,us-east-1,2026-11-30,list.csv",
    ]
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "kept 2 prices of 1 instance",
        "skipped 1 row",
        "          1  no GPU instance of our list",
        "rejected 1 price",
        "  g6.xlarge us-east-1 (line 5): the price is zero",
    ]
    rows = answer(capsys, "--prices", out)
    assert [(r["usd_per_gpu_hour"], r["region"]) for r in rows if r["instance"] == "p5.48xlarge"] == [
        (6.88, "us-east-1"),
        (7.5, "eu-north-1"),  # 60 / 8
    ]


def test_without_a_day_the_files_own_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "list.csv"
    path.write_text(LIST)
    os.utime(path, (1_793_836_800, 1_793_836_800))  # 2026-11-05T00:00:00Z
    assert main(["prices", "--from", "csv", str(path), "--region", "US-EAST-1"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[1:] == ["AWS,p5.48xlarge,55.04,us-east-1,2026-11-05,list.csv"]
    assert "another region" in told.err


def test_nothing_usable_is_status_2_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "list.csv").write_text("provider,instance,usd_per_hour\nAWS,p5.48xlarge,-1\n")
    out = tmp_path / "prices.csv"
    assert main(["prices", "--from", "csv", str(tmp_path / "list.csv"), "-o", str(out)]) == 2
    assert not out.exists()
    assert "no usable price" in capsys.readouterr().err


def test_misuse_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "list.csv"
    path.write_text(LIST)
    assert main(["prices", "--from", "aws", str(path)]) == 2
    assert "no price list of AWS" in capsys.readouterr().err
    assert main(["prices", "--from", "csv", str(tmp_path / "none.csv")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["prices", "--from", "csv", str(path), "-o", str(tmp_path)]) == 2
    assert "cannot write" in capsys.readouterr().err
    for wrong in (["--date", "yesterday"], ["--from", "gcp"]):
        with pytest.raises(SystemExit) as left:
            main(["prices", "--from", "csv", str(path), *wrong])
        assert left.value.code == 2
