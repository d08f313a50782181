"""Comparisons add up, whatever the runs; real recordings; the page that says what every field means."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rooflight
from rooflight.comparison import Comparison, compare, document
from rooflight.comparison.alignment import MATCHES
from rooflight.protocol import (
    PARTS,
    Document,
    Rank,
)
from tests import shared
from tests.rooflight.comparing import WORK, a_group, a_rank, a_run, a_step

# ---- properties ----

TIME = st.integers(0, 5_000).map(lambda ns: ns / 1000)
GROUP = st.builds(
    lambda name, us, calls, op, dims, family, regime: a_group(
        name, us, calls, op, input_dims=dims, family=family, regime=regime
    ),
    st.sampled_from("abc"),
    TIME,
    st.integers(0, 4),
    st.sampled_from(["aten::mm", "aten::add", None]),
    st.sampled_from(["[[1]]", "[[2]]", None]),
    st.sampled_from(["gemm", "elementwise", "other"]),
    st.sampled_from(["compute", "memory", "latency", "unknown", "communication"]),
)
STEPS = st.lists(st.fixed_dictionaries(dict.fromkeys(PARTS, TIME)), min_size=1, max_size=5)
RANK = st.builds(
    lambda steps, kernels: a_rank([a_step(n, **parts) for n, parts in enumerate(steps)], kernels),
    STEPS,
    st.lists(GROUP, max_size=8),
)


def numbered(ranks: list[Rank]) -> Document:
    for n, rank in enumerate(ranks):
        rank.rank = n
    return a_run(*ranks)


RUN = st.lists(RANK, min_size=1, max_size=2).map(numbered)


def check_sums(c: Comparison) -> None:
    """All sums are exact."""
    assert sum(x.difference for x in c.parts.values()) == c.total.difference
    for part in WORK:
        groups = sum(g.by_part.get(part, 0) for g in c.groups)
        assert groups + c.rest[part] == c.parts[part].difference
    for g in c.groups:
        assert g.count_effect + g.duration_effect == g.difference


@settings(max_examples=60)
@given(RUN, RUN)
def test_sums_are_exact_and_the_other_direction_is_the_negative(a: Document, b: Document):
    c, back = compare(a, b), compare(b, a)
    check_sums(c)
    assert back.total.difference == -c.total.difference
    assert {p: -x.difference for p, x in back.parts.items()} == {p: x.difference for p, x in c.parts.items()}
    other = {"new": "vanished", "vanished": "new"}
    mine = [(g.pair.match, g.pair.a, g.pair.b, g.count_effect, g.duration_effect) for g in c.groups]
    theirs = [
        (other.get(g.pair.match, g.pair.match), g.pair.b, g.pair.a, -g.count_effect, -g.duration_effect)
        for g in back.groups
    ]
    assert mine == theirs
    assert back.total.significance.p == c.total.significance.p


@settings(max_examples=40)
@given(RUN)
def test_a_run_against_itself_differs_nowhere(a: Document):
    c = compare(a, a)
    check_sums(c)
    assert not c.total.difference
    assert not any(x.difference for x in c.parts.values())
    assert not any(g.difference or g.count_effect or g.duration_effect for g in c.groups)
    assert {g.pair.match for g in c.groups} <= {"same"}
    assert c.total.significance.verdict in ("within_noise", "cannot_say")
    assert {p for p, x in c.parts.items() if x.significance.verdict in ("significant", "likely")} == set()


# ---- real recordings ----


@cache
def analysed(name: str) -> Document:
    return rooflight.analyze(rooflight.read(shared.traces_dir() / name)).document


@pytest.mark.traces
def test_loader_workers_explain_the_difference_of_two_trainings():
    """The same training with no worker and with four.  The recordings' own rows: six steps of 1 048 976 µs
    together without, of 838 152 with: (838 152 - 1 048 976) / 6 = -35 137.333."""
    c = compare(*(analysed(f"v100_resnet50_workers{n}.pt.trace.json.gz") for n in (0, 4)))
    check_sums(c)
    assert c.total.difference == Fraction(838_152_000 - 1_048_976_000, 6)
    assert set(c.rest.values()) == {0}
    assert min(c.parts, key=lambda p: c.parts[p].difference) == "input"
    assert c.parts["input"].difference < c.total.difference, "the rest goes the other way"
    assert c.parts["input"].significance.verdict == "significant"
    assert c.total.significance.p == pytest.approx(60 / 924), "of C(12, 6) arrangements"
    assert c.notes == ()
    assert sum(g.pair.match == "same" for g in c.groups) > 300
    assert c.document.words[1].startswith("Most of it is waiting for input")


@pytest.mark.traces
@pytest.mark.parametrize(
    "name",
    [
        "pairs/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
        "pairs/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
        "hta/a100_control_rank3of8.json.gz",
        "hta/rank_not_found.json.gz",
        "mi300_sglang_qwen3_8b_decode.json.gz",
    ],
)
def test_a_recording_against_itself_is_zero(name: str):
    c = compare(analysed(name), analysed(name))
    check_sums(c)
    assert not c.total.difference
    assert not any(g.difference for g in c.groups)
    assert {g.pair.match for g in c.groups} <= {"same"}
    assert set(c.rest.values()) == {0}


@pytest.mark.traces
def test_two_gpus_are_compared_and_said_not_to_be_comparable():
    names = [f"pairs/{gpu}/Falconsai_nsfw_image_detection__1016002.json.gz" for gpu in ("h100", "mi300")]
    c = compare(*map(analysed, names))
    check_sums(c)
    assert set(c.rest.values()) == {0}
    assert c.document.words[0] == "Not comparable: another device: h100-sxm against mi300x."


# ---- the page that says what every field means ----


STRUCTS = [
    document.ComparisonDocument, document.ComparabilityNote, document.ComparedRun, document.ChangeRow,
    document.KernelChange, document.ComparedKernel,
]  # fmt: skip


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_field_is_defined_and_no_other(struct: type[msgspec.Struct]):
    page = (shared.CHECKOUT / "docs/compare.md").read_text()
    section = re.search(rf"^### {struct.__name__}\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert re.findall(r"^- `(\w+)`:", section[1], re.MULTILINE) == list(struct.__struct_fields__)


def test_every_match_and_verdict_is_on_the_page():
    page = (shared.CHECKOUT / "docs/compare.md").read_text()
    for word in (*MATCHES, "significant", "likely", "within_noise", "cannot_say"):
        assert f"`{word}`" in page
