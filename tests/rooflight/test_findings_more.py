"""More rules: each with a recording that it sees, one that it nearly sees, and its saving by arithmetic.

Roofs used below.  H100 SXM: memory 3.35 TB/s x 0.9 = 3.015 TB/s, 132 SMs.  All times are us.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.analysis import combine
from rooflight.findings import Facts
from rooflight.findings.rules.materialised_attention import materialised_attention
from rooflight.findings.rules.unfused_optimizer import unfused_optimizer
from rooflight.protocol import Finding
from rooflight.results.rank import analyse_rank
from rooflight.results.stages import Options, Stages
from rooflight.trace.timeline import Timeline
from tests.recording import Recording
from tests.shared import traces_dir

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
COPY = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(float)>"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128"
LOOKUP = "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int>"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
BF16 = "c10::BFloat16"


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


def ops_of(scene: Recording, finding: Finding) -> list[str | None]:
    """The ops of the kernels that a finding points at."""
    kernels = scene.rank().kernels
    return [kernels[i].op for e in finding.evidence for i in e.kernels]


def memory_us(size: int) -> float:
    """So many bytes at 3.015 TB/s."""
    return size / 3.015e12 * 1e6


# --- underfilled-grid ----------------------------------------------------------------------------


def grid_of(blocks: int, dur: float = 900) -> Recording:
    """An add of 1,048,576 floats in so many blocks, and nothing else until 1000."""
    shape = {"grid": [blocks, 1, 1], "block": [256, 1, 1], "registers per thread": 32, "shared memory": 0}
    scene = Recording().step(0, 0, 1000).op("aten::add", 0, [[1 << 20], [1 << 20], []])
    return scene.kernel(ADD, 1, 2, dur, **shape)


def test_underfilled_grid() -> None:
    """131 blocks for 132 SMs.  3 x 4 MiB take 4.17 us of the memory: 900 less that can go."""
    found = grid_of(131).findings()["underfilled-grid"]
    assert found.saving_us == pytest.approx(900 - memory_us(3 * 4 * 1_048_576), abs=0.01)
    assert shown(found) == "0.9 ms per step, 90 %"


@pytest.mark.parametrize(("blocks", "dur"), [(132, 900.0), (131, 6.9)])
def test_no_underfilled_grid(blocks: int, dur: float) -> None:
    """A block for each SM; one of 6.9 us is at 4.17 / 6.9 = 60.5 % of its roof."""
    assert "underfilled-grid" not in grid_of(blocks, dur).findings()


# --- embedding-bound -----------------------------------------------------------------------------


def looked_up(op: str, dur: float) -> Recording:
    """A lookup by the kernel of index_select inside another op, then a product until 1000."""
    scene = Recording().step(0, 0, 1000).host(op, 0, 9)
    scene.host("aten::index_select", 1, 6).kernel(LOOKUP, 2, 4, dur)
    return scene.kernel("gemm", 10, 4 + dur, 990 - dur)


def test_embedding_bound() -> None:
    """200 of 1000 are a fifth; what is looked up twice nobody knows."""
    scene = looked_up("aten::embedding", 200)
    found = scene.findings()["embedding-bound"]
    assert found.saving_us is None
    assert shown(found) == "0.2 ms per step, 20 %"
    assert ops_of(scene, found) == ["aten::index_select"]


def test_the_gradient_of_a_lookup_is_told_by_its_kernel() -> None:
    name = "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, long>"
    scene = Recording().step(0, 0, 1000).kernel(name, 0, 1, 300).kernel("gemm", 2, 301, 699)
    assert shown(scene.findings()["embedding-bound"]) == "0.3 ms per step, 30 %"


@pytest.mark.parametrize(("op", "dur"), [("aten::embedding", 199.0), ("aten::gather_rows", 200.0)])
def test_no_embedding_bound(op: str, dur: float) -> None:
    """Too short; an index_select of something else."""
    assert "embedding-bound" not in looked_up(op, dur).findings()


# --- few-rows ------------------------------------------------------------------------------------


def decoded(rows: int, dur: float, wall: float = 1000, op: str = "aten::mm") -> Recording:
    """[rows, 8192] x [8192, 8192] in bf16: 134,217,728 B of weights take 44.5 us of the memory."""
    left, right = [rows, 8192], [8192, 8192]
    dims: list[Any] = {
        "aten::mm": [left, right],
        "aten::addmm": [[8192], left, right],
        "aten::bmm": [[1, *left], [1, *right]],
    }[op]
    scene = Recording().step(0, 0, wall).op(op, 0, dims, BF16).kernel(GEMM, 1, 2, dur)
    return scene.kernel("other", 3, 2 + dur, wall - 2 - dur)


@pytest.mark.parametrize("op", ["aten::mm", "aten::addmm"])
def test_few_rows(op: str) -> None:
    """50 us: 44.5 are 89 % of the memory's roof; 50 of 150 are a third of the time."""
    scene = decoded(4, 50, wall=150, op=op)
    found = scene.findings()["few-rows"]
    assert found.saving_us is None
    assert shown(found) == "0.05 ms per step, 33 %"
    assert ops_of(scene, found) == [op]


