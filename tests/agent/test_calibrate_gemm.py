"""Products: shapes, layouts and threads in turns, and which of them is the ceiling."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from agent.device import Device
from agent.measure import gemm
from agent.measure.gemm import Case, Products
from agent.measure.timing import Tally, Watch

pytestmark = pytest.mark.torch

CPU = Device("cpu", "cpu", "AMD EPYC", "vm", 2)
#: Operations of a product of 64 x 64 matrices: 2 x 64^3.
FLOP_64 = 524_288


def products(*shapes: int, budget_s: float = 100.0) -> Products:
    found = Products(CPU, "fp32", Watch(), budget_s)
    found.cases = [Case((n, n, n), "nn") for n in shapes]
    return found


def turns(
    monkeypatch: pytest.MonkeyPatch, sample: Callable[[Case], tuple[float, bool]]
) -> list[tuple[int, bool]]:
    """Let each turn take 1 s and add the sample (seconds, quiet) of the case; collects M and `alone`."""
    seen: list[tuple[int, bool]] = []
    now = [0.0]

    def turn(_self: Products, _torch: object, case: Case) -> bool:
        seen.append((case.shape[0], case.alone))
        seconds, quiet = sample(case)
        case.tally.calls = 1
        (case.tally.quiet if quiet else case.tally.disturbed).append(seconds)
        now[0] += 1.0
        return True

    monkeypatch.setattr(gemm, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(Products, "_turn", turn)
    return seen


def test_a_product_has_two_operations_for_each_of_m_n_k() -> None:
    assert gemm.flop(3, 5, 7) == 2 * 3 * 5 * 7


def test_all_cases_get_turns_until_one_is_known_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal seconds: 64^3 has an eighth of the operations of 128^3, so an eighth of its rate, and is left
    out as soon as five samples say so."""
    measured = products(64, 128)
    seen = turns(monkeypatch, lambda _: (1e-3, True))
    measured.measure(20)
    assert seen[:10] == [(64, False), (128, False)] * 5
    assert set(seen[10:]) == {(128, False)}
    rate = measured.rate()
    assert rate is not None
    # 2 * 128^3 = 4194304 operations in a millisecond.
    assert rate.per_s == pytest.approx(4_194_304e3)
    assert rate.what.startswith("128 x 128 x 128 nn, fast decile of")


def test_a_slow_moment_does_not_make_a_case_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first four samples of 64^3 take 10 ms, then it is ten times as fast."""
    measured = products(64, 128)
    counts = {64: 0, 128: 0}

    def sample(case: Case) -> tuple[float, bool]:
        counts[case.shape[0]] += 1
        return (1e-2 if case.shape[0] == 64 and counts[64] < 5 else 1e-3 * (case.shape[0] / 128) ** 3, True)

    seen = turns(monkeypatch, sample)
    measured.measure(40)
    assert seen[-2:] == [(64, False), (128, False)]


def test_a_shape_that_would_take_a_fifth_of_the_budget_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """64^3 takes 0.1 s.  128^3 takes 0.8 s then and a first turn four calls, 3.2 s: too long of 10 s, not
    of 20 s."""
    for budget_s, expected in ((10, {64}), (20, {64, 128})):
        measured = products(64, 128, budget_s=budget_s)
        seen = turns(monkeypatch, lambda case: (0.1 * (case.shape[0] / 64) ** 3, True))
        measured.measure(6)
        assert {m for m, _ in seen} == expected


def test_on_a_busy_machine_short_cases_alone_go_on_and_on_one_thread_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """600^3 is more than the 2 * 512^3 operations that others may leave alone."""
    measured = products(64, 600)
    seen = turns(monkeypatch, lambda case: (1e-6 * (case.shape[0] / 64) ** 3, case.alone))
    measured.measure(4)
    # After the first turn most samples are disturbed, so that 600^3 waits.
    assert seen == [(64, False), (64, False), (64, True), (64, False)]
    rate = measured.rate()
    assert rate is not None
    assert rate.per_s == pytest.approx(FLOP_64 * 1e6)


def test_one_thread_reaches_the_ceiling_when_threads_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = products(64)
    turns(monkeypatch, lambda case: (1e-6, True) if case.alone else (1e-2, False))
    measured.measure(20)
    rate = measured.rate()
    assert rate is not None
    assert "one thread" in rate.what
    assert rate.per_s == pytest.approx(FLOP_64 * 1e6)


def test_what_torch_refuses_has_no_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(gemm, "_product", refuses)
    measured = products(64, 128)
    measured.measure(0.05)
    assert measured.rate() is None
    assert all(case.out for case in measured.cases)


def test_products_are_run_on_as_many_threads_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    seen = []

    class Noting(Watch):
        def turn(self, work: object, tally: Tally, budget_s: float) -> None:
            seen.append(torch.get_num_threads())

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        measured = Products(CPU, "fp32", Noting(), 1.0)
        for alone in (False, True):
            measured._turn(torch, Case((8, 8, 8), "nt", alone))
        assert seen == [2, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("layout", gemm.LAYOUTS)
def test_a_product_is_that_of_its_shape(layout: str) -> None:
    import torch

    out = gemm._product(torch, CPU, "fp64", (3, 5, 7), layout)()
    assert isinstance(out, torch.Tensor)
    assert (tuple(out.shape), out.dtype) == ((3, 5), torch.float64)
