"""Costs of kernels without an op of their own, from siblings (rooflight/cost/siblings.py)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rooflight import analyze, read
from rooflight.attribution.launches import link
from rooflight.cost.launches import LaunchCosts, attach
from rooflight.cost.siblings import with_siblings
from rooflight.kernels import classify
from rooflight.protocol import Kernel
from rooflight.trace.tables import GpuKind, distinct
from rooflight.trace.timeline import Timeline
from tests.drawing import timeline_from_events
from tests.shared import traces_dir

Event = dict[str, Any]
H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132,
                              "computeMajor": 9, "computeMinor": 0}]}  # fmt: skip
AS_MM = "as aten::mm of the same kernel elsewhere in this recording"


def row(cat: str, name: str, ts: float, dur: float, *, tid: int = 1, pid: int = 9, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


class Stream:
    """Products of [rows, 128] and [128, 128] matrices in bf16, one kernel each, on one stream."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now, self.calls = 0.0, 0

    def kernel(self, name: str, *, grid: int | None = 8, dur: float = 4.0, **args: Any) -> Stream:
        """A kernel whose launch is not in the file, unless one with its correlation is."""
        self.calls += 1
        where: Event = {"device": 0, "stream": 7, "correlation": self.calls, **args}
        where |= {} if grid is None else {"grid": [grid, 1, 1], "block": [128, 1, 1]}
        self.events.append(row("kernel", name, self.now + 5, dur, pid=0, tid=7, **where))
        self.now += 10 + dur
        return self

    def op(self, name: str, rows: int = 64, **how: Any) -> Stream:
        begin = self.now
        self.kernel(name, **how)
        inputs = {"Input Dims": [[rows, 128], [128, 128]], "Input type": ["c10::BFloat16"] * 2,
                  "Input Strides": [[128, 1], [128, 1]], "Concrete Inputs": ["", ""]}  # fmt: skip
        self.events.append(row("cpu_op", "aten::mm", begin, 3, **inputs))
        self.events.append(row("cuda_runtime", "cudaLaunchKernel", begin + 1, 1, correlation=self.calls))
        return self

    def rows(self) -> list[Kernel]:
        return analyze(timeline_from_events(self.events, **H100)).document.ranks[0].kernels

    def without_op(self) -> dict[str, list[Kernel]]:
        found: dict[str, list[Kernel]] = {}
        for k in self.rows():
            if k.op is None:
                found.setdefault(k.name, []).append(k)
        return found


NAMES = [f"kernel_{i}" for i in range(8)]


def test_a_part_that_repeats_costs_what_it_costs_elsewhere() -> None:
    """Eight products before the recording knows their launches, then the same eight with them:
    2 x 64 x 128 x 128 = 2,097,152 FLOPs and 2 x (64 x 128 + 128 x 128 + 64 x 128) = 65,536 bytes each."""
    stream = Stream()
    for name in NAMES:
        stream.kernel(name)
    for name in NAMES:
        stream.op(name)
    rows = stream.without_op()
    assert list(rows) == NAMES
    for (k,) in rows.values():
        assert (k.flops, k.bytes) == (2 * 64 * 128 * 128, 2 * (64 * 128 + 128 * 128 + 64 * 128))
        assert (k.origin, k.cost_reason) == ("inferred", AS_MM)
        # What it worked on is known, that an op launched it is not.
        assert (k.input_dims, k.op) == ("[[64, 128], [128, 128]]", None)


def test_one_name_of_two_sizes_is_told_by_what_runs_around_it() -> None:
    """The layer of 64 rows and that of 32 have one kernel in common, of one grid."""
    stream = Stream()
    layers = {rows: [*(f"{name}_{rows}" for name in NAMES), "shared", f"last_{rows}"] for rows in (64, 32)}
    for names in layers.values():
        for name in names:
            stream.kernel(name)
    for rows, names in layers.items():
        for name in names:
            stream.op(name, rows)
    found = {k.input_dims: (k.count, k.flops) for k in stream.without_op()["shared"]}
    assert found == {
        "[[64, 128], [128, 128]]": (1, 2 * 64 * 128 * 128),
        "[[32, 128], [128, 128]]": (1, 2 * 32 * 128 * 128),
    }


def test_where_siblings_disagree_nothing_is_known() -> None:
    """The same run of kernels twice, of which one had another size: which one it was here is open."""
    stream = Stream()
    for name in NAMES:
        stream.kernel(name)
    for rows in (64, 32):
        for name in NAMES:
            stream.op(name, rows if name == "kernel_3" else 64)
    origins = {name: k.origin for name, (k,) in stream.without_op().items()}
    assert origins == {name: "unknown" if name == "kernel_3" else "inferred" for name in NAMES}


@pytest.mark.parametrize(("dur", "origin"), [(8.0, "inferred"), (8.1, "unknown"), (1.9, "unknown")])
def test_a_kernel_that_took_another_time_did_other_work(dur: float, origin: str) -> None:
    """Its sibling took 4 us: up to twice and down to half of it is alike."""
    stream = Stream()
    for name in NAMES:
        stream.kernel(name, dur=dur if name == "kernel_5" else 4.0)
    for name in NAMES:
        stream.op(name)
    assert stream.without_op()["kernel_5"][0].origin == origin


