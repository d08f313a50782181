"""MIG instances and compute partitions: never the whole device's roof."""

from __future__ import annotations

import pytest

from rooflight.errors import Refused
from rooflight.hardware import Gpu, ceilings, find, gpus, resolve
from rooflight.hardware.entry import entry
from rooflight.hardware.slices import is_virtual, part_of
from rooflight.results.roofs import device_roofs
from tests.drawing import timeline_from_text

GIB = 2**30
MIB = 2**20


def named(name: str) -> Gpu:
    found = find(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "slice_of", "bf16", "gbs"),
    [
        # 989.4 x 1/7, 3350 x 1/8.
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "h100-sxm", 141.343, 418.75),
        # 312 x 3/7, 1555 x 4/8.
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "a100-sxm4-40", 133.714, 777.5),
        # 1g with two slices of the memory: 312 / 7, 1555 x 2/8.
        ("NVIDIA A100-SXM4-40GB MIG 1g.10gb", "a100-sxm4-40", 44.571, 388.75),
        ("NVIDIA-A100-SXM4-40GB-MIG-2g.10gb", "a100-sxm4-40", 89.143, 388.75),
        # A30: four compute slices. 165 x 2/4, 933 x 12/24.
        ("NVIDIA A30 MIG 2g.12gb+me", "a30", 82.5, 466.5),
        # 141 GB: 71 is 4/8, 18 is 1/8. One of the three compute slices has the memory of all three.
        ("NVIDIA H200 MIG 1c.3g.71gb", "h200-sxm", 141.343, 2400),
        ("NVIDIA H200 MIG 1g.18gb", "h200-sxm", 141.343, 600),
        ("NVIDIA H100 NVL MIG 1g.12gb", "h100-nvl", 119.357, 487.5),
        ("NVIDIA GB200 MIG 1g.23gb", "gb200", 357.143, 1000),
        # All seven slices: the user guide says full.
        ("NVIDIA A100-SXM4-80GB MIG 7g.80gb", "a100-sxm4-80", 312, 2039),
        # Of 275040 MiB = 268.6 GiB, 135 are 4/8: 7700 / 2.
        ("NVIDIA B300 SXM6 AC MIG 3g.135gb", "b300", 964.286, 3850),
    ],
)
def test_a_mig_instance_by_its_profile(name: str, slice_of: str, bf16: float, gbs: float) -> None:
    part = named(name)
    assert part.slice_of == slice_of
    assert part.matrix["bf16"] == pytest.approx(bf16, abs=0.001)
    assert part.mem_bw_gbs == pytest.approx(gbs)
    assert (part.sm_count, part.tdp_w, part.link_gbs_per_dir) == (None, None, None)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA L40S MIG 1g.6gb",  # cannot be parted
        "NVIDIA A100-SXM4-40GB MIG 9g.20gb",
        "NVIDIA A100-SXM4-40GB MIG 0g.20gb",
        "NVIDIA A100-SXM4-40GB MIG 4c.3g.20gb",  # four of three
        "NVIDIA A30 MIG 7g.24gb",
        "NVIDIA A100-SXM4-40GB MIG 3g.40gb",  # all of the memory for three of seven
        "NVIDIA H100 MIG 1g.10gb",  # one of three boards
        "MIG 1g.10gb",
        "AMD Instinct MI300X MIG 1g.10gb",
        "AMD Instinct MI300X TPX",  # eight XCDs have no third
        "AMD Instinct MI300A QPX",
        "AMD Instinct MI250X CPX",
        "NVIDIA A100-SXM4-40GB CPX",
        "mi300x/37cu",
        "a100-sxm4-40/0sm",
        "a100-sxm4-40/108sm",
        "rtx4090/64sm",
        "Foo/cpx",
    ],
)
def test_what_cannot_be_is_none(name: str) -> None:
    assert find(name) is None


