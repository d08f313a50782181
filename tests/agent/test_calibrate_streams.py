"""Streams: every pass meets memory, and the best way counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.device import Device, last_level_cache_bytes
from agent.measure import bandwidth
from agent.measure.bandwidth import MIB, Streams, Turns
from agent.measure.timing import Tally, Watch, Work

CPU = Device("cpu", "cpu", "AMD EPYC", "vm", 2)

pytestmark = pytest.mark.torch


class Told(Watch):
    """Lets each turn add one sample: whole passes take 1 s, those over a part 1 ms on all threads and 10 ms
    on one."""

    quiet = True

    def turn(self, work: Work, tally: Tally, budget_s: float) -> None:
        import torch

        part = tally.settle == bandwidth.SETTLE
        tally.calls = 1
        seconds = 1.0 if not part else 1e-3 if torch.get_num_threads() > 1 else 1e-2
        (tally.quiet if self.quiet else tally.disturbed).append(seconds)


class Disturbed(Told):
    quiet = False


@pytest.fixture
def two_threads() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "array_bytes", lambda _: 8 * MIB)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("watch", [Told(), Disturbed()])
def test_each_stream_counts_its_arrays_once_and_its_best_way(watch: Watch) -> None:
    """A part of an array of 8 MiB is 1 MiB and takes 1 ms: triad moves three of them, copy two, read one."""
    streams = Streams(CPU, watch)
    for _ in range(3):
        streams.measure(0)
    rates = streams.rates()
    assert {name: rate.per_s for name, rate in rates.items()} == pytest.approx(
        {"triad": 3 * 2**20 / 1e-3, "copy": 2 * 2**20 / 1e-3, "read": 2**20 / 1e-3}
    )
    assert rates["triad"].what.startswith("arrays of 8 MiB in 8 parts, fast")


@pytest.mark.usefixtures("two_threads")
def test_a_busy_machine_is_not_given_whole_passes_again() -> None:
    streams = Streams(CPU, Disturbed())
    for _ in range(3):
        streams.measure(0)
    turns = {way.what: len(way.tally.disturbed) for way in streams._ways if way.name == "copy"}
    assert turns == {
        "arrays of 8 MiB": 1,
        "arrays of 8 MiB in 8 parts": 3,
        "arrays of 8 MiB in 8 parts, one thread": 2,
    }


@pytest.mark.usefixtures("two_threads")
def test_an_idle_machine_streams_on_all_threads_alone() -> None:
    streams = Streams(CPU, Told())
    streams.measure(0)
    assert not any(way.alone for way in streams._ways)


def test_the_next_part_is_the_one_that_was_touched_longest_ago() -> None:
    """20 elements in at most 8 parts: parts of 3, seven of them, from 0, 3, ... 18; then the first again.
    A pass over all ends with the last, so that the first was touched longest ago."""
    import torch

    arrays = [torch.arange(20.0) + 100 * i for i in range(3)]
    turns = Turns(arrays)
    firsts: list[list[float]] = []
    for _ in range(8):
        turns.part(lambda *parts: firsts.append([float(part[0]) for part in parts]))
    assert firsts == [[n, 100 + n, 200 + n] for n in (0, 3, 6, 9, 12, 15, 18, 0)]
    turns.whole(lambda *whole: firsts.append([float(len(array)) for array in whole]))
    turns.part(lambda *parts: firsts.append([float(part[0]) for part in parts]))
    assert firsts[-2:] == [[20.0] * 3, [0.0, 100.0, 200.0]]


@pytest.mark.parametrize(("name", "a_after"), [("triad", 2.0 + 3.0 * 5.0), ("copy", 2.0), ("read", 1.0)])
def test_a_pass_does_what_its_name_says(name: str, a_after: float) -> None:
    """Before it a = 1, b = 2, c = 5; only a is written."""
    import torch

    a, b, c = torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([5.0])
    bandwidth._passes(torch)[name][1](a, b, c)
    assert [float(x) for x in (a, b, c)] == [a_after, 2.0, 5.0]


def test_stream_arrays_are_larger_than_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless a sixteenth of the free memory is less, as on a machine of under 2 GiB."""
    monkeypatch.undo()
    size = bandwidth.array_bytes(CPU)
    assert size % MIB == 0
    assert size >= min(4 * (last_level_cache_bytes() or 0), 64 * MIB)