def test_name_and_grid_tell_where_all_that_have_them_agree() -> None:
    """A lone kernel in the midst of others: two siblings of 64 rows make a rule, a third of 32 breaks it."""
    stream = Stream().op("mm").op("other").kernel("mm").op("mm")
    assert stream.without_op()["mm"][0].flops == 2 * 64 * 128 * 128
    assert stream.op("mm", 32).without_op()["mm"][0].flops is None


def test_one_sibling_alone_or_another_grid_is_no_rule() -> None:
    assert Stream().op("mm").op("other").kernel("mm").without_op()["mm"][0].flops is None
    stream = Stream().op("mm").op("mm").kernel("mm", grid=9)
    assert stream.without_op()["mm"][0].flops is None


def test_a_name_without_a_grid_tells_no_size() -> None:
    stream = Stream().op("mm", grid=None).op("mm", grid=None).kernel("mm", grid=None)
    assert stream.without_op()["mm"][0].flops is None


def test_where_little_is_explained_a_name_tells_nothing() -> None:
    """Two of five kernels have an op: a third size may be among the rest."""
    stream = Stream().op("mm").op("mm")
    for _ in range(3):
        stream.kernel("mm")
    assert stream.without_op()["mm"][0].origin == "unknown"


def test_collectives_of_one_name_are_told_by_their_order() -> None:
    """Rounds of a large all_reduce and two small ones, all of one name and of any duration; the recording
    begins in the second of a round.  n = 4 ranks in fp32: 4 B x elements, bus bytes 2 x 3/4 of them."""
    stream, sizes = Stream(), [1_000_000, 10, 20]
    for dur in (9.0, 3.0):
        stream.kernel("ncclDevKernel_Generic", grid=None, dur=dur)
    for nth in range(6):
        message = {"Collective name": "allreduce", "In msg nelems": sizes[nth % 3], "Group size": 4,
                   "Out msg nelems": sizes[nth % 3], "dtype": "Float"}  # fmt: skip
        stream.op("ncclDevKernel_Generic", grid=None, dur=50.0 + nth, **message)
    (mine,) = stream.without_op()["ncclDevKernel_Generic"]
    # 10 and 20 elements read and written by the two that have no launch.
    assert (mine.count, mine.bytes, mine.origin) == (2, 2 * 4 * (10 + 20), "inferred")


def test_an_order_that_was_seen_once_is_none() -> None:
    stream = Stream().kernel("ncclDevKernel_Generic", grid=None)
    for size in (1_000_000, 10, 20):
        message = {"Collective name": "allreduce", "In msg nelems": size, "Group size": 4,
                   "Out msg nelems": size, "dtype": "Float"}  # fmt: skip
        stream.op("ncclDevKernel_Generic", grid=None, **message)
    assert stream.without_op()["ncclDevKernel_Generic"][0].origin == "unknown"


# --- against recordings whose launches are all there ------------------------------------------------


def costed(timeline: Timeline, hidden: float) -> tuple[LaunchCosts, LaunchCosts, np.ndarray[Any, Any]]:
    """The costs by the ops themselves; those that siblings give when the launches of the first part of the
    kernels, a share ``hidden``, are taken away; the kernels of that part whose cost was known."""
    links = link(timeline)
    names = {i: classify(timeline.names[i]) for i in distinct(timeline.gpu.name).tolist()}
    own = attach(timeline, links, names)
    rows = timeline.valid_gpu[links.launch[timeline.valid_gpu] >= 0]
    rows = rows[timeline.gpu.start[rows] < np.quantile(timeline.gpu.start[rows], hidden)]
    launch, op, comm = links.launch.copy(), links.op.copy(), timeline.gpu.comm.copy()
    launch[rows], op[rows], comm[rows] = -1, -1, -1
    blind = replace(timeline, gpu=replace(timeline.gpu, comm=comm))
    blind_links = replace(links, launch=launch, op=op)
    found = with_siblings(blind, blind_links, attach(blind, blind_links, names))
    known = [c.origin != "unknown" for c in own.costs]
    kernels = rows[(timeline.gpu.kind[rows] == GpuKind.KERNEL) & np.array(known)[own.index[rows]]]
    return own, found, kernels


@pytest.mark.traces
@pytest.mark.parametrize(
    ("trace", "share"),
    [
        ("pairs/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 0.95),
        ("pairs/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 0.95),
        ("pairs/mi300/Falconsai_nsfw_image_detection__1016002.json.gz", 0.80),
        ("mi300_resnet_act_checkpoint_rank0of8.json.gz", 0.99),
        ("hta/a100_control_rank3of8.json.gz", 0.90),
        ("v100_resnet50_workers0.pt.trace.json.gz", 0.99),
    ],
)
def test_what_siblings_tell_is_what_the_own_op_tells(trace: str, share: float) -> None:
    """Without the launches of the first 30 % of the kernels: every cost that is found is that of the op and
    inputs that the kernel really had, and at least ``share`` of the time finds one."""
    timeline = read(Path(traces_dir()) / trace)
    own, found, kernels = costed(timeline, 0.3)
    length = (timeline.gpu.end - timeline.gpu.start)[kernels]
    told = np.array([found.costs[i].origin == "inferred" for i in found.index[kernels].tolist()])
    assert length[told].sum() >= share * length.sum()
    for row in kernels[told].tolist():
        mine, theirs = int(own.op[row]), int(found.op[row])
        if mine < 0:
            assert own.costs[own.index[row]].bytes == found.costs[found.index[row]].bytes
        else:
            host = timeline.host
            assert (host.name[mine], host.args[mine]) == (host.name[theirs], host.args[theirs])