def test_memory_that_is_no_number_of_slices_has_no_bandwidth() -> None:
    # 13 of 40 GB is between 2/8 and 3/8.
    odd = named("NVIDIA A100-SXM4-40GB MIG 2g.13gb")
    assert odd.matrix["bf16"] == pytest.approx(312 * 2 / 7, abs=0.001)
    assert odd.mem_bw_gbs is None


def test_reported_sms_come_before_the_slices_of_the_name() -> None:
    # 14 of 108 SMs, 13 %, where one of seven slices is 14.3 %; 312 x 14 / 108 = 40.444.
    told = resolve("NVIDIA A100-SXM4-40GB MIG 1g.5gb", sm_count=14, memory_bytes=4864 * MIB, compute="8.0")
    assert told.gpu is not None
    assert (told.gpu.id, told.gpu.sm_count, told.inferred) == ("a100-sxm4-40/1g.5gb", 14, True)
    assert told.gpu.matrix["bf16"] == pytest.approx(40.444, abs=0.001)
    assert told.gpu.mem_bw_gbs == pytest.approx(1555 / 8, abs=0.001)
    assert told.ground == "a slice of a100-sxm4-40: 14 of 108 SMs, 1/8 of the memory"


def test_all_slices_are_not_all_sms() -> None:
    # 7g of an A100 has 98 SMs of 108: 312 x 98 / 108 = 283.1.
    told = resolve("NVIDIA A100-SXM4-40GB MIG 7g.40gb", sm_count=98)
    assert told.gpu is not None
    assert told.gpu.matrix["bf16"] == pytest.approx(283.111, abs=0.001)
    assert told.gpu.mem_bw_gbs == 1555


@pytest.mark.parametrize(
    ("mib", "gbs"),
    [
        (19_968, 777.5),  # 48.75 % of 40960 MiB is 4/8
        (9_856, 388.75),
        (40_960, None),  # sees all of it, with others: its share is not known
        (13_312, None),  # 32.5 % is no number of eighths
        (None, None),
    ],
)
def test_fewer_sms_than_the_name_has_are_a_slice(mib: int | None, gbs: float | None) -> None:
    memory = mib * MIB if mib else None
    told = resolve("NVIDIA A100-SXM4-40GB", sm_count=42, memory_bytes=memory, compute="8.0")
    assert told.gpu is not None
    assert (told.gpu.id, told.inferred) == ("a100-sxm4-40/42sm", True)
    assert told.gpu.matrix["bf16"] == pytest.approx(312 * 42 / 108, abs=0.001)
    assert told.gpu.vector["fp32"] == pytest.approx(19.5 * 42 / 108, abs=0.001)
    assert told.gpu.mem_bw_gbs == gbs


@pytest.mark.parametrize("name", ["AMD Instinct MI300X", "AMD Instinct MI300X VF", "", "AMD Radeon Graphics"])
@pytest.mark.parametrize(
    ("cus", "gib", "slice_id", "bf16", "gbs"),
    [
        # CPX, NPS4: an eighth of 1307.4 and of 5300.
        (38, 24, "mi300x/cpx", 163.425, 662.5),
        # CPX that sees the 48 GB of its quadrant: a quarter of the bandwidth.
        (38, 48, "mi300x/cpx", 163.425, 1325),
        # NPS1: all of the memory, with seven others.
        (38, 192, "mi300x/cpx", 163.425, None),
        (76, 48, "mi300x/qpx", 326.85, 1325),
        (152, 96, "mi300x/dpx", 653.7, 2650),
        (304, 192, "mi300x", 1307.4, 5300),
    ],
)
def test_partitions_of_an_mi300x(
    name: str, cus: int, gib: int, slice_id: str, bf16: float, gbs: float | None
) -> None:
    told = resolve(name, sm_count=cus, memory_bytes=int(gib * GIB * 0.999), compute="9.4")
    assert told.gpu is not None
    assert told.gpu.id == slice_id
    assert told.gpu.matrix["bf16"] == pytest.approx(bf16)
    assert told.gpu.mem_bw_gbs == (pytest.approx(gbs) if gbs else None)
    assert told.gpu.slice_of == ("mi300x" if cus < 304 else None)
    # 4 MiB of L2 in each of the XCDs.
    assert told.gpu.l2_mib == cus / 38 * 4