def test_a_vector_is_one_row() -> None:
    name = "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, float>"
    scene = Recording().step(0, 0, 150).op("aten::mv", 0, [[8192, 8192], [8192]], BF16)
    scene.kernel(name, 1, 2, 50).kernel("other", 3, 52, 98)
    assert ops_of(scene, scene.findings()["few-rows"]) == ["aten::mv"]


@pytest.mark.parametrize(
    ("rows", "dur", "wall", "op"),
    [
        (5, 50.0, 150.0, "aten::mm"),  # more than four rows
        (4, 50.0, 170.0, "aten::mm"),  # 29 % of the time
        (4, 90.0, 150.0, "aten::mm"),  # 44.5 of 90 us: half of the memory's roof
        (4, 50.0, 150.0, "aten::bmm"),  # each matrix is read for its own rows only
    ],
)
def test_no_few_rows(rows: int, dur: float, wall: float, op: str) -> None:
    assert "few-rows" not in decoded(rows, dur, wall, op).findings()


# --- contiguous-copies ---------------------------------------------------------------------------


def copied(*around: str, types: tuple[str, str] = ("float", "float")) -> Recording:
    """A copy of 70 us by aten::copy_ inside these ops, the outermost first, then a product."""
    scene = Recording().step(0, 0, 1000)
    for i, op in enumerate(around):
        scene.host(op, i, 20 - 2 * i)
    scene.host("aten::copy_", 5, 5, **{"Input Dims": [[4096], [4096]], "Input type": list(types)})
    return scene.kernel(COPY, 6, 8, 70).kernel("gemm", 30, 78, 900)


@pytest.mark.parametrize("around", [("aten::contiguous", "aten::clone"), ("aten::reshape", "aten::clone")])
def test_contiguous_copies(around: tuple[str, ...]) -> None:
    found = copied(*around).findings()["contiguous-copies"]
    assert found.saving_us == 70
    assert shown(found) == "1 per step, 0.07 ms per step, 7 %"


def test_other_copies_ask_for_no_order() -> None:
    """One that the program wrote itself, one to another type, and one in the order of the file alone."""
    assert "contiguous-copies" not in copied("aten::to", "aten::_to_copy").findings()
    assert "contiguous-copies" not in copied("aten::clone", types=(BF16, "float")).findings()
    assert "contiguous-copies" not in copied().findings()


# --- small-collectives ---------------------------------------------------------------------------


COUNTS = ("In msg nelems", "Out msg nelems")


