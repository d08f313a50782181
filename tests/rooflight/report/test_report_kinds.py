"""Reports of what there may be: many steps and none, a CPU, several ranks, nothing."""

from __future__ import annotations

import random
import re
from decimal import Decimal

import pytest

from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.errors import Refused
from rooflight.prices.rate import Rate
from rooflight.protocol import Cpu, CpuStep, Document, Parts
from rooflight.report.html import Options, report
from rooflight.report.waterfall import MAX_STEPS, ROWS_OF_STEPS
from tests.factories import a_document, a_rank, v100_roofs
from tests.rooflight.report.reading import page


def test_many_steps_stand_side_by_side_and_the_rest_is_counted() -> None:
    few, many = page(a_document(steps=ROWS_OF_STEPS)), page(a_document(steps=MAX_STEPS + 3))
    assert len([1 for _, given in few.tags if "data-step" in given]) == ROWS_OF_STEPS
    assert (
        len([1 for tag, given in many.tags if tag == "li" and given.get("title", "").startswith("Step ")])
        == 400
    )
    assert "the first 400 of 403" in many.words


def test_a_recording_without_steps_shows_its_whole() -> None:
    words = page(a_document(steps=0)).words
    assert "Where the time goes" in words
    assert "per step" not in words
    assert "no steps are known" in words


def test_a_withheld_verdict_gives_its_reason_in_the_same_place() -> None:
    doc = a_document()
    doc.ranks[0].regime, doc.ranks[0].verdict_withheld = None, "salvaged: the file ends early"
    assert "No verdict: salvaged: the file ends early." in page(doc).words


def test_an_attainable_time_that_rests_on_the_unknown_is_not_told() -> None:
    doc = a_document(steps=1)
    parts = doc.ranks[0].steps[0].parts_us
    assert parts is not None
    parts.compute = parts.memory = 10_000.0
    parts.latency, parts.unknown = 0.0, 20_000.0  # half of 40 ms: still told
    assert "68.40 ms of" in page(doc).words
    assert "50 % of the work has no known bound and counts in full" in page(doc).words
    parts.unknown = 30_000.0  # 60 % of 50 ms
    words = page(doc, Options(rate=Rate(Decimal(3)))).words
    assert "Of attainable – the bound of 60 % of the work is unknown" in words
    assert "above attainable" not in words
    assert "attainable  – (the bound of 60 % of the time of kernels is unknown)" in table(doc)
    assert "- Attainable: –" in markdown(doc)


def test_the_strip_tells_the_share_of_the_regime_and_of_the_next() -> None:
    # a_step: input 58.7 of 174.8 ms, compute 40 = 22.9 %
    assert "34 % of the wall time, compute 23 %" in page(a_document()).words


def test_a_recording_of_the_cpu_shows_its_ops() -> None:
    doc = a_document(kernels=2)
    rank = doc.ranks[0]
    step = CpuStep(1, 100.0, Parts(compute=60.0, host=40.0), attainable_us=50.0)
    ops = rank.kernels
    rank.cpu = Cpu(v100_roofs(), steps=[step], ops=ops, regime="host", regime_confidence="low", name="A CPU")
    rank.devices, rank.kernels, rank.steps = {}, [], []
    words = page(doc, Options(rate=Rate(Decimal(3)))).words
    assert "A CPU" in words
    assert "2 groups" in words
    assert "GFLOP/s" in words
    assert "$" not in words, "the price is that of a GPU"


def test_ranks_stand_side_by_side_and_one_is_chosen() -> None:
    doc = a_document()
    second = a_rank(kernels=4, steps=2, rng=random.Random(3))
    second.rank, second.regime = 3, "copy"
    doc.ranks.append(second)
    doc.world_size, doc.missing_ranks = 4, [1, 2]
    words = page(doc).words
    assert "missing: 1, 2" in words
    assert "The other sections are those of rank 0." in words
    assert "Bound by copy" in page(doc, Options(rank=3)).words
    with pytest.raises(Refused, match="rank 2 is not among"):
        report(doc, Options(rank=2))


def test_nothing_analysed_is_said() -> None:
    assert "Nothing was analysed" in page(Document(1, "empty", [])).words


def test_an_unknown_figure_is_a_dash_with_its_reason() -> None:
    doc = a_document(kernels=1)
    k = doc.ranks[0].kernels[0]
    k.flops = k.bytes = k.roof_fraction = k.achieved_tflops = k.achieved_gbs = k.ai = None
    k.cost_reason = "no shapes"
    row = re.search(r'<tr id="k0">(.*?)</tr>', report(doc))
    assert row
    assert row[1].count('<span class="mute" title="no shapes">–</span>') == 3  # rates and intensity
    assert 'title="FLOPs or bytes unknown">–</span>' in row[1], "why it has no place under a roof"
