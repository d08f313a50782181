"""docs/walkthroughs.md: every number in it by plain arithmetic on the JSON, and by the analysis."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from rooflight.analysis import analyze_files
from rooflight.protocol import Document, Parts, Rank
from tests import shared
from tests.raw import Raw, Row, busy_in, common, idle_causes, load, measure, op_of, spans, waited, within

pytestmark = pytest.mark.traces
PAGE = Path(__file__).resolve().parents[2] / "docs" / "walkthroughs.md"
BERT = "gaunernst_bert-small-uncased__1016001"
FALCONSAI = "Falconsai_nsfw_image_detection__1016002"
QWEN = "Qwen_Qwen1.5-0.5B-Chat__1016005"


@cache
def raw(name: str) -> Raw:
    return load(shared.traces_dir() / name)


@cache
def analysed(name: str) -> Document:
    path = shared.traces_dir() / name
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return analyze_files([str(f) for f in files]).document


def pair(gpu: str, model: str) -> tuple[Raw, Row, Rank, Parts]:
    name = f"pairs/{gpu}/{model}.json.gz"
    rank = analysed(name).ranks[0]
    parts = rank.steps[0].parts_us
    assert parts is not None
    return raw(name), raw(name).steps[0], rank, parts


def paragraph(start: str) -> str:
    """The part of the page that begins so, in one line."""
    text = re.sub(r"\s+", " ", PAGE.read_text("utf-8").replace("\n\n", "\n¶"))
    found = [p for p in re.split("¶|(?=## )", text) if p.startswith(start)]
    assert len(found) == 1, start
    return found[0]


def section(title: str) -> str:
    text = PAGE.read_text("utf-8").partition(f"\n## {title}\n")[2]
    assert text, title
    return re.sub(r"\s+", " ", text.partition("\n## ")[0])


def us(ns: float) -> str:
    return f"{ns / 1000:,.1f}"


def says(text: str, *parts: str) -> None:
    assert [p for p in parts if p not in text] == []


def every_us(found: Raw) -> float:
    """Mean distance of launches of kernels, in µs."""
    launches = found.launches
    starts = sorted(launches[k.correlation].start for k in found.kernels if k.correlation in launches)
    return (starts[-1] - starts[0]) / 1000 / (len(starts) - 1)


def median_us(rows: list[Row]) -> float:
    lengths = sorted(r.dur for r in rows)
    return (lengths[len(lengths) // 2] + lengths[(len(lengths) - 1) // 2]) / 2000


@pytest.mark.parametrize("model", [BERT, FALCONSAI])
@pytest.mark.parametrize("gpu", ["h100", "mi300"])
def test_the_idle_time_is_what_the_host_did(gpu: str, model: str) -> None:
    found, step, _, parts = pair(gpu, model)
    causes = idle_causes(found, step)
    assert {c: t / 1000 for c, t in causes.items() if t} == pytest.approx(
        {c: v for c in ("host", "dispatch", "launch", "sync", "dependency") if (v := getattr(parts, c))}
    )
    kernel = parts.compute + parts.memory + parts.latency + parts.unknown
    assert busy_in(found, step) / 1000 == pytest.approx(kernel + parts.copy)


@pytest.mark.parametrize(
    ("gpu", "regime", "confidence"), [("h100", "host", "medium"), ("mi300", "latency", "high")]
)
def test_bert_small(gpu: str, regime: str, confidence: str) -> None:
    found, step, rank, _ = pair(gpu, BERT)
    assert (rank.regime, rank.regime_confidence) == (regime, confidence)
    causes, busy = idle_causes(found, step), busy_in(found, step)
    name = "H100" if gpu == "h100" else "MI300X"
    text = paragraph(f"**bert-small on an {name}**")
    host, launching = causes["host"] + causes["sync"], causes["launch"] + causes["dispatch"]
    lead = 100 * abs(host - launching) / step.dur
    says(text, f"by {regime}".replace("by host", "by the host"), us(step.dur), us(busy))
    says(
        text,
        f"({100 * busy / step.dur:.1f} %)",
        f"{len(found.kernels)} kernels",
        f"every {every_us(found):.1f} us",
    )
    says(
        text,
        us(causes["host"]),
        us(causes["dispatch"]),
        us(causes["launch"]),
        us(launching),
        f"{lead:.1f} points",
    )


def test_bert_small_reaches_little_of_the_peak() -> None:
    found, _, _, _ = pair("h100", BERT)
    products = found.named("wmma_tensorop")
    op = op_of(found, products[0])
    assert op is not None
    assert op.args["Input Dims"][1:3] == [[141, 512], [512, 512]]
    flops = 2 * 141 * 512 * 512
    text = paragraph("**bert-small on an H100**")
    says(text, f"{len(products)} products", f"{flops:,} FLOPs in {median_us(products):.3f} us")
    says(text, f"{flops / median_us(products) / 1e6:.1f} of 989.4 TFLOP/s")
    says(text, f"{sum(k.dur for k in found.kernels) / 1000 / len(found.kernels):.1f} us on average")


@pytest.mark.parametrize(("gpu", "part"), [("h100", "gemm_relu_bf16_128x64_"), ("mi300", "MT64x32x128")])
def test_falconsai(gpu: str, part: str) -> None:
    found, step, rank, _ = pair(gpu, FALCONSAI)
    assert rank.regime == "latency"
    causes, busy = idle_causes(found, step), busy_in(found, step)
    text = paragraph(f"**Falconsai on an {'H100' if gpu == 'h100' else 'MI300X'}**")
    says(text, us(step.dur), us(busy), f"({100 * busy / step.dur:.1f} %)")
    says(text, us(causes["launch"] + causes["dispatch"]), us(causes["host"]))
    products = found.named(part)
    op, flops = op_of(found, products[0]), 2 * 788 * 768 * 768
    assert op is not None
    assert (op.args["Input Dims"][1:3], len(products)) == ([[788, 768], [768, 768]], 48)
    says(text, f"{median_us(products):.3f} us")
    if gpu == "h100":
        tflops = flops / median_us(products) / 1e6
        says(text, f"{len(found.kernels)} kernels", f"every {every_us(found):.1f} us", f"{flops:,} FLOPs")
        says(text, f"{tflops:.1f} TFLOP/s", f"{100 * tflops / 989.4:.1f} % of the peak")


def _with_op(found: Raw, part: str, dims: list[list[int]]) -> list[Row]:
    return [k for k in found.named(part) if (op := op_of(found, k)) and op.args["Input Dims"][:2] == dims]


def test_qwen_on_an_h100() -> None:
    found, step, rank, parts = pair("h100", QWEN)
    assert (rank.regime, rank.regime_confidence) == ("latency", "medium")
    assert parts.latency > parts.compute
    assert parts.latency > parts.memory
    text, busy = paragraph("**Qwen1.5-0.5B on an H100**"), busy_in(found, step)
    says(text, f"{us(busy)} of {us(step.dur)} us ({100 * busy / step.dur:.1f} %)")
    products = _with_op(found, "sm90_xmma_gemm", [[8944, 1024], [1024, 2816]])
    flops, took = 2 * 8944 * 1024 * 2816, median_us(products)
    says(text, f"{flops:,} FLOPs / {took:.3f} us = {flops / took / 1e6:.1f} TFLOP/s")
    says(text, f"{100 * flops / took / 1e6 / 989.4:.1f} % of the datasheet's")
    slow = found.named("elementwise_kernel<128, 4")
    says(
        text,
        f"{len(slow)} launches, {us(sum(k.dur for k in slow))} of {us(sum(k.dur for k in found.kernels))} us",
    )
    _multiplication(found, text, "elementwise_kernel<128, 4", 3.35)
    unlinked = [k for k in found.kernels if k.correlation not in found.launches]
    says(text, f"{len(unlinked)} kernels were launched before")


def _multiplication(found: Raw, text: str, part: str, bandwidth: float) -> None:
    rows = _with_op(found, part, [[16, 16, 559, 64], [1, 1, 559, 64]])
    size = 2 * (2 * 16 * 16 * 559 * 64 + 559 * 64)
    rate = size / median_us(rows) / 1e6
    says(text, f"{median_us(rows):.3f} us", f"{rate:.2f} TB/s, {100 * rate / bandwidth:.1f} % of {bandwidth}")


def test_qwen_on_an_mi300x() -> None:
    found, step, rank, _ = pair("mi300", QWEN)
    assert rank.regime == "latency"
    text = paragraph("**Qwen1.5-0.5B on an MI300X**")
    says(text, us(step.dur))
    _multiplication(found, text, "elementwise_kernel_manual_unroll<128, 8", 5.3)


def millis(values: Iterable[float]) -> list[str]:
    """ns as ms, as the page has them."""
    return [f"{v / 1e6:.1f}" for v in values]


@pytest.mark.parametrize(("workers", "regime", "confidence"), [(0, "input", "high"), (4, "latency", "low")])
def test_a_resnet_without_workers_and_with_four(workers: int, regime: str, confidence: str) -> None:
    name = f"v100_resnet50_workers{workers}.pt.trace.json.gz"
    found, rank = raw(name), analysed(name).ranks[0]
    assert (rank.regime, rank.regime_confidence) == (regime, confidence)
    steps, n = found.steps, len(found.steps)
    calls = [r for r in found.rows if r.name.startswith("enumerate(DataLoader)#")]
    of_step = [sum(r.dur for r in calls if s.start <= r.start < s.end) for s in steps]
    waits = [waited(found, s, "enumerate(DataLoader)#") for s in steps]
    assert [w / 1000 for w in waits] == [s.parts_us.input for s in rank.steps if s.parts_us]
    wall, busy, wait = (
        sum(v) / n for v in ([s.dur for s in steps], [busy_in(found, s) for s in steps], waits)
    )
    text = paragraph(f"**With{'out' if not workers else ' four'} workers**")
    (whole, works, waiting, other), (low, high) = (
        millis((wall, busy, wait, wall - busy - wait)),
        millis((min(of_step), max(of_step))),
    )
    says(
        text,
        f"step takes {whole} ms",
        f"{low} to {high} ms",
        f"orks {works} ms",
        f"({100 * busy / wall:.1f} %)",
    )
    says(text, f"{other} ms", f"by {regime}", f"{confidence} confidence")
    if not workers:
        least, most = millis((min(waits), max(waits)))
        says(text, f"{least} to {most} ms, on average {waiting} ms ({100 * wait / wall:.1f} %)")
        return
    slow = [r for r in found.rows if r.name == "cudaMemcpyAsync" and r.cat == "cuda_runtime"]
    least, most, copy = millis(
        (min(s.dur for s in steps), max(s.dur for s in steps), max(r.dur for r in slow))
    )
    longest = max(steps, key=lambda s: s.dur)
    assert any(longest.start <= r.start < longest.end for r in slow if r.dur == max(c.dur for c in slow))
    without = raw("v100_resnet50_workers0.pt.trace.json.gz").steps
    [saved] = millis([sum(s.dur for s in without) / len(without) - wall])
    says(text, f"waits {waiting} ms for it", f"from {least} to {most} ms", f"waits {copy} ms for a copy")
    says(text, f"{saved} ms less")


def test_decoding_whose_one_gap_nothing_explains() -> None:
    name = "mi300_sglang_qwen3_8b_decode.json.gz"
    found, rank = raw(name), analysed(name).ranks[0]
    assert (rank.regime, rank.regime_confidence) == ("latency", "low")
    text, gpu = section("mi300_sglang_qwen3_8b_decode"), sorted(found.gpu, key=lambda g: g.start)
    whole, busy = max(g.end for g in gpu) - gpu[0].start, measure(spans(gpu))
    says(text, f"{busy / 1e6:.2f} of {whole / 1e6:.2f} ms ({100 * busy / whole:.1f} %)")
    [call] = [r for r in found.rows if r.name == "hipGraphLaunch"]
    replayed = [k for k in found.kernels if k.correlation == call.correlation]
    says(text, f"{len(replayed)} kernels in {sum(k.dur for k in replayed) / 1e6:.2f} ms")
    [late] = found.named("resolve_future_token_ids_kernel")
    gap = late.start - max(g.end for g in gpu if g.start < late.start)
    says(text, f"{gap / 1e6:.1f} of {(whole - busy) / 1e6:.1f} ms, is one gap")
    launch, begin = found.launches[late.correlation], found.rows[0].start
    says(
        text, f"{(launch.start - begin) / 1e6:.3f} ms after", f"starts at {(late.start - begin) / 1e6:.3f} ms"
    )
    [copy] = [r for r in found.rows if r.name == "hipMemcpyWithStream" and r.cat == "cuda_runtime"]
    assert launch.end <= copy.start
    says(text, f"waits {copy.dur / 1e6:.1f} ms in the copy")
    before = [r.name for r in found.rows if r.cat == "cuda_runtime" and r.start < launch.start]
    assert before[-2:] == ["hipStreamWaitEvent", "hipEventDestroy"]
    says(text, *{r.name for r in found.rows if r.name.startswith("step[")})


def test_dlrm() -> None:
    document, folder = analysed("dlrm_8ranks"), shared.traces_dir() / "dlrm_8ranks"
    ranks = [load(path) for path in sorted(folder.iterdir())]
    own = [r.collectives for r in ranks]
    text = section("dlrm_8ranks")
    lengths = [r.steps[0].dur / 1e6 for r in ranks]
    says(text, f"one step of {min(lengths):.1f} to {max(lengths):.1f} ms")
    kinds = [r.name for r in ranks[0].rows if r.name.startswith("nccl:")]
    assert (kinds.count("nccl:all_to_all"), kinds.count("nccl:all_reduce"), len(own[0])) == (5, 3, 8)
    transfers, last, waits = [], [], []
    for n, known in enumerate(document.collectives):
        starts, ends = [c[n].start for c in own], [c[n].end for c in own]
        assert max(ends) - min(ends) <= 7000
        transfers.append((max(ends) - max(starts)) // 1000)
        last.append(starts.index(max(starts)))
        waits.append([(max(starts) - s) / 1000 for s in starts])
        assert (known.straggler, known.transfer_us) == (last[-1], transfers[-1])
        assert known.wait_us is not None
        assert [known.wait_us[str(i)] for i in range(8)] == waits[-1]
    says(text, "| " + " | ".join(f"{w:,.0f}" for w in waits[0]) + " |", f"to the end, is {transfers[0]} us")
    assert [last.count(r) for r in (7, 5, 4)] == [5, 2, 1]
    says(text, f"{sum(transfers)} us a step", f"{sum(w[0] for w in waits) / 1000:.2f} ms on rank 0")
    sent = [r.args["Input Dims"][0][0] for r in ranks[0].rows if r.name == "nccl:all_reduce"]
    assert sent == [394_241, 112, 226_960]
    says(text, f"{sent[0]:,}, {sent[1]} and {sent[2]:,} floats")
    regimes = [r.regime for r in document.ranks]
    assert [i for i, r in enumerate(regimes) if r == "communication"] == [1, 3]
    assert set(regimes) == {"communication", "latency"}
    step = ranks[7].steps[0]
    says(text, f"works {busy_in(ranks[7], step) / 1e6:.1f} of {step.dur / 1e6:.1f} ms")


def test_resnet_with_activation_checkpoints() -> None:
    found, rank = (f("mi300_resnet_act_checkpoint_rank0of8.json.gz") for f in (raw, analysed))
    assert isinstance(found, Raw)
    assert isinstance(rank, Document)
    talk = spans(found.collectives)
    rest = spans(k for k in found.kernels if not k.name.startswith("nccl"))
    ran, alone = [], []
    for step, known in zip(found.steps, rank.ranks[0].steps, strict=True):
        own, other = (within(s, (step.start, step.end)) for s in (talk, rest))
        ran.append(measure(own))
        alone.append(measure(own) - common(own, other))
        assert known.parts_us is not None
        assert known.parts_us.communication == pytest.approx(alone[-1] / 1000)
    text = section("mi300_resnet_act_checkpoint_rank0of8")
    for values in ([s.dur for s in found.steps], ran, alone):
        a, b, c = (f"{v / 1e6:.1f}" for v in values)
        says(text, f"{a}, {b} and {c} ms")
    says(text, f"{100 * sum(alone) / sum(s.dur for s in found.steps):.1f} % of the three steps")
    assert rank.ranks[0].regime == "communication"


def test_a_recommendation_model_of_which_half_is_unknown() -> None:
    found, rank = (
        raw("hta/a100_control_rank3of8.json.gz"),
        analysed("hta/a100_control_rank3of8.json.gz").ranks[0],
    )
    total = sum(g.dur for g in found.gpu)
    text = section("hta/a100_control_rank3of8")
    says(text, f"{total / 1e6:.1f} ms in six steps", f"{rank.coverage.unknown:.1f} % of it")
    for part in ("SendRecv", "AllReduce", "CatArrayBatchedCopy"):
        time = sum(k.dur for k in found.named(part))
        says(text, f"{time / 1e6:.1f} ms ({100 * time / total:.1f} %)")
    reduced = [k for k in rank.kernels if "AllReduce" in k.name]
    assert {k.cost_reason for k in reduced} == {"dims of nccl:all_reduce"}
    assert (rank.regime, rank.regime_confidence) == ("latency", "low")


def test_graphs_alone_tell_no_bound() -> None:
    found, rank = raw("mi300_xdit_flux.json.gz"), analysed("mi300_xdit_flux.json.gz").ranks[0]
    calls = [r for r in found.rows if r.name == "hipGraphLaunch"]
    times = [[k.dur for k in found.kernels if k.correlation == c.correlation] for c in calls]
    assert [len(t) for t in times] == [993] * 4
    assert len({f"{sum(t) / 1e6:.1f}" for t in times}) == 1
    spent = f"{sum(times[0]) / 1e6:.1f}"
    replayed, whole = sum(map(sum, times)), sum(k.dur for k in found.kernels)
    text = section("mi300_xdit_flux")
    says(text, f"start {len(times[0])} kernels each, in {spent} ms each")
    says(text, f"{replayed / 1e6:.1f} of {whole / 1e6:.1f} ms ({100 * replayed / whole:.1f} %)")
    assert (rank.regime, rank.regime_reason) == (None, "costs unknown")