def reduced(n: int, elements: int, steps: int = 1, **more: Any) -> Recording:
    """``n`` all_reduces of so many floats in each step of 1000, 10 us each, 5 of them beside a kernel."""
    scene = Recording()
    for s in range(steps):
        at = 1000.0 * s
        scene.step(s, at, 1000)
        for i in range(n):
            message = {"Collective name": "allreduce", "dtype": "Float", "Group size": 8}
            message |= dict.fromkeys(COUNTS, elements) | more
            begin = at + 20 * i + 10
            scene.kernel(REDUCE, begin, begin, 10, stream=20, **message)
            scene.kernel("gemm", begin + 1, begin + 5, 10)
    return scene


def test_small_collectives() -> None:
    """Eight of 262,143 floats, 4 B under 1 MiB; each runs 5 us alone: 40 of each step of 1000."""
    found = reduced(8, (1 << 18) - 1, steps=2).findings()["small-collectives"]
    assert found.saving_us == 40
    assert shown(found) == "8 per step, the largest of 1,048,572 bytes; 0.04 ms per step, 4 %, only they run"


def test_each_launch_has_its_own_message() -> None:
    """Two of 4 MiB by the same kernel, after eight of 4 KiB."""
    scene = reduced(8, 1 << 10)
    message = {"Collective name": "allreduce", "dtype": "Float", "Group size": 8}
    for at in (500, 600):
        scene.kernel(REDUCE, at, at, 50, stream=20, **message | dict.fromkeys(COUNTS, 1 << 20))
    found = scene.findings()["small-collectives"]
    assert shown(found) == "8 per step, the largest of 4,096 bytes; 0.04 ms per step, 4 %, only they run"


@pytest.mark.parametrize(
    "scene",
    [
        reduced(8, 1 << 18),  # 1 MiB each
        reduced(7, 1 << 10),  # seven
        reduced(8, 0),  # barriers carry nothing
        reduced(8, 1 << 10, dtype="unheard of"),  # of unknown size
    ],
    ids=["large", "few", "empty", "unknown"],
)
def test_no_small_collectives(scene: Recording) -> None:
    assert "exposed-communication" in scene.findings()
    assert "small-collectives" not in scene.findings()


# --- materialised-attention ----------------------------------------------------------------------

SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>"
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"
SCORES = [8, 1024, 1024]
FIRST = [[8, 1024, 64], [8, 64, 1024]]
LAST = [SCORES, [8, 1024, 64]]


def attention(
    *,
    between: str = ADD,
    softmax: tuple[str, list[int]] = ("aten::_softmax", SCORES),
    last: list[list[int]] = LAST,
    product: float = 100,
    stream: int = 7,
) -> Recording:
    """Two products of so many us in bf16; between them a scale of 40 and a softmax of 50."""
    scene = Recording().step(0, 0, 1000)
    scene.op("aten::bmm", 0, FIRST, BF16).kernel(GEMM, 1, 2, product)
    scene.op("aten::mul", 10, [SCORES, []], BF16).kernel(between, 11, 2 + product, 40)
    scene.op(softmax[0], 20, [softmax[1], [], []], BF16).kernel(SOFTMAX, 21, 42 + product, 50)
    scene.op("aten::bmm", 30, last, BF16).kernel(GEMM, 31, 92 + product, product, stream=stream)
    return scene.kernel("other", 40, 200 + 2 * product, 100)


@pytest.mark.parametrize("op", ["aten::_softmax", "aten::_softmax_backward_data"])
def test_materialised_attention(op: str) -> None:
    """Scale and softmax go, 90; the scores, 8 x 1024 x 1024 of 2 B, are not written, not read: 5.56 each."""
    scene = attention(softmax=(op, SCORES))
    found = scene.findings()["materialised-attention"]
    assert found.saving_us == pytest.approx(90 + 2 * memory_us(2 * 8 * 1024 * 1024), abs=0.01)
    assert (
        shown(found) == f"aten::bmm → {op} [8, 1024, 1024] → aten::bmm: 1 per step, up to 0.101 ms per step"
    )
    assert set(ops_of(scene, found)) == {"aten::bmm", op}


