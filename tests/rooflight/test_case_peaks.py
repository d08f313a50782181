"""Case 53: the peak is that of the exact model, and an unknown name has none."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight import analyze
from rooflight.hardware import find, peaks
from tests.cases import load
from tests.drawing import timeline_from_events

EXPECT: dict[str, Any] = load("53-peak-by-exact-model")["expect"]


def peak(name: str, dtype: str) -> float | None:
    gpu = find(name)
    return None if gpu is None else peaks(gpu).get(dtype)


@pytest.mark.parametrize("row", EXPECT["dense_within_1.5_percent"], ids=lambda r: r["name"])
def test_dense_peaks(row: dict[str, Any]) -> None:
    assert peak(row["name"], "bf16") == pytest.approx(row["bf16_tflops"], rel=0.015)


@pytest.mark.parametrize("row", EXPECT["must_differ"], ids=lambda r: r["name"])
def test_names_that_look_alike(row: dict[str, Any]) -> None:
    told = 0
    for dtype in ("bf16", "fp16"):
        if (other := row.get(f"not_{dtype}_tflops")) is not None:
            assert peak(row["name"], dtype) != other
            told += 1
    if "not_same_entry_as" in row:
        mine, theirs = find(row["name"]), find(row["not_same_entry_as"])
        assert mine is not None
        assert theirs is not None
        assert mine.id != theirs.id
        told += 1
    assert told == 1


@pytest.mark.parametrize("name", EXPECT["null_with_flag_peak_unknown"])
def test_strangers_have_no_peak_and_say_so(name: str) -> None:
    """A product in bf16: 2 x 64^3 FLOPs ask for a compute roof, and there is none."""
    assert find(name) is None
    dims = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["c10::BFloat16"] * 2}
    launch = {"ph": "X", "cat": "cuda_runtime", "pid": 9, "tid": 1, "ts": 1, "dur": 1,
              "name": "cudaLaunchKernel", "args": {"correlation": 1}}  # fmt: skip
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 1, "ts": 0, "dur": 5, "args": dims},
        launch,
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 9, "dur": 5,
         "args": {"device": 0, "stream": 7, "correlation": 1}},
    ]  # fmt: skip
    rank = analyze(timeline_from_events(events, deviceProperties=[{"id": 0, "name": name}])).document.ranks[0]
    (kernel,) = rank.kernels
    assert kernel.flops == 2 * 64**3
    assert (kernel.bound_us, kernel.roof_fraction) == (None, None)
    assert "peak_unknown" in {f.code for f in rank.flags}


def test_a_v100_has_no_peak_in_bf16() -> None:
    assert EXPECT["V100_bf16"] is None
    assert peak("Tesla V100-SXM2-16GB", "bf16") is None
