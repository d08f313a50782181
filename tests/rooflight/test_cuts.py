"""The work of a step cut by phase and by module: every cut adds up to the same work."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight.analysis import analyze
from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.protocol import Document, Kernel, Parts
from rooflight.report.cuts import module_rows, phases
from rooflight.report.html import report
from rooflight.report.summary import summarise
from rooflight.results.modules import modules, outline
from rooflight.results.phases import WORK
from tests.factories import a_document
from tests.recording import Recording
from tests.rooflight.test_idle import exact
from tests.rooflight.test_partition import build, event


def training() -> Recording:
    """One step [0, 100): a forward kernel [10, 40), a backward one [30, 60), of which [30, 40) is the first
    one's, and a copy [60, 70) in the optimizer's step."""
    return (
        Recording()
        .step(1, 0, 100)
        .host("aten::mm", 0, 5)
        .kernel("fwd", 1, 10, 30)
        .host("autograd::engine::evaluate_function: MmBackward0", 20, 9)
        .kernel("bwd", 21, 30, 30, stream=8)
        .host("Optimizer.step#SGD.step", 50, 15, cat="user_annotation")
        .gpu("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 51, 60, 10, call="cudaMemcpyAsync")
    )


def test_each_instant_of_work_is_of_one_phase() -> None:
    assert analyze(training().timeline()).document.ranks[0].phase_parts_us == {
        "forward": Parts(unknown=30), "backward": Parts(unknown=20), "optimizer": Parts(copy=10),
    }  # fmt: skip


def test_phases_of_each_step_are_a_frame() -> None:
    pytest.importorskip("pandas")
    rows = analyze(training().step(2, 100, 10).timeline()).phases.to_dict("records")
    assert [(r["step"], r["phase"], r["work_ns"]) for r in rows] == [
        (1, "forward", 30_000), (1, "backward", 20_000), (1, "optimizer", 10_000),
        (2, "forward", 0), (2, "backward", 0), (2, "optimizer", 0),
    ]  # fmt: skip
    assert (rows[2]["copy_ns"], rows[2]["unknown_ns"]) == (10_000, 0)


def test_without_steps_they_are_of_the_recording() -> None:
    analysis = analyze(Recording().host("aten::mm", 0, 5).kernel("k", 1, 10, 30).timeline())
    assert analysis.document.ranks[0].phase_parts_us == {"forward": Parts(unknown=30)}
    assert analysis.by_phase[0]["step"].tolist() == [-1]


@settings(max_examples=60, deadline=None)
@given(st.lists(event, min_size=1, max_size=25))
def test_phases_add_up_to_the_parts_of_the_steps(events: list[tuple[str, int, int, int]]) -> None:
    rank = analyze(build(events)).document.ranks[0]
    for part in WORK:
        of_steps = sum(exact(getattr(s.parts_us, part)) for s in rank.steps if s.parts_us)
        assert sum(exact(getattr(p, part)) for p in rank.phase_parts_us.values()) == of_steps


def a_row(path: str | None, time_us: float, regime: str = "compute", bound_us: float | None = None) -> Kernel:
    return Kernel(
        "k", module_path=path, time_us=time_us, regime=regime, bound_us=bound_us, exclusive_us=time_us - 1
    )


NET = [
    a_row("Net_0 > Block_0 > Linear_0", 50, "compute", 40),
    a_row("Net_0 > Block_0 > Linear_1", 30, "memory"),
    a_row("Net_0 > Block_0", 10, "memory", 5),
    a_row("Net_0 > Head_0", 60, "latency"),
    a_row(None, 7),
]


def test_a_module_has_all_that_is_inside_it() -> None:
    """Block: 50 + 30 + 10 = 90, itself 10; bounds are known for 60 of it: 45 / 60.  Alone each is 1 less."""
    found = {m.path: m for m in modules(NET)}
    assert {path: (m.time_us, m.self_us, m.groups) for path, m in found.items()} == {
        "Net_0": (150, 0, 4), "Net_0 > Block_0": (90, 10, 3), "Net_0 > Block_0 > Linear_0": (50, 50, 1),
        "Net_0 > Block_0 > Linear_1": (30, 30, 1), "Net_0 > Head_0": (60, 60, 1), "": (7, 7, 1),
    }  # fmt: skip
    block = found["Net_0 > Block_0"]
    assert (block.exclusive_us, block.roof_fraction, block.depth, block.name) == (87, 0.75, 1, "Block_0")
    # 50 us compute against 40 of memory; Net: latency 60 is the most.
    assert (block.regime, found["Net_0"].regime) == ("compute", "latency")
    assert found["Net_0 > Head_0"].roof_fraction is None


def test_what_is_not_known_of_one_is_not_known_of_those_around_it() -> None:
    found = {m.path: m for m in modules([*NET, Kernel("k", module_path="Net_0 > Head_0", time_us=1)])}
    assert (found["Net_0"].exclusive_us, found["Net_0 > Block_0"].exclusive_us) == (None, 87)


def test_the_outline_is_the_tree_without_what_only_holds_another() -> None:
    """All in Wrap_0, which holds Net_0 alone; of the five others four are shown."""
    rows = [a_row(f"Wrap_0 > {k.module_path}", k.time_us) for k in NET if k.module_path]
    assert [(indent, m.name) for indent, m in outline(modules(rows), 4)] == [
        (0, "Net_0"), (1, "Block_0"), (2, "Linear_0"), (1, "Head_0"),
    ]  # fmt: skip


def a_model() -> Document:
    """Two steps of 174.8 ms; 40 ms of forward and 120 ms of backward over both."""
    document = a_document(steps=2)
    rank = document.ranks[0]
    rank.phase_parts_us = {"forward": Parts(compute=40_000), "backward": Parts(memory=120_000)}
    for i, k in enumerate(rank.kernels):
        k.module_path, k.steps_exclusive_us = ("Net_0 > Block_0", 8_000.0) if i else ("Net_0", 2_000.0)
    return document


def test_cuts_are_per_step() -> None:
    """12 groups: 2 + 11 x 8 = 90 ms in two steps are 45, of 174.8 ms."""
    document = a_model()
    rank, s = document.ranks[0], summarise(document.ranks[0])
    assert [(p.name, p.us) for p in phases(rank, s)] == [("forward", 20_000), ("backward", 60_000)]
    net, block = module_rows(rank, s)
    assert (net.us, block.us, net.indent, block.indent) == (45_000, 44_000, 0, 1)
    assert net.share_pct == pytest.approx(25.74, abs=0.005)


def test_one_phase_alone_tells_nothing() -> None:
    document = a_model()
    del document.ranks[0].phase_parts_us["backward"]
    assert phases(document.ranks[0], summarise(document.ranks[0])) == []


def test_each_surface_shows_them() -> None:
    document = a_model()
    assert "by phase: forward 20.00 ms (11 %), backward 60.00 ms (34 %)" in table(document)
    assert "| backward | 60.000 | 34.3 | 0.000 | 60.000 |" in markdown(document)
    for text in (markdown(document), report(document)):
        assert "Block_0" in text
    assert "Phases and Modules" in report(document)
