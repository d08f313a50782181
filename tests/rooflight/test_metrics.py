"""Every number that is shown has a schema, and every regime its place in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from rooflight.metrics import METRICS, Metric, _by_key, metric, of_scope
from rooflight.protocol import PARTS, REGIMES, DeviceFigures, Kernel, Parts, Rank, Step

DOCS = Path(__file__).resolve().parents[2] / "docs" / "regimes.md"
#: Numbers that name or place something rather than measure it.
NAMES = {"n", "rank", "start_us"}


def numbers(struct: type) -> set[str]:
    """Fields of a Struct that hold a number (or null)."""
    schema = msgspec.json.schema(struct)["$defs"][struct.__name__]["properties"]
    kinds = {name: {x.get("type") for x in p.get("anyOf", [p])} for name, p in schema.items()}
    return {name for name, kind in kinds.items() if kind & {"number", "integer"}} - NAMES


@pytest.mark.parametrize(
    ("scope", "struct"),
    [("kernel", Kernel), ("step", Step), ("part", Parts), ("device", DeviceFigures), ("rank", Rank)],
)
def test_every_number_of_the_document_has_a_metric_and_no_metric_is_left_over(scope, struct):
    assert numbers(struct), "the schema was read"
    assert {m.key.removeprefix(f"{scope}.") for m in of_scope(scope)} == numbers(struct)


def test_parts_are_in_the_order_of_the_protocol():
    assert [m.key for m in of_scope("part")] == [f"part.{p}" for p in PARTS]


@pytest.mark.parametrize("one", METRICS.values(), ids=lambda m: m.key)
def test_a_metric_says_unit_and_meaning(one):
    field = one.key.split(".")[1]
    assert one.label
    assert one.explanation.endswith(".")
    if field.endswith("_us") or one.key.startswith("part."):
        assert one.unit == "µs"
    if field.endswith("_pct"):
        assert one.unit == "%"


def test_two_metrics_of_one_name_are_an_error():
    one = Metric("kernel.x", "X", "", None, "X.")
    with pytest.raises(ValueError, match=r"kernel\.x"):
        _by_key([one, one])
    with pytest.raises(KeyError, match=r"kernel\.nothing"):
        metric("kernel", "nothing")
    assert metric("kernel", "roof_fraction").better == "higher"


def test_the_page_on_regimes_names_every_regime_part_and_reason():
    text = DOCS.read_text("utf-8")
    for word in (
        *REGIMES,
        *PARTS,
        "tiny",
        "underfilled",
        "low_occupancy",
        "inefficient",
        "math_type_assumed",
    ):
        assert f"`{word}`" in text, word
    for grade in ("complete", "usable", "unreliable"):
        assert f"| `{grade}` |" in text


def test_the_links_of_the_page_on_regimes_lead_somewhere():
    text = DOCS.read_text("utf-8")
    headings = {
        re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^## (.+)$", text, re.M)
    }
    targets = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert targets == headings
