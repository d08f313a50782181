"""Collectives as rows: sizes, rates against the link, waiting, exposure; and who suffers beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.analysis import analyze_files
from rooflight.attribution.hosts import ACROSS, LOCAL, UNTOLD, on_one_host
from rooflight.collectives import Communication, Contention
from rooflight.cost.collective import bus_bytes, message_bytes
from rooflight.protocol import Document, decode, encode
from rooflight.results.communication import MOST_ROWS
from rooflight.results.medians import medians
from rooflight.results.splits import skew
from rooflight.trace.timeline import DeviceProperties, Meta, Timeline
from tests.drawing import timeline_from_events
from tests.recording import H100, Recording
from tests.shared import traces_dir

#: 450 GB/s per direction by the datasheet, of which 0.85 is practical (DEFINITIONS §15).
LINK_GBS = 450 * 0.85
MIB = 1 << 20

Event = dict[str, Any]
Call = tuple[float, float, Event]


def message(nelems: int, *, name: str = "allreduce", out: int | None = None, **more: Any) -> Event:
    """Args of a collective over bf16 in group dp of ranks 0 and 1."""
    return {
        "Collective name": name,
        "In msg nelems": nelems,
        "Out msg nelems": nelems if out is None else out,
        "Group size": 2,
        "dtype": "BFloat16",
        "Process Group Name": "dp",
        "Process Group Ranks": "[0, 1]",
    } | more


def rank(number: int, calls: list[Call], *, world: int = 2, host: str = "", devices: int = 8) -> Timeline:
    """A rank of H100s whose collectives start and last so long, in µs, on a stream of their own."""
    events = [
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "pid": 0, "tid": 20,
         "ts": start, "dur": dur, "args": {"device": 0, "context": 1, "stream": 20, **args}}
        for start, dur, args in calls
    ]  # fmt: skip
    meta: Event = {"distributedInfo": {"rank": number, "world_size": world}}
    listed = [{**H100, "id": i} for i in range(devices)]
    return timeline_from_events(
        events, deviceProperties=listed, **meta, **({"host_name": host} if host else {})
    )


def run(*ranks: Timeline) -> Document:
    return analyze(list(ranks)).document


def rows(*ranks: Timeline) -> list[Communication]:
    return run(*ranks).ranks[0].communication


def test_with_one_rank_the_rate_rests_on_the_kernel_s_duration_and_says_so() -> None:
    """50 Mi elements of bf16 are 104,857,600 bytes; of two ranks an all-reduce moves 2·1/2 of it over each
    link; in 500 µs that is 209.7152 GB/s of 382.5."""
    [row] = rows(rank(0, [(0, 500, message(50 * MIB)), (1000, 500, message(50 * MIB))]))
    assert (row.kind, row.ranks, row.dtype, row.count, row.sizes) == ("allreduce", 2, "bf16", 2, 1)
    assert (row.message_bytes, row.bus_bytes) == (104_857_600, 104_857_600)
    assert (row.time_us, row.p50_us, row.exposed_us, row.exposed_pct) == (1000, 500, 1000, 100)
    assert (row.basis, row.matched, row.wait_us, row.transfer_us) == ("duration", 0, None, None)
    assert row.algorithm_gbs == pytest.approx(209.7152)
    assert row.bus_gbs == pytest.approx(209.7152)
    assert row.link_gbs == pytest.approx(LINK_GBS)
    assert row.link_fraction == pytest.approx(209.7152 / 382.5)
    assert row.reason == "by the kernel's duration, which holds waiting: a lower bound"


def test_with_all_ranks_only_the_transfer_counts() -> None:
    """Rank 0 waits 300 and then 100 µs of its 500: 200 and 400 µs are transfer, and
    104,857,600 bytes in these are 524.288 and 262.144 GB/s, whose median is 393.216."""
    size = message(50 * MIB)
    [row] = rows(
        rank(0, [(0, 500, size), (1000, 500, size)]),
        rank(1, [(300, 200, size), (1100, 400, size)]),
    )
    assert (row.basis, row.matched, row.wait_us, row.transfer_us) == ("transfer", 2, 400, 600)
    assert row.bus_gbs == pytest.approx(393.216)
    assert row.link_fraction == pytest.approx(393.216 / LINK_GBS)
    assert row.reason == ""


def test_the_rank_that_came_last_has_the_same_transfer_and_no_wait() -> None:
    size = message(50 * MIB)
    document = run(rank(0, [(0, 500, size)]), rank(1, [(300, 200, size)]))
    first, last = (r.communication[0] for r in document.ranks)
    assert (first.wait_us, last.wait_us) == (300, 0)
    assert first.bus_gbs == last.bus_gbs == pytest.approx(524.288)


def test_missing_ranks_leave_a_lower_bound() -> None:
    """Two of three ranks: the third may have come later than the last that was seen."""
    size = message(MIB, **{"Group size": 3, "Process Group Ranks": "[0, 1, 2]"})
    [row] = rows(rank(0, [(0, 500, size)], world=3), rank(1, [(300, 200, size)], world=3))
    assert (row.basis, row.matched, row.transfer_us) == ("seen_ranks", 1, 200)
    # 2 MiB times 2·2/3 are 2,796,202 bytes (rounded down), in 200 µs.
    assert row.bus_bytes == 2_796_202
    assert row.bus_gbs == pytest.approx(13.98101)
    assert row.reason == "ranks are missing: a lower bound"


@pytest.mark.parametrize(
    ("name", "out", "size", "bus"),
    [
        ("allreduce", 1000, 2000, 2000),
        ("_allgather_base", 2000, 4000, 2000),
        ("reduce_scatter_tensor_coalesced", 500, 2000, 1000),
        ("all_to_allv", 1000, 2000, 1000),
        ("broadcast", 1000, 2000, 2000),
        ("send", 0, 2000, 2000),
    ],
)
def test_sizes_by_collective(name: str, out: int, size: int, bus: int) -> None:
    """1,000 elements of two bytes go in; n = 2, so that 2(n-1)/n is 1 and (n-1)/n a half."""
    [row] = rows(rank(0, [(0, 10, message(1000, name=name, out=out))]))
    assert (row.kind, row.message_bytes, row.bus_bytes) == (name.strip("_"), size, bus)


def test_unlike_collectives_are_rows_of_their_own_the_longest_first() -> None:
    document = run(
        rank(
            0,
            [
                (0, 10, message(1000)),
                (100, 50, message(2000)),
                (200, 20, message(1000, name="broadcast")),
                (300, 15, message(1000, dtype="Float")),
                (400, 5, message(1000, **{"Process Group Name": "tp"})),
                (500, 7, message(1000)),
            ],
        )
    )
    found = document.ranks[0].communication
    assert [(r.kind, r.group, r.dtype, r.message_bytes, r.count, r.time_us) for r in found] == [
        ("allreduce", "dp [0, 1]", "bf16", 4000, 1, 50),
        ("broadcast", "dp [0, 1]", "bf16", 2000, 1, 20),
        ("allreduce", "dp [0, 1]", "bf16", 2000, 2, 17),
        ("allreduce", "dp [0, 1]", "fp32", 4000, 1, 15),
        ("allreduce", "tp [0, 1]", "bf16", 2000, 1, 5),
    ]
    assert document.ranks[0].communication_rows == 5


def test_many_sizes_of_one_kind_go_together_by_powers_of_two() -> None:
    """Nine sizes: 2 x 512 to 2 x 520 elements are 1,024 to 1,040 bytes, of [1024, 2048)."""
    many = [(100.0 * i, 10.0, message(512 + i)) for i in range(9)]
    [row] = rows(rank(0, many))
    assert (row.count, row.sizes, row.message_bytes) == (9, 9, 1032)
    assert len(rows(rank(0, many[:8]))) == 8, "eight sizes stand alone"


def test_rates_of_many_sizes_are_medians_of_single_ones() -> None:
    """Sizes 1,024 + 2i bytes in 1 µs each: the median is 1,032 bytes per µs, 1.032 GB/s."""
    [row] = rows(rank(0, [(100.0 * i, 1.0, message(512 + i)) for i in range(9)]))
    assert row.algorithm_gbs == pytest.approx(1.032)


def test_the_table_is_bounded_and_says_what_it_leaves_out() -> None:
    groups = [
        (10.0 * i, 1.0 + i, message(8, **{"Process Group Name": f"g{i}"})) for i in range(MOST_ROWS + 3)
    ]
    document = run(rank(0, groups), rank(1, groups))
    found = document.ranks[0]
    assert (len(found.communication), found.communication_rows) == (MOST_ROWS, MOST_ROWS + 3)
    assert {r.matched for r in found.communication} == {1}


def test_what_is_not_recorded_stays_unknown() -> None:
    [row] = rows(rank(0, [(0, 10, {})]))
    assert (row.kind, row.ranks, row.message_bytes, row.bus_bytes) == ("allreduce", None, None, None)
    assert (row.algorithm_gbs, row.bus_gbs, row.link_fraction) == (None, None, None)
    assert row.reason == "message size unknown"


def test_a_transfer_of_no_time_has_no_rate() -> None:
    size = message(MIB)
    [row] = rows(rank(0, [(0, 100, size)]), rank(1, [(100, 0, size)]))
    assert (row.transfer_us, row.algorithm_gbs, row.link_fraction) == (0, None, None)


def test_over_several_hosts_the_link_is_unknown() -> None:
    size = message(MIB)
    [row] = rows(rank(0, [(0, 100, size)], host="a"), rank(1, [(50, 50, size)], host="b"))
    assert row.bus_gbs is not None
    assert (row.link_gbs, row.link_fraction, row.reason) == (None, None, "crosses hosts: link unknown")


@pytest.mark.parametrize(
    ("world", "devices", "more"),
    [
        (16, 8, {"Group size": 16, "Process Group Ranks": "[0, 1, 2, 3, ...]"}),
        (16, 8, {"Process Group Ranks": "[0, 8]"}),
        (2, 1, {}),
    ],
    ids=["more ranks than devices", "one on each host", "nothing tells"],
)
def test_a_bound_rests_on_no_link_that_the_group_may_leave(world: int, devices: int, more: Event) -> None:
    """50 Mi elements of bf16: memory reads and writes 104,857,600 bytes each, at 0.9 of 3,350 GB/s in
    69.557 µs.  Over 450 GB/s the link would take longer; over a network nobody knows."""
    document = run(rank(0, [(0, 500, message(50 * MIB, **more))], world=world, devices=devices))
    [kernel] = document.ranks[0].kernels
    assert kernel.link_bytes
    assert kernel.roof_side != "link"
    assert kernel.bound_us == pytest.approx(2 * 104_857_600 / (0.9 * 3350e3), abs=0.001)


def test_on_one_host_the_link_bounds_a_collective() -> None:
    """104,857,600 bytes over each link at 382.5 GB/s are 274.138 µs, of 500."""
    [kernel] = run(rank(0, [(0, 500, message(50 * MIB))])).ranks[0].kernels
    assert kernel.bound_us == pytest.approx(104_857_600 / 382.5e3, abs=0.001)
    assert kernel.roof_fraction == pytest.approx(0.548, abs=0.001)
    assert kernel.roof_side == "link"


def test_launches_of_one_row_over_which_the_link_is_not_known_for_all_have_no_bound_by_it() -> None:
    local, across = message(50 * MIB), message(50 * MIB, **{"Process Group Ranks": "[0, 8]"})
    [kernel] = run(rank(0, [(0, 500, local), (1000, 500, across)], world=16)).ranks[0].kernels
    assert (kernel.count, kernel.roof_side) == (2, "memory")


def test_on_one_host_that_hides_its_other_devices_the_names_of_the_hosts_tell() -> None:
    size = message(MIB)
    ranks = [rank(r, [(50 * r, 100, size)], host="a", devices=1) for r in (0, 1)]
    [row] = rows(*ranks)
    assert row.link_gbs == pytest.approx(LINK_GBS)
    [alone] = rows(ranks[0])
    assert alone.link_gbs is None
    assert "may cross hosts" in alone.reason


@pytest.mark.parametrize(
    ("size", "ranks", "world", "devices", "told"),
    [
        (8, "[0, 1, 2, 3, 4, 5, 6, 7]", 8, 8, LOCAL),
        (16, "[0, 1, 2, ...]", 16, 8, ACROSS),
        (2, "[0, 8]", 16, 8, ACROSS),
        (2, "[8, 9]", 16, 8, LOCAL),
        (2, "[8, 9, ...]", 16, 8, UNTOLD),
        (2, None, 16, 8, UNTOLD),
        (2, "[0, 1]", 2, 1, UNTOLD),
        (2, "[0, 1]", None, 0, UNTOLD),
    ],
)
def test_on_one_host(size: int, ranks: str | None, world: int | None, devices: int, told: int) -> None:
    meta = Meta(world_size=world, devices=tuple(DeviceProperties(str(i), "x") for i in range(devices)))
    comm = {"Group size": size} | ({"Process Group Ranks": ranks} if ranks else {})
    assert on_one_host(comm, meta) == told


def test_exposed_time_is_what_nothing_else_runs_beside() -> None:
    """The all-reduce runs from 100 to 300, the kernel until 180: 120 of 200 µs are exposed."""
    args = {"stream": 20, **message(MIB)}
    scene = Recording().kernel("gemm", 0, 10, 170).kernel("ncclDevKernel_AllReduce", 2, 100, 200, **args)
    [row] = scene.rank().communication
    assert (row.time_us, row.exposed_us, row.exposed_pct) == (200, 120, 60)


def test_an_earlier_comparison_leaves_nothing_behind() -> None:
    """The rows of a rank that stands alone again are those of one rank."""
    from rooflight.analysis import combine
    from rooflight.results.rank import analyse_rank
    from rooflight.results.result import decode as result_of
    from rooflight.results.result import encode as bytes_of
    from rooflight.results.stages import Options, Stages

    size = message(MIB)
    ranks = [rank(0, [(0, 500, size)]), rank(1, [(300, 200, size)])]
    results = [result_of(bytes_of(analyse_rank(Stages(t, Options())))) for t in ranks]
    alone = combine(results[:1]).ranks[0].communication[0]
    before = encode(alone)
    assert combine(results).ranks[0].communication[0].basis == "transfer"
    after = combine(results[:1]).ranks[0].communication[0]
    assert encode(after) == before


def test_rows_survive_the_json() -> None:
    document = run(rank(0, [(0, 500, message(50 * MIB))]))
    assert decode(encode(document)).ranks[0].communication == document.ranks[0].communication


@pytest.mark.parametrize(
    ("parts", "size", "expected"),
    [("[1, 1, 1, 5]", 4, 2.5), ("[2, 2]", 2, 1.0), ("[0, 0]", 2, None), ("[1, 2, ...]", 4, None),
     ("[]", 2, None), ("[3]", 1, None), ("[1, -1]", 2, None), ("[1, 2]", 4, None), (None, 2, None),
     ("[1, \ud800]", 2, None), ("[[[[", 2, None), ('["1", 2]', 2, None)],
)  # fmt: skip
def test_skew(parts: str | None, size: int, expected: float | None) -> None:
    """5 of a mean of 2 is 2.5."""
    found = skew({"In split size": parts, "Group size": size})
    assert found == expected if expected is not None else found != found


def test_sizes_of_names_that_are_none() -> None:
    assert message_bytes("gemm", 1, 1) is None
    assert bus_bytes("gemm", 1, 2) is None
    assert bus_bytes("allreduce", 1000, 8) == 1750


def test_medians_of_groups() -> None:
    import numpy as np

    found = medians(np.array([2, 0, 2, 0, 2]), np.array([5, 1, 7, 2, 6]), 3)
    assert found.tolist()[0] == 1.5
    assert np.isnan(found[1])
    assert found.tolist()[2] == 6


# --- contention ----------------------------------------------------------------------------------


def beside(lengths: list[float], alone: list[float], **more: Any) -> Contention | None:
    """A kernel once so often beside an all-reduce, once so often alone, of these lengths in µs."""
    scene, at = Recording(), 0.0
    for i, length in enumerate([*lengths, *alone]):
        scene.op("aten::mul", at, [[1024], [1024]]).kernel("mul_kernel", at + 1, at + 20, length, **more)
        if i < len(lengths):
            scene.kernel("ncclDevKernel_AllReduce", at + 1, at + 20, length, stream=20, **message(MIB))
        at += 1000
    return next(iter(scene.rank().contention), None)


def test_a_kernel_is_slower_beside_communication() -> None:
    """Medians of 10, 12, 14, 16, 18 and of 5, 6, 7, 8, 9: 14 over 7."""
    found = beside([10, 12, 14, 16, 18], [5, 6, 7, 8, 9])
    assert found is not None
    assert (found.overlapped_us, found.overlapped_pct) == (70, 66.67)
    assert (found.overlapped_count, found.alone_count) == (5, 5)
    assert (found.overlapped_p50_us, found.alone_p50_us, found.slowdown) == (14, 7, 2.0)


@pytest.mark.parametrize(("over", "alone"), [(4, 5), (5, 4)])
def test_few_launches_tell_nothing(over: int, alone: int) -> None:
    found = beside([10.0] * over, [5.0] * alone)
    assert found is not None
    assert (found.overlapped_p50_us, found.alone_p50_us, found.slowdown) == (10, 5, None)


def test_launches_of_another_geometry_may_do_another_work() -> None:
    """Without recorded inputs, too: one row then holds work of any size."""
    scene, at = Recording(), 0.0
    for i in range(10):
        scene.op("aten::mul", at, [[8], [8]]).kernel("k", at + 1, at + 20, 10, grid=[1 + i % 2, 1, 1])
        if i < 5:
            scene.kernel("ncclDevKernel_AllReduce", at + 1, at + 20, 10, stream=20)
        at += 1000
    [found] = scene.rank().contention
    assert (found.overlapped_count, found.alone_count, found.slowdown) == (5, 5, None)


def test_without_inputs_launches_may_do_another_work() -> None:
    scene, at = Recording(), 0.0
    for i in range(10):
        scene.kernel("k", at + 1, at + 20, 10)
        if i < 5:
            scene.kernel("ncclDevKernel_AllReduce", at + 1, at + 20, 10, stream=20)
        at += 1000
    [found] = scene.rank().contention
    assert found.slowdown is None


def test_less_than_half_beside_communication_is_neither() -> None:
    """The kernel runs 100 µs, the all-reduce during 40 of them."""
    scene = Recording().kernel("k", 0, 10, 100).kernel("ncclDevKernel_AllReduce", 1, 70, 90, stream=20)
    [found] = scene.rank().contention
    assert (found.overlapped_us, found.overlapped_count, found.alone_count) == (40, 0, 0)


def test_no_communication_no_contention() -> None:
    assert Recording().kernel("k", 0, 10, 100).rank().contention == []


# --- recordings ----------------------------------------------------------------------------------


@pytest.mark.traces
def test_an_all_to_all_of_eight_ranks_by_hand() -> None:
    """Read as plain JSON: of each rank the kernels of the all-to-all with [6144] floats in and out, in order.
    Transfer = last end - last start (the clocks are one host's); S = 4 x 6144 = 24,576 bytes, of which each
    link carries 7/8."""
    files = sorted((traces_dir() / "dlrm_8ranks").glob("*.json"))
    spans = [_kernels_of(json.loads(f.read_text()), [[6144], [6144]]) for f in files]
    assert {len(s) for s in spans} == {2}
    transfers = [max(s[i][1] for s in spans) - max(s[i][0] for s in spans) for i in (0, 1)]
    rates = sorted(24_576 * 7 / 8 / t / 1000 for t in transfers)
    for r in analyze_files(files, jobs=1).document.ranks:
        [row] = [c for c in r.communication if c.message_bytes == 24_576]
        assert (row.kind, row.ranks, row.matched, row.basis) == ("alltoall_base", 8, 2, "transfer")
        assert row.transfer_us == sum(transfers)
        assert row.bus_gbs == pytest.approx(sum(rates) / 2)
        assert row.link_fraction == pytest.approx(sum(rates) / 2 / (150 * 0.85))


def _kernels_of(trace: Event, dims: list[list[int]]) -> list[tuple[int, int]]:
    """Start and end of the NCCL kernels whose launch lies in an all-to-all with these dims."""
    events = trace["traceEvents"]
    ops = [
        e
        for e in events
        if e.get("name") == "c10d::alltoall_base_" and e["args"].get("Input Dims", [])[:2] == dims
    ]
    launches = {
        e["args"]["correlation"]: e
        for e in events
        if e.get("cat") == "cuda_runtime" and "correlation" in e["args"]
    }
    found = []
    for e in events:
        if e.get("cat") == "kernel" and "nccl" in e["name"].lower():
            launch = launches[e["args"]["correlation"]]
            if any(o["tid"] == launch["tid"] and o["ts"] <= launch["ts"] < o["ts"] + o["dur"] for o in ops):
                found.append((e["ts"], e["ts"] + e["dur"]))
    return sorted(found)


@pytest.mark.traces
def test_an_all_reduce_of_one_rank_by_hand() -> None:
    """7,875,584 floats are 31,502,336 bytes, in a group of two as many bus bytes, over the median of three
    kernels: 31,502,336 B / 2,673,916 ns = 11.78 GB/s of the A100's 300 x 0.85."""
    [r] = analyze(read(traces_dir() / "hta" / "a100_nccl_rank0of2.json.gz")).document.ranks
    [row] = [c for c in r.communication if c.message_bytes == 31_502_336]
    assert (row.kind, row.count, row.ranks, row.basis) == ("allreduce", 3, 2, "duration")
    assert row.p50_us == 2673.916
    assert row.bus_gbs == pytest.approx(31_502_336 / 2_673_916)
    assert row.link_fraction == pytest.approx(31_502_336 / 2_673_916 / 255)
    assert sum(c.count for c in r.communication) == 21, "five all-reduces and two broadcasts in each of three"
