"""`rooflight whatif` at the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rooflight.cli.main import main
from rooflight.cli.whatif import span
from rooflight.protocol import encode
from rooflight.scenarios import Range
from tests.factories import a_document


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """An analysis of a V100 run, six steps of 174.8 ms, as JSON."""
    path = tmp_path / "run.json"
    path.write_bytes(encode(a_document()))
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["whatif", *argv, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_promised_fields_are_there(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, saved, "--gpu", "NVIDIA H100 80GB HBM3", "--price", "3.6")
    for field in ("kernel_time_us", "step_time_us", "cost_per_step"):
        assert found[field]["low"] <= found[field]["mid"] <= found[field]["high"]
    assert len(found["per_kernel"]) == 12
    assert 0 < found["unknown_share"] < 100
    # USD = µs x 3.6 / 3.6e9 on one device
    assert found["cost_per_step"]["mid"] == pytest.approx(found["step_time_us"]["mid"] * 1e-9)


def test_without_input_a_step_is_shorter_by_it(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    # 174.8 ms of which 58.7 wait for input: 116.1
    found = answer(capsys, saved, "--input-ready")
    assert found["step_time_us"] == {"low": 116_100.0, "mid": 116_100.0, "high": 116_100.0}
    assert found["cost_per_step"] is None


def test_the_table_says_range_kernels_and_assumptions(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", saved, "--gpu", "a100-sxm4-80", "--fused", "--instances"]) == 0
    out = capsys.readouterr().out
    for text in ("kernel time", "step (mean)", "174.8 ms", "Assumed", "Instances by USD", "one kernel"):
        assert text in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_span_is_drawn_to_scale() -> None:
    # 11 cells from 0 to 10: recorded at 10, low 2, middle 4, high 6
    assert span(10.0, Range(2.0, 4.0, 6.0), 11) == "  ──×──   █"
    assert span(0.0, Range(0.0, 0.0, 0.0), 11) == ""


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--gpu", "H100"], "unknown GPU 'H100'"),
        (["--dtype", "fp7"], "unknown dtype 'fp7'"),
        (["--instance", "nowhere.large"], "unknown instance 'nowhere.large'"),
        (["--instance", "p5.48xlarge", "--price", "2"], "both give a price"),
        (["--gpu", "a100-sxm4-80", "--instance", "p5.48xlarge", "--region", "us-east-1"], "not a a100"),
        # The recording is of a V100: its step is not what an H100 costs.
        (["--instance", "p5.48xlarge", "--region", "us-east-1"], "has a h100-sxm, not a v100"),
        (["--recorded-on", "v100-sxm2-32"], "--recorded-on cannot change an analysis that is made"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    saved: str, argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", saved, *argv]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("price", ["-1", "0", "nan", "inf", "1e9", "much"])
def test_a_price_is_a_plain_positive_number(
    saved: str, price: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", saved, f"--price={price}"]) == 2
    assert "no price of a GPU hour" in capsys.readouterr().err


def test_a_calibration_comes_too_late_for_an_analysis(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "roofs.json").write_text('{"device": "X", "kind": "gpu", "measured_at": "2026-01-01"}')
    assert main(["whatif", saved, "--calibration", str(tmp_path / "roofs.json")]) == 2
    assert "--calibration cannot change an analysis that is made" in capsys.readouterr().err


def test_instances_say_what_they_rest_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = a_document()
    for k in document.ranks[0].kernels:
        k.dtype, k.matrix, k.flops, k.bytes, k.regime = "fp16", True, 10**12, 10**9, "compute"
    path = tmp_path / "run.json"
    path.write_bytes(encode(document))
    found = answer(capsys, str(path), "--dtype", "fp8", "--instances")
    rows = {i["gpu_id"]: i for i in found["instances"]}
    assert rows["a100-sxm4-80"]["dtype_fallback"] == {"fp8": "bf16"}
    assert rows["h100-sxm"]["dtype_fallback"] == {}
    assert all(0 <= i["unknown_share"] <= 100 for i in found["instances"])
    mids = [i["cost_per_step"]["mid"] for i in found["instances"] if i["cost_per_step"]]
    assert mids == sorted(mids)
    assert all(i["usd_per_gpu_hour"] is None for i in found["instances"][len(mids) :])