def test_products_still_take_the_time_of_their_flops() -> None:
    """Each product has 2 x 8 x 1024 x 1024 x 64 FLOPs: 1.36 us of 989.4 x 0.796 TFLOP/s.  Of 5 us no more
    than the rest can go, though the scores would take 5.56."""
    rest = 5 - 1_073_741_824 / (989.4e12 * 0.796) * 1e6
    found = attention(product=5).findings()["materialised-attention"]
    assert found.saving_us == pytest.approx(90 + 2 * rest, abs=0.01)


@pytest.mark.parametrize(
    "scene",
    [
        attention(softmax=("aten::_softmax", [8, 1024, 512])),  # of something else
        attention(last=[[8, 1024, 512], [8, 512, 64]]),  # the second product takes something else
        attention(between=NORM),  # not only elementwise kernels in between
        attention(stream=9),  # the second product is on another stream
    ],
    ids=["softmax", "product", "between", "stream"],
)
def test_no_materialised_attention(scene: Recording) -> None:
    assert "materialised-attention" not in scene.findings()


# --- unfused-optimizer ---------------------------------------------------------------------------

PARAMETERS = 1 << 20


def updated(
    n: int, *, name: str = "Optimizer.step#Adam.step", last: str = "aten::addcdiv_", shapes: bool = True
) -> Recording:
    """``n`` kernels of 12 us over 1,048,576 floats each, the last of them by another op."""
    scene = Recording().step(0, 0, 1000).host(name, 0, 500, cat="user_annotation")
    whole = [PARAMETERS]
    for i in range(n):
        op, dims = ("aten::mul_", [whole, []]) if i < n - 1 else (last, [whole, whole, whole, []])
        scene.op(op, 10 * i, dims if shapes else []).kernel(ADD, 10 * i + 1, 12 * i + 2, 12)
    return scene.kernel("other", 501, 502, 498)


def test_unfused_adam() -> None:
    """20 kernels, 240 us.  addcdiv_ writes 4 MiB: the parameters.  The fused kernel moves 7 x 4 MiB: 9.74."""
    found = updated(20).findings()["unfused-optimizer"]
    assert found.saving_us == pytest.approx(240 - memory_us(7 * 4 * PARAMETERS), abs=0.01)
    assert "7 x 4,194,304 bytes" in found.assumption
    assert shown(found) == "20 kernels per call of the optimizer, 0.24 ms per step, 24 %"


def test_other_optimizers_save_what_is_above_the_bytes_of_their_kernels() -> None:
    """19 mul_ read and write 4 MiB: 2.78 us.  addcdiv_ reads three times 4 MiB and writes 4: 5.56 us."""
    found = updated(20, name="Optimizer.step#RMSprop.step").findings()["unfused-optimizer"]
    bytes_us = 19 * memory_us(2 * 4 * PARAMETERS) + memory_us(4 * 4 * PARAMETERS)
    assert found.saving_us == pytest.approx(240 - bytes_us, abs=0.01)


def test_without_sizes_the_kernels_are_counted() -> None:
    found = updated(20, shapes=False).findings()["unfused-optimizer"]
    assert found.saving_us is None
    assert shown(found) == "20 kernels per call of the optimizer, 0.24 ms per step, 24 %"


@pytest.mark.parametrize(
    "scene",
    [updated(19), updated(20, last="aten::_fused_adam_"), updated(20, name="Loss.step#Adam.step")],
    ids=["few", "fused", "no optimizer"],
)
def test_no_unfused_optimizer(scene: Recording) -> None:
    assert "unfused-optimizer" not in scene.findings()


# --- graph-breaks --------------------------------------------------------------------------------

REGION = "Torch-Compiled Region: "
GRAPH = "## Call CompiledFxGraph f0123 ##"


