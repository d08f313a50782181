"""The eight classes of the TensorBoard plugin, by hand: who goes before whom, and where its steps end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight import tensorboard_view
from rooflight.cli.main import main
from rooflight.results.tensorboard import CLASSES, TensorboardStep
from tests.recording import Recording
from tests.rooflight.test_idle import exact
from tests.rooflight.test_partition import build, event


def classes(step: TensorboardStep) -> dict[str, float]:
    return {c: us for c in CLASSES if (us := getattr(step, f"{c}_us"))}


def test_each_instant_is_of_the_first_class_that_has_any() -> None:
    """The step is [0, 100).  Loader [0, 20); an op [20, 50), in it a call [30, 31); the kernel [40, 60), the
    copy [55, 70): 10 of it remain; a collective of the host [65, 80): 10 remain; nothing until 100."""
    [step] = tensorboard_view(
        Recording()
        .step(1, 0, 100)
        .host("enumerate(DataLoader)#_Iter.__next__", 0, 20, cat="user_annotation")
        .host("aten::mm", 20, 30)
        .kernel("k", 30, 40, 20)
        .gpu("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 45, 55, 15, call="cudaMemcpyAsync", stream=8)
        .host("nccl:all_reduce", 65, 15, cat="user_annotation")
        .timeline()
    )
    assert (step.n, step.start_us, step.step_time_us, step.events, step.shown) == (1, 0, 100, 2, True)
    # Of the op [20, 50) the call takes 1 and the kernel 10 from 40 on, under which the call at 45 is.
    assert classes(step) == {
        "dataloader": 20, "cpu_exec": 19, "runtime": 1, "kernel": 20, "memcpy": 10, "communication": 10,
        "other": 20,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("enumerate(DataLoader)#_Iter.__next__", "dataloader"),
        ("enumerate(DataPipe)#Batcher", "dataloader"),
        ("enumerate(DataLoader)#_Iter", "cpu_exec"),
        ("gloo:broadcast", "communication"),
        ("aten::all_gather", "cpu_exec"),
    ],
)
def test_classes_of_the_host_are_told_by_whole_names_and_prefixes(name: str, found: str) -> None:
    [step] = tensorboard_view(Recording().step(1, 0, 10).host(name, 2, 5).timeline())
    assert classes(step) == {found: 5, "other": 5}


def test_a_communication_kernel_goes_after_any_other() -> None:
    """all_reduce [10, 40) beside the kernel [0, 20): 20 remain."""
    [step] = tensorboard_view(
        Recording()
        .step(1, 0, 40)
        .kernel("k", 0, 1, 19)
        .kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2, 10, 30, stream=8)
        .timeline()
    )
    assert classes(step) == {"kernel": 19, "communication": 20, "runtime": 1}


def two_steps(last: int) -> Recording:
    """Steps [0, 100) and [100, 200), of which the first launches 10 kernels, the last of which runs over
    [110, 120), and the second as many as asked, the last over [215, 220)."""
    recording = Recording().step(1, 0, 100).step(2, 100, 100)
    for i in range(10):
        recording.kernel("k", 5 * i, 11 * (i + 1) - 1 + i // 9, 10)
    for i in range(last):
        recording.kernel("k", 130 + i, 220 - 5 * (last - i), 5)
    return recording


def test_a_step_ends_with_the_work_that_it_launched_and_the_next_begins_there() -> None:
    """The tenth kernel of step 1 starts at 110 and ends at 120; step 2 is [120, 220)."""
    one, two = tensorboard_view(two_steps(10).timeline())
    assert (one.start_us, one.step_time_us, two.start_us, two.step_time_us) == (0, 120, 120, 100)
    assert (one.events, two.events) == (10, 10)


@pytest.mark.parametrize(("last", "shown"), [(8, True), (7, False), (0, False)])
def test_a_last_step_with_too_little_work_is_marked(last: int, shown: bool) -> None:
    """80 % of 10 are 8."""
    one, two = tensorboard_view(two_steps(last).timeline())
    assert (one.shown, two.shown) == (True, shown)


def test_work_of_before_the_first_step_pushes_it_back() -> None:
    """A kernel of an earlier launch ends at 30, before the first of step 1 starts at 40: [30, 100)."""
    [step] = tensorboard_view(
        Recording().step(1, 10, 90).kernel("before", 0, 5, 25).kernel("k", 20, 40, 10).timeline()
    )
    assert (step.start_us, step.step_time_us, step.kernel_us) == (30, 70, 10)


def test_without_steps_all_ops_are_one() -> None:
    [step] = tensorboard_view(Recording().host("aten::a", 10, 5).host("aten::b", 20, 10).timeline())
    assert (step.n, step.start_us, step.step_time_us, classes(step)) == (
        None, 10, 20, {"cpu_exec": 15, "other": 5},
    )  # fmt: skip


def test_without_steps_and_ops_there_is_nothing() -> None:
    assert tensorboard_view(Recording().kernel("k", 0, 5, 5).timeline()) == []


@settings(max_examples=80, deadline=None)
@given(st.lists(event, max_size=25))
def test_the_classes_add_up_to_the_step_and_steps_do_not_overlap(
    events: list[tuple[str, int, int, int]],
) -> None:
    steps, reach = tensorboard_view(build(events)), 0
    for s in steps:
        times = [exact(getattr(s, f"{c}_us")) for c in CLASSES]
        assert sum(times) == exact(s.step_time_us)
        assert min(times) >= 0
        assert exact(s.start_us) >= reach
        reach = exact(s.start_us + s.step_time_us)


def test_the_command_prints_it_as_table_and_json(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    stored = tmp_path / "t.rooflight"
    two_steps(7).timeline().save(stored)
    assert main(["analyze", "--view", "tensorboard", str(stored)]) == 0
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert lines[2].split()[:2] == ["1", "0.120"]
    assert lines[3].split()[0] == "2*"
    assert lines[4].split()[:2] == ["mean", "0.120"]
    assert main(["analyze", "--view", "tensorboard", "--format", "json", str(stored)]) == 0
    [file] = json.loads(capfdbinary.readouterr().out)
    assert [s["shown"] for s in file["steps"]] == [True, False]
    assert main(["analyze", "--view", "tensorboard", "--format", "md", str(stored)]) == 2
