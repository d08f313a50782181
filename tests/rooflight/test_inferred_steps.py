"""Steps that nobody marked (DEFINITIONS §6): from the optimizer, from a loop, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.analysis import Options
from rooflight.attribution.inferred import infer_steps
from rooflight.attribution.launches import link
from rooflight.attribution.steps import find_steps
from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.protocol import PARTS, Rank
from rooflight.trace.timeline import Timeline
from tests.drawing import timeline_from_events, timeline_from_text
from tests.shared import traces_dir

Event = dict[str, Any]


def row(cat: str, name: str, ts: float, dur: float, *, tid: int = 1, pid: int = 9, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


class Tape:
    """Launches one after the other: a call of 1 µs every 10 µs, whose kernels run 2 µs later."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = 0.0

    def launch(self, *kernels: str, call: str = "cudaLaunchKernel", cat: str = "kernel") -> Tape:
        n = len(self.events) + 1
        self.events.append(row("cuda_runtime", call, self.now, 1, correlation=n))
        for i, name in enumerate(kernels):
            gpu = {"correlation": n, "device": 0, "stream": 7}
            self.events.append(row(cat, name, self.now + 2 + i, 1, pid=0, tid=7, **gpu))
        self.now += 10
        return self

    def eager(self, kernels: str) -> Tape:
        """A launch for each letter; a blank lets time pass, ``>`` copies to the host, ``|`` waits."""
        for k in kernels:
            if k == ">":
                self.launch("Memcpy DtoH (Device -> Pinned)", call="cudaMemcpyAsync", cat="gpu_memcpy")
            elif k == "|":
                self.events.append(row("cuda_runtime", "cudaStreamSynchronize", self.now, 9))
                self.now += 10
            elif k == " ":
                self.now += 10
            else:
                self.launch(k)
        return self

    def optimizer(self, name: str = "SGD", dur: float = 5) -> Tape:
        self.events.append(row("user_annotation", f"Optimizer.step#{name}.step", self.now, dur))
        self.now += 10
        return self

    def rank(self) -> Rank:
        return analyze(timeline_from_events(self.events)).document.ranks[0]


def lengths(rank: Rank) -> list[tuple[int, float, str | None]]:
    return [(s.n, s.step_time_us, s.inferred_from) for s in rank.inferred_steps]


def flags(rank: Rank) -> dict[str, int | None]:
    return {f.code: f.count for f in rank.flags}


def test_a_step_runs_from_one_end_of_the_optimizer_to_the_next() -> None:
    """Optimizer over [20, 25), [50, 55), [80, 85): steps [25, 55) and [55, 85).  Kernels run 1 µs each:
    of those launched at 0 10 | 30 40 | 60 70 | 90, two are launched in each step."""
    rank = Tape().eager("ab").optimizer().eager("ab").optimizer().eager("ab").optimizer().eager("a").rank()
    assert rank.steps == []
    assert lengths(rank) == [(0, 30.0, "optimizer"), (1, 30.0, "optimizer")]
    assert [s.gpu_launched_us for s in rank.inferred_steps] == [2.0, 2.0]
    assert (flags(rank)["no_steps"], flags(rank)["inferred_steps"]) == (0, 2)
    assert (rank.n_steps, rank.steps_total_us) == (0, None)
    for step in rank.inferred_steps:
        assert step.parts_us is not None
        assert sum(getattr(step.parts_us, p) for p in PARTS) == step.step_time_us


def test_a_recording_begun_as_a_step_ended_has_a_whole_first_step() -> None:
    """Optimizer over [20, 25), [50, 55); the first event starts at 0: steps [0, 25) and [25, 55)."""
    tape = Tape().eager("ab").optimizer().eager("ab").optimizer().eager("a")
    timeline = timeline_from_events(tape.events)
    inferred = infer_steps(timeline, link(timeline), begins_at_step=True)
    assert inferred is not None
    assert [span.end - span.start for span in inferred.spans] == [25_000, 30_000]
    [rank] = analyze(timeline, options=Options(begins_at_step=True)).document.ranks
    assert lengths(rank) == [(0, 25.0, "optimizer"), (1, 30.0, "optimizer")]


def test_only_the_first_optimizer_cuts() -> None:
    """A generator and a discriminator: the first to step is Adam; a step that holds another's counts once."""
    tape = Tape()
    for _ in range(3):
        tape.optimizer("Adam", dur=30).optimizer("SGD").optimizer("Adam").eager("a")
    assert [t for _, t, _ in lengths(tape.rank())] == [40.0, 40.0]  # the inner call of Adam ends nothing


def test_one_call_of_the_optimizer_is_no_step() -> None:
    rank = Tape().eager("ab").optimizer().eager("ab").rank()
    assert rank.inferred_steps == []
    assert "inferred_steps" not in flags(rank)


def test_marked_steps_are_not_inferred_again() -> None:
    tape = Tape().eager("ab").optimizer().eager("ab").optimizer()
    tape.events.append(row("user_annotation", "ProfilerStep#3", 0, 60))
    rank = tape.rank()
    assert ([s.n for s in rank.steps], rank.inferred_steps) == ([3], [])
    assert not {"no_steps", "inferred_steps"} & set(flags(rank))


