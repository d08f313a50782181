"""The union by category reads what the union by phase reads."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight import analyze
from rooflight.protocol import encode
from rooflight.readers import kineto, read
from rooflight.readers.kineto_categories import by_category
from rooflight.readers.kineto_rows import Args, strict
from tests.shared import missing_traces, traces_dir

CATEGORIES = ("kernel", "Kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "Operator", "cuda_runtime", "Runtime",
              "cuda_driver", "user_annotation", "python_function", "cpu_instant_event")  # fmt: skip
VALUES = st.none() | st.integers(-5, 5) | st.floats(0, 9) | st.sampled_from(["7", "x"])
ARGS = [f.encode_name for f in msgspec.structs.fields(Args)]
RAW = {f.encode_name for f in msgspec.structs.fields(Args) if f.type is msgspec.Raw}


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    cat = draw(st.sampled_from(CATEGORIES))
    row: dict[str, Any] = {"cat": cat, "ph": "i" if cat == "cpu_instant_event" else "X"}
    for key in draw(st.sets(st.sampled_from(["name", "pid", "tid", "ts", "dur", "args", "id"]))):
        if key == "name":
            row[key] = draw(st.sampled_from(["k", "[memory]", ""]))
        elif key == "args":
            row[key] = {name: draw(VALUES) for name in draw(st.sets(st.sampled_from(ARGS)))}
        else:
            row[key] = draw(VALUES.filter(lambda v: v is not None))
    return dict(draw(st.permutations(list(row.items()))))


@given(st.lists(rows(), max_size=5))
def test_every_field_that_a_category_has_is_the_same(table: list[dict[str, Any]]) -> None:
    data = json.dumps(table).encode()
    for fast, slow in zip(by_category(data), strict(data), strict=True):
        assert fast.cat == slow.cat
        for name in ("name", "pid", "tid", "ts", "dur"):
            assert getattr(fast, name, None) == getattr(slow, name, None)
        for name in getattr(getattr(fast, "args", None), "__struct_fields__", ()):
            left, right = getattr(fast.args, name), getattr(slow.args, name)
            assert type(left) is type(right)
            assert (bytes(left) == bytes(right)) if name in RAW else (left == right)


@pytest.mark.parametrize(
    "row",
    [
        {"ph": "B", "cat": "kernel"},
        {"ph": "X", "cat": "something_new"},
        {"ph": "M", "name": "process_name"},
        {"cat": "cpu_op"},
        {"ph": "X", "cat": "cpu_op", "name": 7},
    ],
)
def test_any_other_row_is_left_to_the_union_by_phase(row: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        by_category(json.dumps([row]).encode())


def small_traces() -> list[str]:
    if missing_traces():
        return []
    return [p.name for p in sorted(traces_dir().glob("hta/*.json.gz")) if p.stat().st_size < 500_000]


@pytest.mark.traces
@pytest.mark.parametrize("name", small_traces())
def test_both_give_the_same_analysis(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = traces_dir() / "hta" / name
    fast = encode(analyze(read(path)).document)
    monkeypatch.setattr(kineto, "_MOST_SURPRISES", 0)
    assert encode(analyze(read(path)).document) == fast
