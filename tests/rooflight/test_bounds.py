"""Lower bounds against the arithmetic of DEFINITIONS §15."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight.protocol import Ceiling, Roofs
from rooflight.roofline.bounds import Bound, Ceilings, Work, bound, compute_ceiling, lacks_roof
from rooflight.roofline.columns import Works, least
from rooflight.roofline.speed import KernelTime, Limit, SpeedOfLight, attainable_fraction

# Round numbers: 100 TFLOP/s fp16 (datasheet 125), 10 fp32, 800 GB/s (datasheet 1000), link 20 GB/s.
ROOFS = Roofs(
    gpu_id="round",
    compute={"fp16": Ceiling(125e12, 100e12), "tf32": Ceiling(60e12, 50e12)},
    vector={"fp32": Ceiling(12e12, 10e12)},
    memory=Ceiling(1000e9, 800e9),
    link=Ceiling(25e9, 20e9),
)


def work(flops=None, size=None, link=None, dtype="fp16", matrix=True, **kw) -> Work:
    return Work(flops=flops, bytes=size, link_bytes=link, dtype=dtype, matrix=matrix, **kw)


def test_each_bound_is_work_over_its_practical_ceiling_and_the_largest_counts():
    b = bound(work(2e9, 4e6, 1e5), ROOFS)
    assert b.compute_ns == pytest.approx(20_000)  # 2e9 / 100e12 s = 20 us
    assert b.memory_ns == pytest.approx(5_000)  # 4e6 / 800e9 s = 5 us
    assert b.link_ns == pytest.approx(5_000)  # 1e5 / 20e9 s = 5 us
    assert b.bound_ns == pytest.approx(20_000)
    assert b.ai == pytest.approx(500)  # 2e9 / 4e6
    assert b.ridge == pytest.approx(125)  # 100e12 / 800e9
    assert b.side == "compute"
    assert b.peak_known


def test_the_ridge_itself_lies_on_the_compute_side():
    assert bound(work(125e6, 1e6), ROOFS).side == "compute"  # AI 125 = ridge
    assert bound(work(124e6, 1e6), ROOFS).side == "memory"


def test_the_practical_ridge_decides_not_the_datasheet_one():
    # datasheet 125e12 / 500e9 = 250, practical 100e12 / 200e9 = 500; AI 300 lies between
    roofs = Roofs(compute=ROOFS.compute, memory=Ceiling(500e9, 200e9))
    assert bound(work(300e6, 1e6), roofs).side == "memory"


def test_no_flops_is_known_work_and_no_type_is_needed_for_it():
    b = bound(work(0, 8e6, dtype=None, matrix=False), ROOFS)
    assert (b.compute_ns, b.ai, b.side) == (0.0, 0.0, "memory")
    assert b.bound_ns == pytest.approx(10_000)  # 8e6 / 800e9
    assert b.peak_known


def test_unknown_stays_unknown():
    nothing = bound(work(), ROOFS)
    assert (nothing.compute_ns, nothing.memory_ns, nothing.bound_ns, nothing.side) == (None,) * 4
    assert nothing.peak_known, "no work is known, so no roof is missing"
    no_type = bound(work(1e9, 1e6, dtype=None), ROOFS)
    assert no_type.compute_ns is None
    assert no_type.memory_ns == pytest.approx(1_250)  # 1e6 / 800e9
    assert no_type.side is None, "AI is known and the ridge is not"
    assert no_type.ai == 1000
    assert not no_type.peak_known


def test_a_device_without_roofs_bounds_nothing():
    b = bound(work(1e9, 1e6, 1e3), Roofs())
    assert b.bound_ns is None
    assert not b.peak_known
    assert not b.above_datasheet(1.0)


def test_work_of_nothing_still_needs_a_memory_roof_to_be_judged():
    """An op on an uncalibrated CPU that neither computes nor moves anything is unknown, not latency."""
    b = bound(work(0, 0, dtype=None, matrix=False), Roofs())
    assert (b.compute_ns, b.memory_ns) == (0.0, None)
    assert b.peak_known, "nothing is known that a missing roof would keep from being bounded"
    assert bound(work(0, 0, dtype=None, matrix=False), ROOFS).memory_ns == 0.0


@pytest.mark.parametrize("broken", [0.0, -1.0, float("nan"), float("inf")])
def test_a_ceiling_that_is_no_rate_is_no_ceiling(broken):
    roofs = Roofs(compute={"fp16": Ceiling(broken, broken)}, memory=Ceiling(broken, broken))
    b = bound(work(1e9, 1e6), roofs)
    assert b.bound_ns is None
    assert not b.above_datasheet(1.0)


def test_only_the_flops_or_only_the_bytes_give_no_side():
    assert bound(work(1e9), ROOFS).side is None
    assert bound(work(None, 1e6), ROOFS).side is None


def test_a_copy_over_the_link_lies_under_the_link():
    b = bound(work(0, 1e6, 1e6, dtype=None, matrix=False), ROOFS)
    # 1e6 / 20e9 = 50 us over the link, 1e6 / 800e9 = 1.25 us in memory
    assert b.side == "link"
    assert b.bound_ns == pytest.approx(50_000)


@pytest.mark.parametrize(
    ("dtype", "matrix", "practical"),
    [
        ("fp16", True, 100e12),
        ("tf32", True, 50e12),
        ("fp32", True, 10e12),  # no fp32 matrix unit: the vector units do it
        ("bf16", True, None),  # as on a V100, whose bf16 peak does not exist; fp16 is no stand-in
        ("fp8", True, None),
        ("fp32", False, 10e12),
        ("fp16", False, 10e12),  # half-precision elementwise computes in fp32
        ("bf16", False, 10e12),
        ("fp64", False, None),
        ("int8", False, None),
        (None, True, None),
        (None, False, None),
    ],
)
def test_the_compute_roof_is_that_of_the_exact_type(dtype, matrix, practical):
    roof = compute_ceiling(work(1.0, dtype=dtype, matrix=matrix), ROOFS)
    assert (roof.practical if roof else None) == practical


def test_a_vector_roof_of_its_own_comes_before_fp32():
    roofs = Roofs(vector={"fp16": Ceiling(31e12, 28e12), "fp32": Ceiling(15e12, 14e12)})
    roof = compute_ceiling(work(1.0, dtype="fp16", matrix=False), roofs)
    assert roof is not None
    assert roof.practical == 28e12


def test_fp32_matrix_math_is_assumed_only_where_tf32_exists_and_no_name_tells():
    assert bound(work(1e9, 1e6, dtype="fp32"), ROOFS).math_type_assumed
    assert not bound(work(1e9, 1e6, dtype="fp32", math_known=True), ROOFS).math_type_assumed
    assert not bound(work(1e9, 1e6, dtype="tf32"), ROOFS).math_type_assumed
    assert not bound(work(1e9, 1e6, dtype="fp32", matrix=False), ROOFS).math_type_assumed
    v100 = Roofs(compute={"fp16": Ceiling(125e12, 100e12)}, vector=ROOFS.vector, memory=ROOFS.memory)
    assert not bound(work(1e9, 1e6, dtype="fp32"), v100).math_type_assumed


def test_above_the_datasheet_is_not_above_the_practical_roof():
    b = bound(work(125e6, 1e3), ROOFS)  # 1 us at 125 TFLOP/s, 1.25 us at 100
    assert not b.above_datasheet(1_200)
    assert not b.above_datasheet(1_000.001)
    assert b.above_datasheet(999)
    assert not b.above_datasheet(0), "a launch without a duration has no rate"
    by_bytes = bound(work(0, 1e6), ROOFS)  # 1 us at 1000 GB/s
    assert by_bytes.above_datasheet(999)
    assert not by_bytes.above_datasheet(1_001)


amounts = st.none() | st.floats(0, 1e18)
rates = st.floats(1e6, 1e16)


@given(amounts, amounts, amounts, rates, rates, rates, st.floats(1, 1e3))
def test_a_faster_device_never_raises_a_bound(flops, size, link, p, w, n, faster):
    def device(k: float) -> Roofs:
        return Roofs(
            compute={"fp16": Ceiling(p * k, p * k)}, memory=Ceiling(w * k, w * k), link=Ceiling(n * k, n * k)
        )

    slow, fast = bound(work(flops, size, link), device(1)), bound(work(flops, size, link), device(faster))
    assert (slow.bound_ns is None) == (fast.bound_ns is None)
    for name in ("compute_ns", "memory_ns", "link_ns", "bound_ns"):
        a, b = getattr(slow, name), getattr(fast, name)
        assert a is None or b <= a


@given(amounts, amounts, rates, rates)
def test_the_side_is_where_the_larger_of_both_bounds_is(flops, size, p, w):
    b = bound(work(flops, size), Roofs(compute={"fp16": Ceiling(p, p)}, memory=Ceiling(w, w)))
    if b.side is None:
        assert flops is None or not size
        return
    other = b.memory_ns if b.side == "compute" else b.compute_ns
    assert b.bound_ns is not None
    assert other is not None
    assert b.bound_ns >= other * (1 - 1e-12)


def kernel_time(rows: list[tuple[int, float, float | None, bool]]) -> KernelTime:
    """Pieces one after the other, each of a kernel of its own."""
    border = np.cumsum([0, *(r[0] for r in rows)])
    pieces = np.column_stack((border[:-1], border[1:]))
    return KernelTime(pieces, np.arange(len(rows)), [Limit(*r[1:]) for r in rows])


@given(
    st.lists(
        st.tuples(st.integers(0, 10**12), st.floats(0, 1e9), st.none() | st.floats(0, 1e9), st.booleans())
    ),
    st.integers(0, 10**12),
)
def test_bound_attainable_and_kernel_time_are_in_order(rows, until):
    whole, first = kernel_time(rows).within(np.array([0, 0]), np.array([1 << 62, until]))
    total = sum(r[0] for r in rows)
    assert (whole.kernel_ns, first.kernel_ns) == (total, min(until, total))
    for s in (whole, first):
        assert 0 <= s.bound_ns <= s.attainable_ns <= s.kernel_ns


def test_speed_of_light_scales_each_instant_by_its_group():
    """Over all: 1000 x 25/100 = 250; 400, above its roof: min(1, 2.5) = 1; 300 of unknown bound and 200 of
    which only one resource is known: all of it attainable, none of it bound.
    From 500 to 1500: half of the first, 125; 400; 100 of the third."""
    time = kernel_time(
        [(1000, 100, 25, True), (400, 100, 250, True), (300, 100, None, True), (200, 100, 10, False)]
    )
    whole, middle = time.within(np.array([0, 500]), np.array([1900, 1500]))
    assert whole == SpeedOfLight(1900, 250 + 400 + 300 + 200, 250 + 400)
    assert middle == SpeedOfLight(500 + 400 + 100, 125 + 400 + 100, 125 + 400)


def test_the_attainable_fraction_of_no_time_is_unknown():
    assert attainable_fraction(Limit(0, 10)) is None
    assert attainable_fraction(Limit(10, None)) is None
    assert attainable_fraction(Limit(10, 4)) == 0.4
    assert attainable_fraction(Limit(10, 4, known=False)) is None


def test_a_bound_of_nothing_is_none():
    assert Bound().bound_ns is None


def test_many_pieces_of_work_have_the_bound_of_each_alone() -> None:
    """One kind of work looks its roofs up once; another type, matrix or vector, and PCIe are other kinds."""
    many = [
        work(1e9, 1e6),
        work(2e9, 1e6),
        work(1e9, 1e6, dtype="fp32"),
        work(1e9, 1e6, matrix=False),
        work(None, 1e6, 1e6),
        work(None, 1e6, 1e6, over_pcie=True),
        work(0, None, dtype=None, matrix=False),
    ]
    ceilings = Ceilings(ROOFS)
    assert [ceilings.bound(w) for w in many] == [bound(w, ROOFS) for w in many]


AMOUNTS = st.one_of(st.none(), st.just(0.0), st.floats(1.0, 1e15))
WORKS = st.builds(
    Work,
    AMOUNTS,
    AMOUNTS,
    AMOUNTS,
    dtype=st.sampled_from((None, "fp16", "fp32", "fp8", "int64")),
    matrix=st.booleans(),
    over_pcie=st.booleans(),
    link_known=st.booleans(),
)


@given(st.lists(WORKS, max_size=8), st.sampled_from((ROOFS, Roofs(memory=ROOFS.memory), Roofs())))
def test_work_in_columns_has_the_bound_of_each_piece_alone(many: list[Work], roofs: Roofs) -> None:
    """To the last digit; here every piece is a kind of its own, of which there may be more than are used."""
    flops, size, link = (
        np.array([getattr(w, f) for w in many], float) for f in ("flops", "bytes", "link_bytes")
    )
    works = Works(flops, size, link, np.arange(len(many)), many)[np.arange(len(many))[::-1]]
    ns, lacks = least(works, roofs)
    bounds = [bound(w, roofs) for w in reversed(many)]
    assert [None if np.isnan(t) else t for t in ns.tolist()] == [b.bound_ns for b in bounds]
    assert lacks.tolist() == [lacks_roof(w, b) for w, b in zip(reversed(many), bounds, strict=True)]