def test_a_share_of_the_memory_that_no_partition_has() -> None:
    # 32 of 192 GB is a sixth, and the device has eight parts.
    told = resolve("AMD Instinct MI300X", sm_count=38, memory_bytes=32 * GIB, compute="9.4")
    assert told.gpu is not None
    assert told.gpu.mem_bw_gbs is None
    assert told.ground == "a slice of mi300x: 38 of 304 CUs, its bandwidth is unknown"


def test_partitions_of_its_kin() -> None:
    # Six XCDs: a third is two of them. 980.6 / 3 = 326.867.
    third = resolve("AMD Instinct MI300A", sm_count=76).gpu
    assert third is not None
    assert (third.id, third.matrix["bf16"], third.mem_bw_gbs) == ("mi300a/tpx", 326.867, None)
    # 32 GiB and 38 CU: an eighth of an MI325X. 6000 / 8 = 750.
    eighth = resolve("", sm_count=38, memory_bytes=32 * GIB, compute="gfx942").gpu
    assert eighth is not None
    assert (eighth.id, eighth.mem_bw_gbs) == ("mi325x/cpx", 750)
    # 32 CU and 36 GiB: of an MI350X or MI355X, whose bandwidth is one and whose peaks are two.
    either = resolve("", sm_count=32, memory_bytes=36 * GIB, compute="gfx950").gpu
    assert either is not None
    assert (either.id, either.mem_bw_gbs, either.matrix) == ("mi350x/cpx+mi355x/cpx", 1000, {})


def test_a_die_of_an_mi250x_is_no_slice() -> None:
    told = resolve("AMD Instinct MI250X", sm_count=110, memory_bytes=65_520 * MIB, compute="gfx90a")
    assert told.gpu is not None
    assert (told.gpu.id, told.gpu.slice_of, told.inferred) == ("mi250x-gcd", None, False)
    assert all(g.device_unit != "card" for g in told.candidates)


def test_an_id_of_a_slice_finds_it_again() -> None:
    for name in ("h100-sxm/1g.10gb", "a30/2g.12gb+me", "mi300x/cpx", "a100-sxm4-40/42sm"):
        assert named(name).id == name
    # 100 CU are no partition, but 38 are.
    assert find("mi300x/100cu") is None
    assert named("mi300x/38cu").id == "mi300x/cpx"


@pytest.mark.parametrize("whole", [g for g in gpus() if g.matrix], ids=lambda g: g.id)
def test_no_slice_has_the_roof_of_the_whole(whole: Gpu) -> None:
    profiles = ("1g.10gb", "3g.40gb", "2c.4g.20gb", "dpx", "tpx", "qpx", "cpx", "8sm", "8cu")
    for part in filter(None, (find(f"{whole.id}/{p}") for p in profiles)):
        assert part.id != whole.id
        assert part.matrix.keys() == whole.matrix.keys()
        assert all(p < 0.8 * whole.matrix[d] for d, p in part.matrix.items())
        assert part.mem_bw_gbs is None or part.mem_bw_gbs < whole.mem_bw_gbs


def test_the_roofs_of_a_slice_have_the_factors_of_its_model() -> None:
    # bf16 of the H100: median of 0.803 and 0.789; H20 is capped and takes Hopper's default no more whole.
    whole, part = ceilings(named("h100-sxm")), ceilings(named("h100-sxm/1g.10gb"))
    assert whole.compute["bf16"].practical is not None
    assert part.compute["bf16"].practical == pytest.approx(whole.compute["bf16"].practical / 7, rel=1e-5)
    assert part.compute["bf16"].source == whole.compute["bf16"].source
    assert part.link is None
    assert ceilings(named("h20/1g.12gb")).compute["bf16"].origin == "assumed"
    # The MI325X's 0.62, not CDNA3's 0.53: int8 has no row of its own.
    int8 = ceilings(named("mi325x/cpx")).compute["int8"]
    assert int8.datasheet is not None
    assert int8.practical == pytest.approx(int8.datasheet * 0.62)


