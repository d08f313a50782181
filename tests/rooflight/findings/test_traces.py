"""What the rules say of shared traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.findings import Facts
from rooflight.findings.rules.materialised_attention import materialised_attention
from rooflight.findings.rules.unfused_optimizer import unfused_optimizer
from rooflight.protocol import Finding
from rooflight.results.stages import Options, Stages
from tests.shared import traces_dir


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


def of_trace(trace: str) -> Any:
    return analyze(read(Path(traces_dir()) / trace)).document.ranks[0]


@pytest.mark.traces
def test_a_resnet_without_workers_is_starved_and_one_with_four_is_not() -> None:
    """Saving: the sum of the input parts of its steps, over their number."""
    rank = of_trace("v100_resnet50_workers0.pt.trace.json.gz")
    parts = [s.parts_us.input for s in rank.steps]
    assert rank.findings[0].code == "input-starved"
    assert rank.findings[0].saving_us == pytest.approx(sum(parts) / len(parts), abs=0.001)
    fed_well = of_trace("v100_resnet50_workers4.pt.trace.json.gz")
    assert not {"input-starved", "dataloader-workers"} & {f.code for f in fed_well.findings}


@pytest.mark.traces
@pytest.mark.parametrize(
    ("trace", "codes"),
    [
        (
            "hta/a100_control_rank3of8.json.gz",
            {"exposed-communication", "elementwise-chain", "low-occupancy"},
        ),
        ("mi300_resnet_act_checkpoint_rank0of8.json.gz", {"exposed-communication", "layout-conversions"}),
        (
            "pairs/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
            {"elementwise-chain", "casts", "memory-bound"},
        ),
        ("v100_resnet50_workers0.pt.trace.json.gz", {"pageable-copies", "gemm-under-roof"}),
        ("v100_resnet50_workers4.pt.trace.json.gz", {"synchronising-calls", "uneven-steps"}),
        ("pairs/h100/gaunernst_bert-small-uncased__1016001.json.gz", {"host-bound-dispatch", "tiny-kernels"}),
    ],
)
def test_rules_that_a_real_trace_shows(trace: str, codes: set[str]) -> None:
    rank = of_trace(trace)
    assert codes <= {f.code for f in rank.findings}
    wall = rank.steps_total_us / len(rank.steps) if rank.steps else None
    for f in rank.findings:
        assert f.saving_us is None or (f.saving_us > 0 and (wall is None or f.saving_us <= wall))


@pytest.mark.traces
@pytest.mark.parametrize(
    ("trace", "codes"),
    [
        ("pairs/h100/Falconsai_nsfw_image_detection__1016002.json.gz", {"underfilled-grid"}),
        ("pairs/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", {"contiguous-copies"}),
    ],
)
def test_rows_that_a_real_trace_shows(trace: str, codes: set[str]) -> None:
    rank = of_trace(trace)
    found = {f.code: f for f in rank.findings}
    assert codes <= found.keys()
    for f in (found[code] for code in codes):
        rows = [rank.kernels[k] for e in f.evidence for k in e.kernels]
        assert rows
        assert f.saving_us is None or f.saving_us <= rank.steps_total_us / rank.n_steps


@pytest.mark.traces
def test_attention_of_a_text_encoder() -> None:
    """24 layers of T5 on 512 tokens and 64 heads; the first looks its position bias up between product and
    softmax.  Bias 92, cast 23, softmax 32 and cast 22 us of each go, and of its products, 39 us, at most the
    32 MiB of scores written and read.  In all 4.5 of 742 ms: under 1 %, and so not in the document."""
    trace = "mi300_xdit_flux.json.gz"
    (found,) = materialised_attention(facts_of(trace))
    assert found.seen[0].text.startswith(
        "aten::bmm → aten::_softmax [1, 64, 512, 512] → aten::bmm: 23 per step"
    )
    assert 23 * (92 + 23 + 32 + 22) * 0.98 < (found.saving_ns or 0) / 1e3 < 23 * (92 + 23 + 32 + 22 + 39)
    assert "materialised-attention" not in {f.code for f in of_trace(trace).findings}


@pytest.mark.traces
def test_ranks_that_wait_for_the_eighth() -> None:
    """Five of eight collectives wait for rank 7, three for rank 4 or 5.  Each other rank's saving is what it
    waits for rank 7 in its one step where no kernel runs: less than all its waiting, and no more than the
    five say."""
    folder = Path(traces_dir()) / "dlrm_8ranks"
    document = analyze([read(p) for p in sorted(folder.glob("*.json"))]).document
    found = [[f for f in r.findings if f.code == "straggler"] for r in document.ranks]
    assert [len(f) for f in found] == [1] * 7 + [0]
    for r, (one,) in zip(document.ranks[:7], found[:7], strict=True):
        late = sum(c.wait_us[str(r.rank)] for c in document.collectives if c.straggler == 7)
        others = sum(c.wait_us[str(r.rank)] for c in document.collectives if c.straggler != 7)
        assert one.saving_us is not None
        assert r.steps[0].wait_us is not None
        assert r.steps[0].wait_us - others <= one.saving_us <= min(late, r.steps[0].wait_us)
        assert shown(one).startswith("rank 7 came last in 5 of 8 collectives")
        savings = [f.saving_us for f in r.findings if f.saving_us is not None]
        assert savings == sorted(savings, reverse=True)


@pytest.mark.traces
def test_an_sgd_of_many_kernels() -> None:
    """One kernel for each of 404 tensors, without a type in any row; the grids tell their sizes."""
    (found,) = unfused_optimizer(facts_of("hta/v100_rank1of2_216k_events.json.gz"))
    assert found.seen[0].text.startswith("404 kernels per call of the optimizer, 5.16 ms per step")
    assert 0 < (found.saving_ns or 0) < found.time_ns


def facts_of(trace: str) -> Facts:
    """What the rules look at, also where a finding is too small for the document."""
    s = Stages(read(Path(traces_dir()) / trace), Options())
    assert s.headline is not None
    return Facts(
        s.timeline,
        s.links,
        s.costs,
        s.groups,
        s.regimes,
        s.partitions[s.headline],
        s.spans,
        s.window,
        s.devices.roofs[s.headline],
    )