def compiled(first: str, second: str, *, eager: float, nested: bool = True, graphs: bool = True) -> Recording:
    """A region of 400 and another: inside it from 200 to 300, or after it from 600 to 700.  Each has its
    graph in its first 50.  A single op begins at ``eager``, its kernel takes 80."""
    scene, at = Recording().step(0, 0, 1000), 200 if nested else 600
    scene.host(REGION + first, 0, 400).host(REGION + second, at, 100)
    for begin in (0, at):
        if graphs:
            scene.host(GRAPH, begin + 1, 49)
        scene.host("triton_poi_fused_add_0", begin + 2, 20).kernel(
            "triton_poi_fused_add_0", begin + 3, begin + 5, 30
        )
    return scene.op("aten::mul", eager, [[64], []]).kernel(ADD, eager + 1, eager + 3, 80)


@pytest.mark.parametrize(
    "scene",
    [compiled("0/0", "1/0", eager=60), compiled("0/0", "1/0", eager=450, nested=False)],
    ids=["inside", "between"],
)
def test_graph_breaks(scene: Recording) -> None:
    """After a break the next piece runs inside the region of the one before; pieces of a program's own stand
    one after the other."""
    found = scene.findings()["graph-breaks"]
    assert found.saving_us is None
    assert shown(found) == (
        "regions of 2 compiled functions: 2 per step; kernels of single ops between or inside them: "
        "1 per step, 0.08 ms per step, 8 %"
    )
    assert ops_of(scene, found) == ["aten::mul"]


@pytest.mark.parametrize(
    "scene",
    [
        compiled("0/0", "1/0", eager=10),  # inside the graph: a kernel that the compiler calls
        compiled("0/0", "1/0", eager=60, graphs=False),  # inside, and no graph is marked
        compiled("0/0", "1/0", eager=800, nested=False),  # after the last region
        compiled("0/0", "0/0", eager=450, nested=False),  # one function, called twice
        compiled("0/1", "0/1", eager=450, nested=False),  # its second compilation, for sizes that change
    ],
    ids=["in graph", "no graphs", "after", "one function", "second compilation"],
)
def test_no_graph_breaks(scene: Recording) -> None:
    assert "graph-breaks" not in scene.findings()


def test_regions_of_two_steps_have_nothing_between_them() -> None:
    scene = compiled("0/0", "1/0", eager=800, nested=False).step(1, 1000, 1000)
    scene.host(f"{REGION}0/0", 1000, 100).kernel("other", 1001, 1002, 500)
    assert "graph-breaks" not in scene.findings()


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ("0/2", "0/2", "one function was compiled 3 times or more; what ran: 0/2"),
        ("7/0", "7/1", "one function was compiled 2 times or more; what ran: 7/0, 7/1"),
    ],
)
def test_compiled_again(first: str, second: str, text: str) -> None:
    assert shown(compiled(first, second, eager=800, nested=False).findings()["graph-breaks"]) == text


# --- straggler -----------------------------------------------------------------------------------


def arrivals(*late: int) -> list[Timeline]:
    """Two ranks and a collective in every 200 us of a step of 1000, which ends at the same time for both; the
    late one of each arrives 100 after the other and takes 50."""
    ranks = []
    for number in (0, 1):
        scene = Recording().step(1, 0, 1000)
        for i, who in enumerate(late):
            behind = 100 * (who == number)
            group = {
                "Collective name": "allreduce",
                "Process Group Name": "dp",
                "Process Group Ranks": "[0, 1]",
            }
            begin = 200 * i + behind
            scene.kernel(REDUCE, begin, begin, 150 - behind, stream=20, **group)
        ranks.append(scene.timeline(distributedInfo={"rank": number, "world_size": 2}))
    return ranks


def stragglers(*late: int) -> list[Finding | None]:
    """The finding of each rank."""
    document = analyze(arrivals(*late)).document
    return [next((f for f in r.findings if f.code == "straggler"), None) for r in document.ranks]


