"""The built-in workloads, a few small steps of each: the rows that the analysis needs are recorded."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.device import pick
from agent.profiling import Plan, record
from agent.workloads import WORKLOADS, Place, find
from agent.workloads.registry import workload
from rooflight.errors import Refused
from tests.shared import CHECKOUT

NAMES = sorted(WORKLOADS)
STEPS = 3


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The complete events (ph X) of every workload's trace."""
    found = {}
    for name in NAMES:
        trace = tmp_path_factory.mktemp(name) / "trace.json.gz"
        record(WORKLOADS[name], pick("cpu"), Plan(STEPS, 1, "small"), trace)
        with gzip.open(trace) as file:
            found[name] = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    return found


def ops(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row for row in rows if row.get("cat") == "cpu_op" and row["name"] == name]


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_step_has_its_row(events: dict[str, list[dict[str, Any]]], name: str) -> None:
    steps = [e for e in events[name] if e["name"].startswith("ProfilerStep#")]
    # One step waited out and one warmed up: the recorded ones are 2, 3, 4.
    assert [e["name"] for e in sorted(steps, key=lambda e: float(e["ts"]))] == [
        "ProfilerStep#2",
        "ProfilerStep#3",
        "ProfilerStep#4",
    ]
    assert {e["cat"] for e in steps} == {"user_annotation"}


@pytest.mark.torch
def test_the_dims_of_products_are_recorded(events: dict[str, list[dict[str, Any]]]) -> None:
    seen = [row["args"]["Input Dims"][:2] for row in ops(events["gemm"], "aten::mm")]
    # (32, 32, 32) and (64, 16, 64) as (M, N, K), in two dtypes, three times.
    assert sorted(map(str, seen)) == sorted(
        map(str, ([[32, 32], [32, 32]], [[64, 64], [64, 16]]) * 2 * STEPS)
    )
    assert {row["args"]["Input type"][0] for row in ops(events["gemm"], "aten::mm")} == {
        "float",
        "c10::BFloat16",
    }


@pytest.mark.torch
def test_the_train_step_has_all_its_families(events: dict[str, list[dict[str, Any]]]) -> None:
    names = {row["name"] for row in events["transformer"]}
    assert names >= {
        "aten::embedding",
        "aten::scaled_dot_product_attention",
        "aten::native_layer_norm",
        "aten::addmm",
        "aten::gelu",
        "aten::cross_entropy_loss",
        "aten::embedding_dense_backward",
        "Optimizer.step#AdamW.step",
    }


@pytest.mark.torch
def test_attention_runs_every_shape_in_every_step(events: dict[str, list[dict[str, Any]]]) -> None:
    assert len(ops(events["attention"], "aten::scaled_dot_product_attention")) == 2 * STEPS


@pytest.mark.torch
def test_the_tiny_workload_is_many_operators(events: dict[str, list[dict[str, Any]]]) -> None:
    # Ten rounds of mul, add, tanh, sub.
    for name in ("aten::mul", "aten::add", "aten::tanh", "aten::sub"):
        assert len(ops(events["tiny"], name)) == 10 * STEPS


@pytest.mark.torch
def test_the_starved_workload_waits_in_a_data_loader(events: dict[str, list[dict[str, Any]]]) -> None:
    rows = [e for e in events["starved"] if e["name"].startswith("enumerate(DataLoader)#")]
    assert len(rows) == STEPS
    assert all(row["name"].endswith(".__next__") for row in rows)


@pytest.mark.torch
def test_the_starved_workload_spends_most_of_its_step_there(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json.gz"
    record(WORKLOADS["starved"], pick("cpu"), Plan(STEPS, 1, "medium"), trace)
    rows = [e for e in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"] if e.get("ph") == "X"]
    waited = sum(float(e["dur"]) for e in rows if e["name"].startswith("enumerate(DataLoader)#"))
    steps = sum(float(e["dur"]) for e in rows if e["name"].startswith("ProfilerStep#"))
    # From a fifth of the step on, waiting for input is the regime; a busy machine slows both sides.
    assert 0.2 * steps < waited < steps


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_a_workload_takes_more_steps_than_an_epoch_has(name: str) -> None:
    step = WORKLOADS[name].build(Place("cpu", "small"))
    for _ in range(70):
        step()


@pytest.mark.torch
def test_the_same_seed_gives_the_same_numbers() -> None:
    import torch

    def weights(seed: int) -> list[float]:
        WORKLOADS["transformer"].build(Place("cpu", "small", seed))()
        return torch.rand(3).tolist()

    assert weights(1) == weights(1) != weights(2)


def test_listing_the_workloads_imports_no_torch() -> None:
    code = "import sys, agent.cli, agent.workloads, agent.commands.run; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=CHECKOUT, timeout=60)


def test_an_unknown_workload_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Refused, match="attention, gemm, starved, tiny, transformer"):
        find("resnet")


def test_a_name_is_taken_once_and_needs_a_docstring() -> None:
    with pytest.raises(ValueError, match="gemm"):
        workload("gemm", steps=1)(find("gemm").build)
    with pytest.raises(ValueError, match="docstring"):
        workload("undocumented", steps=1)(lambda place: lambda: place)
    assert "undocumented" not in WORKLOADS


@pytest.mark.torch
def test_cuda_where_there_is_none_is_refused_and_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Refused, match="no CUDA device"):
        pick("cuda")
    assert pick("auto").kind == "cpu"