def test_an_entry_says_that_it_is_a_slice() -> None:
    told = entry(named("NVIDIA H100 80GB HBM3 MIG 1g.10gb"))
    assert told["slice_of"] == "h100-sxm"
    assert told["name"] == "H100 SXM5 80GB, MIG 1g.10gb"
    assert told["notes"] == "a slice of h100-sxm: 1 of 7 compute slices, 1/8 of the memory"
    assert entry(named("h100-sxm"))["slice_of"] is None


@pytest.mark.parametrize("name", ["GRID A100-10C", "NVIDIA A100-4-20C", "GRID T4-16Q", "NVIDIA L40S-48c"])
def test_profiles_of_virtual_gpus(name: str) -> None:
    assert is_virtual(name)


def test_names_of_devices_are_no_profiles() -> None:
    assert [n for g in gpus() for n in (g.id, *g.names) if is_virtual(n) or part_of(n)] == []


def test_long_and_odd_names_end_at_once() -> None:
    for name in ("- " * 100_000, "a/" * 100_000, "1g.1gb" * 50_000, "MIG " * 50_000 + "1g.10gb", "\x00/cpx"):
        assert find(name) is None
        assert resolve(name, sm_count=1, memory_bytes=1, compute="9.0").gpu is None
    # A slice's name, and then a million separators: what is beyond a name's length is not looked at.
    name = "NVIDIA A100-SXM4-40GB MIG 1g.5gb".ljust(256) + "- " * 500_000
    assert resolve(name, sm_count=14).gpu == resolve("NVIDIA A100-SXM4-40GB MIG 1g.5gb", sm_count=14).gpu


DRAWN = """
us          0    5    10
stream 7    gemm=======
"""


# --- a recording's device --------------------------------------------------------------------------


def test_a_whole_card_is_no_device_of_a_recording() -> None:
    timeline = timeline_from_text(DRAWN)
    with pytest.raises(Refused, match="whole card") as refused:
        device_roofs(timeline, "mi250x-card", ())
    assert "mi250x-gcd" in (refused.value.hint or "")


def test_the_flag_says_of_what_a_device_is_a_slice() -> None:
    device = {"id": 0, "name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "numSms": 14, "totalGlobalMem": 4864 * MIB}
    roofs = device_roofs(timeline_from_text(DRAWN, deviceProperties=[device]), None, ())
    assert roofs.inferred
    assert roofs.roofs[0].gpu_id == "a100-sxm4-40/1g.5gb"
    assert roofs.roofs[0].ground == "a slice of a100-sxm4-40: 14 of 108 SMs, 1/8 of the memory"
    asked = device_roofs(timeline_from_text(DRAWN), "mi300x/cpx", ())
    assert asked.inferred
    assert asked.roofs[0].ground == "a slice of mi300x: 38 of 304 CUs, its bandwidth is unknown"


def test_an_analysis_is_held_against_the_slice() -> None:
    import rooflight

    device = {
        "id": 0,
        "name": "AMD Instinct MI300X",
        "numSms": 38,
        "totalGlobalMem": 24 * GIB,
        "computeMajor": 9,
        "computeMinor": 4,
        "warpSize": 64,
    }
    rank = rooflight.analyze(timeline_from_text(DRAWN, deviceProperties=[device])).document.ranks[0]
    flag = next(f for f in rank.flags if f.code == "sku_inferred")
    assert "a slice of mi300x: 38 of 304 CUs, 1/8 of the memory" in (flag.detail or "")
    roofs = rank.roofs["0"]
    assert (roofs.gpu_id, roofs.sm_count) == ("mi300x/cpx", 38)
    assert roofs.memory is not None
    # 5300 / 8 GB/s, of which 0.81 was reached by a stream.
    assert roofs.memory.datasheet == pytest.approx(662.5e9)
    assert roofs.memory.practical == pytest.approx(662.5e9 * 0.81)