def test_straggler() -> None:
    """Rank 1 is late three times of four: rank 0 waits 3 x 100 of 1000.  Rank 1 waits for nobody else's sake:
    its own 100 are no finding."""
    waiting, late = stragglers(1, 1, 0, 1)
    assert waiting is not None
    assert waiting.saving_us == 300
    assert shown(waiting) == "rank 1 came last in 3 of 4 collectives; 0.3 ms per step, 30 %, wait"
    assert waiting.evidence[0].steps == [1]
    assert late is None


@pytest.mark.parametrize("late", [(1, 1, 0, 0), (1, 1, 1)], ids=["half", "few"])
def test_no_straggler(late: tuple[int, ...]) -> None:
    assert stragglers(*late) == [None, None]


def test_ranks_that_come_together_are_not_late() -> None:
    """Three all_reduces begin together, for two rank 1 is 100 late: 2 of 5 are no straggler, though rank 0 is
    the lowest of those that came last in the other three."""
    assert stragglers(2, 2, 2, 1, 1) == [None, None]


def test_only_what_is_waited_for_the_straggler_would_go() -> None:
    """Rank 0 waits three times for rank 1 and rank 1 twice for rank 0: each saves its own."""
    waiting, late = stragglers(1, 1, 1, 0, 0)
    assert waiting is not None
    assert waiting.saving_us == 300
    assert late is None, "two of five"


def test_a_run_that_is_compared_again_says_it_once_and_a_rank_alone_does_not() -> None:
    results = [analyse_rank(Stages(t, Options())) for t in arrivals(1, 1, 1, 1)]
    codes = [
        [f.code for f in combine(several).ranks[0].findings] for several in (results, results, results[:1])
    ]
    assert [found.count("straggler") for found in codes] == [1, 1, 0]


# --- what holds for all ------------------------------------------------------------------------------


def test_launches_of_one_group_that_differ_in_size_are_compared_in_total() -> None:
    """Adds without an op, their sizes told by the grid: 128 threads x 4 floats a block.  Twice 512 blocks,
    262,144 floats, 3 MiB in 4 us: tiny; once 32,768 blocks, 192 MiB in 100 us.  108 us less the time of
    198 MiB can go; the median's share of 108 would be twice as much."""
    scene = Recording().step(0, 0, 108)
    shape = {"block": [128, 1, 1], "registers per thread": 32, "shared memory": 0}
    for i, (at, blocks, dur) in enumerate([(0, 512, 4), (4, 512, 4), (8, 32_768, 100)]):
        scene.kernel(f"{ADD[:-1]}, at::detail::Array<char*, 3>>", i, at, dur, grid=[blocks, 1, 1], **shape)
    found = scene.findings()["tiny-kernels"]
    assert found.saving_us == pytest.approx(108 - memory_us(198 << 20), abs=0.01)


SCENES = {
    "underfilled-grid": grid_of(131),
    "embedding-bound": looked_up("aten::embedding", 200),
    "few-rows": decoded(4, 50, wall=150),
    "contiguous-copies": copied("aten::contiguous", "aten::clone"),
    "small-collectives": reduced(8, 1 << 10, steps=2),
    "materialised-attention": attention(),
    "unfused-optimizer": updated(20),
    "graph-breaks": compiled("0/0", "1/2", eager=60),
}


@pytest.mark.parametrize("code", SCENES)
def test_the_order_of_the_file_changes_nothing(code: str) -> None:
    found = SCENES[code].findings()
    assert code in found
    for seed in range(5):
        assert SCENES[code].shuffled(seed).findings() == found


# --- shared traces -----------------------------------------------------------------------------------


def of_trace(trace: str) -> Any:
    return analyze(read(Path(traces_dir()) / trace)).document.ranks[0]


@pytest.mark.traces
@pytest.mark.parametrize(
    ("trace", "codes"),
    [
        ("pairs/h100/Falconsai_nsfw_image_detection__1016002.json.gz", {"underfilled-grid"}),
        ("pairs/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", {"contiguous-copies"}),
    ],
)
def test_rules_that_a_real_trace_shows(trace: str, codes: set[str]) -> None:
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