def test_a_verdict_over_inferred_steps_says_so_and_is_never_sure() -> None:
    """10 ms of waiting for input in each step, and nothing else of any length: sure, had it been marked."""
    tape = Tape().eager(">").optimizer()
    for _ in range(4):
        tape.events.append(row("user_annotation", "enumerate(DataLoader)#_It.__next__", tape.now, 10_000))
        tape.now += 10_000
        tape.eager(">").optimizer()
    marked = Tape()
    marked.events = [*tape.events, row("user_annotation", "ProfilerStep#1", 15, tape.now - 15)]
    assert (marked.rank().regime, marked.rank().regime_confidence) == ("input", "high")
    rank = tape.rank()
    assert (rank.regime, rank.regime_confidence) == ("input", "medium")
    assert rank.regime_reason is not None
    assert rank.regime_reason.endswith("over steps inferred from the calls of Optimizer.step#SGD.step")
    document = analyze(timeline_from_events(tape.events)).document
    assert "4 inferred steps" in table(document)
    assert "per inferred step" in table(document)
    assert "over 4 inferred steps" in markdown(document)


def test_a_decode_loop_is_told_by_its_launches() -> None:
    """Six rounds of 5 launches and a pause, cut in the middle of the first and of the last.  The longest
    pause is before `e`: a round is e a b c > and 10 µs more.  It begins at 40, 100, 160, 220, 280."""
    rank = Tape().eager("bc> " + "eabc> " * 4 + "eab").rank()
    assert lengths(rank) == [(n, 60.0, "period") for n in range(4)]
    assert [s.start_us for s in rank.inferred_steps] == [40.0, 100.0, 160.0, 220.0]
    assert [s.gpu_launched_us for s in rank.inferred_steps] == [4.0] * 4  # four kernels of 1 µs
    [flag] = [f for f in rank.flags if f.code == "inferred_steps"]
    assert flag.detail == "steps were inferred from a loop of 4 launches from e to the next"


def test_a_round_that_is_different_is_left_out() -> None:
    """Of six windows the third has a kernel more: five are alike, more than four in five."""
    rank = Tape().eager("eab| eab| eaxb| eab| eab| eab| ea").rank()
    assert [n for n, *_ in lengths(rank)] == [0, 1, 3, 4, 5]
    assert Tape().eager("eab| eab| eaxb| eab| eayb| ea").rank().inferred_steps == []  # 3 of 5 are alike


def test_replays_of_one_graph_are_rounds() -> None:
    tape = Tape()
    for _ in range(5):
        tape.launch("gemm", "norm", "gemm", call="cudaGraphLaunch")
    assert lengths(tape.rank()) == [(n, 10.0, "period") for n in range(4)]


@pytest.mark.parametrize(
    "kernels",
    [
        "abab",  # two rounds
        "pab|ab|ab|ab|ab",  # began with something else
        "ab|ab|ab|ab|abq",  # ended with something else
        "abcabcabcabcabcabc",  # layers: nothing goes in or out between them
        "aaaa|aaaa|aaaa|aaaa",  # one kernel over and over
        "eabababababh|eabababababh|",  # two passes of five layers each
        "a",
    ],
)
def test_what_is_no_certain_loop_stays_unknown(kernels: str) -> None:
    rank = Tape().eager(kernels).rank()
    assert rank.inferred_steps == []
    assert flags(rank)["no_steps"] == 0


def test_kernels_without_launches_are_no_loop() -> None:
    rank = analyze(
        timeline_from_text("""
        us        0    5    10   15   20   25   30   35   40
        stream 7  a b  a b  a b  a b  a b  a b  a b  a b
        """)
    ).document.ranks[0]
    assert rank.inferred_steps == []


def test_thousands_of_candidates_and_no_anchor_among_them() -> None:
    """Three windows of 2,000 kernels that are alike; nothing is copied in or out, and the end is another."""
    names = [f"k{i}" for i in range(2_000)]
    tape = Tape()
    for _ in range(4):
        for name in names:
            tape.launch(name)
    assert tape.launch("other").rank().inferred_steps == []


def unmarked(timeline: Timeline, *prefixes: str) -> Timeline:
    """The recording with the rows of these names called something else."""
    return replace(timeline, names=tuple("x" if n.startswith(prefixes) else n for n in timeline.names))


@pytest.mark.traces
@pytest.mark.parametrize("source", ["optimizer", "period"])
@pytest.mark.parametrize(
    "file", ["v100_resnet50_workers0.pt.trace.json.gz", "hta/a100_control_rank3of8.json.gz"]
)
def test_steps_inferred_from_a_real_run_are_as_long_as_those_that_were_marked(file: str, source: str) -> None:
    """The profiler marked six; inferred are the five between them, whole, and no other.  Ends of the
    optimizer and anchors lie elsewhere in the step, so single lengths differ a little."""
    timeline = read(traces_dir() / file)
    marks = ("ProfilerStep#", "Optimizer.step#") if source == "period" else ("ProfilerStep#",)
    hidden = unmarked(timeline, *marks)
    found = infer_steps(hidden, link(hidden))
    assert found is not None
    assert found.source == source
    marked = find_steps(timeline)
    assert len(found.spans) == 5
    mean = sum(s.end - s.start for s in found.spans) / 5
    assert mean == pytest.approx((marked[-1].end - marked[0].start) / 6, rel=0.02)


SINGLE = ("mi300_xdit_flux.json.gz", "pairs/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
          "pairs/mi300/Falconsai_nsfw_image_detection__1016002.json.gz", "vllm_decode_graph.json.gz",
          "mi300_sglang_qwen3_8b_decode.json.gz", "hta/a100_alexnet.json.gz")  # fmt: skip


@pytest.mark.traces
@pytest.mark.parametrize("file", SINGLE)
def test_layers_of_a_real_single_pass_are_no_steps(file: str) -> None:
    hidden = unmarked(read(traces_dir() / file), "ProfilerStep#")
    assert infer_steps(hidden, link(hidden)) is None
