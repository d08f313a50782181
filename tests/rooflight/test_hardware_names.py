"""Which entry a device is: by whole tokens of its name, else by what it reports of itself."""

from __future__ import annotations

import json

import pytest

from rooflight.hardware import alike, find, gpus, peaks, resolve
from rooflight.hardware.names import tokens

GIB = 2**30


def id_of(name: str) -> str | None:
    found = find(name)
    return found.id if found else None


@pytest.mark.parametrize(
    ("name", "tflops"),
    # Dense figures of the datasheets; within 1.5 %.
    [
        ("NVIDIA H100 80GB HBM3", 989.5),
        ("NVIDIA H100 PCIe", 756.5),
        ("NVIDIA H100 NVL", 835.5),
        ("NVIDIA H200", 989.5),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("AMD Instinct MI350X", 2300),
        ("AMD Instinct MI355X", 2500),
    ],
)
def test_dense_bf16_peak_by_exact_model(name: str, tflops: float) -> None:
    found = find(name)
    assert found is not None
    assert peaks(found)["bf16"] == pytest.approx(tflops, rel=0.015)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("NVIDIA GB300", "NVIDIA B300"),
        ("NVIDIA GB200", "NVIDIA B200"),
        ("NVIDIA L40S", "NVIDIA L4"),
        ("NVIDIA L40S", "NVIDIA L40"),
        ("NVIDIA H100 NVL", "NVIDIA H100 80GB HBM3"),
        ("NVIDIA H200 NVL", "NVIDIA H200"),
        ("NVIDIA GH200 480GB", "NVIDIA H200"),
        ("NVIDIA H20", "NVIDIA H200"),
        ("NVIDIA A10", "NVIDIA A10G"),
        ("NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX A6000"),
    ],
)
def test_names_that_share_letters_are_other_devices(one: str, other: str) -> None:
    assert id_of(one) is not None
    assert id_of(other) is not None
    assert id_of(one) != id_of(other)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA RTX A1000 Laptop GPU",  # contains the letters A100
        "NVIDIA T400 4GB",  # contains T4
        "NVIDIA RTX A4000",  # contains A40
        "NVIDIA B2000 Turbo",
        "NVIDIA GeForce RTX 4090 Laptop GPU",  # another die under the same number
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 5090 D",
        "NVIDIA GeForce RTX 4080 SUPER",
        "Quadro RTX 6000",  # Turing, not "RTX 6000 Ada Generation"
        "NVIDIA A16",
        "NVIDIA A2",
        "NVIDIA A10M",
        "NVIDIA A100X",
        "NVIDIA A100-SXM-64GB",
        "NVIDIA H100 64GB HBM2",
        "NVIDIA H100 96GB HBM3",
        "NVIDIA GH200 120GB",
        "NVIDIA PG509-210",  # an engineering name without its model
        "AMD Instinct MI250X / MI250",  # either of two
        "AMD Instinct MI250X/MI250",
        "Radeon RX 7900 XT",
        "GRID A100-10C",  # a virtual GPU's share of the time is not known
        "NVIDIA A100-4-20C",
        "GRID T4-16Q",
        "NVIDIA H100",  # PCIe, NVL or SXM: more than one is none
        "NVIDIA A100",
        "NVIDIA B100",
        "NVIDIA Graphics Device",
        "GRAPHICS DEVICE",
        "graphics device",
        "AMD Radeon Graphics",
        "Foo Accelerator X1",
        "Quadro T2000",
        "",
        "   ",
        "NVIDIA",
        "A" * 100_000,
        "\x00\ud800",
    ],
)
def test_a_stranger_gets_no_entry(name: str) -> None:
    assert find(name) is None


def test_v100_has_no_bf16_peak() -> None:
    v100 = find("Tesla V100-SXM2-32GB")
    assert v100 is not None
    assert "bf16" not in peaks(v100)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Tesla V100-DGXS-32GB", "v100-sxm2-32"),
        ("NVIDIA A100-PG509-200", "a100-sxm4-40"),
        ("A100-SXM-80GB", "a100-sxm4-80"),
        ("NVIDIA H100 80GB HBM2e", "h100-pcie"),
        ("NVIDIA L40", "l40"),
        ("NVIDIA T4", "t4"),
        ("nvidia l40s", "l40s"),
        ("AMD Instinct MI250X", "mi250x-gcd"),  # a profiler's device is one die, not the card
        ("AMD Instinct MI300X VF", "mi300x"),
        ("Intel(R) Data Center GPU Max 1550", "max1550-stack"),
        ("NVIDIA H20", "h20"),
        ("NVIDIA GH200 480GB", "gh200-96"),  # 480 GB of the CPU's memory
        ("NVIDIA H800", "h800-sxm"),
        ("NVIDIA A800-SXM4-80GB", "a800-sxm4-80"),
        ("Tesla T4", "t4"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx6000ada"),
        ("NVIDIA L40S", "l40s"),
        ("AMD Instinct MI300A", "mi300a"),
        ("AMD Instinct MI325X", "mi325x"),
        ("Arcturus GL-XL [Instinct MI100]", "mi100"),
        ("mi250x-card", "mi250x-card"),
        ("h100-nvl", "h100-nvl"),
    ],
)
def test_spelling_of_a_known_name(name: str, expected: str) -> None:
    assert id_of(name) == expected


def test_every_name_of_the_catalogue_finds_its_own_entry() -> None:
    for gpu in gpus():
        assert [id_of(n) for n in gpu.names] == [gpu.id] * len(gpu.names)


def test_no_two_entries_share_a_name_or_an_id() -> None:
    said = [tokens(n) for g in gpus() for n in g.names]
    # Two spellings of one entry may differ in brand or case only ("AMD Radeon", "Radeon").
    owners = {t: {g.id for g in gpus() for n in g.names if tokens(n) == t} for t in said}
    assert all(len(ids) == 1 for ids in owners.values())
    assert len({g.id for g in gpus()}) == len(gpus())


# --- without a name --------------------------------------------------------------------------------


def test_blank_name_with_304_cu_gfx942_and_192_gb_is_an_mi300x() -> None:
    # 206141652992 B = 191.98 GiB, 0.01 % under 192; MI325X has the same 304 CU and 256 GiB.
    for compute in ("gfx942", "gfx942:sramecc+:xnack-", "9.4"):
        told = resolve("", sm_count=304, memory_bytes=206_141_652_992, compute=compute)
        assert told.gpu is not None
        assert told.gpu.id == "mi300x"
        assert told.inferred


def test_candidates_that_agree_stand_together() -> None:
    # MI210 and one GCD of an MI250: 104 CU, 64 GiB; 181.0 and 181.05 TFLOP/s are one figure.
    told = resolve("AMD Radeon Graphics", sm_count=104, memory_bytes=68_702_699_520, compute="9.0")
    assert [c.id for c in told.candidates] == ["mi210", "mi250-gcd"]
    assert told.gpu is not None
    assert told.gpu.id == "mi210+mi250-gcd"
    assert peaks(told.gpu)["bf16"] == 181
    assert told.gpu.mem_bw_gbs == 1638.4
    assert told.gpu.tdp_w is None  # 300 W for the one, unknown for the other


def test_a_peak_that_candidates_dispute_is_unknown() -> None:
    # 132 SM, 80 GiB: H100 and H800 agree in bf16, but fp64 (66.9 there) is unknown of the H800.
    told = resolve("NVIDIA H100", sm_count=132, memory_bytes=85_018_279_936, compute="9.0")
    assert [c.id for c in told.candidates] == ["h100-sxm", "h800-sxm"]
    assert told.gpu is not None
    assert peaks(told.gpu)["bf16"] == 989.4
    assert "fp64" not in peaks(told.gpu)
    assert told.gpu.link_gbs_per_dir is None  # 450 against 200


def test_candidates_that_agree_in_nothing_are_none() -> None:
    # 95.07 GiB is within 2 % of 94 (NVL, 835.5 TFLOP/s, 3900 GB/s) and of 96 (GH200, 989.4, 4000).
    told = resolve("NVIDIA H100", sm_count=132, memory_bytes=102_085_492_736, compute="9.0")
    assert {c.id for c in told.candidates} == {"h100-nvl", "gh200-96"}
    assert told.gpu is None
    assert not told.inferred


@pytest.mark.parametrize(
    "reported",
    [
        {"sm_count": 304, "compute": "gfx942"},
        {"sm_count": 304, "memory_bytes": 206_141_652_992},
        {"memory_bytes": 206_141_652_992, "compute": "gfx942"},
        {"sm_count": 304, "memory_bytes": 200 * GIB, "compute": "gfx942"},  # 4 % over 192
        {"sm_count": 303, "memory_bytes": 206_141_652_992, "compute": "gfx942"},
        {"sm_count": 38, "memory_bytes": 100 * GIB, "compute": "gfx942"},
        {},
    ],
)
def test_too_little_is_no_inference(reported: dict[str, object]) -> None:
    assert resolve("", **reported).gpu is None  # type: ignore[arg-type]


def test_a_virtual_gpu_is_not_told_by_its_size() -> None:
    # The profile of all the memory of a V100, 80 SM and 32 GiB: time is shared, nobody knows how.
    assert resolve("GRID V100D-32Q", sm_count=80, memory_bytes=32 * GIB, compute="7.0").gpu is None


def test_either_of_two_models_is_told_by_its_size() -> None:
    # 110 CU is the MI250X alone; 104 CU the MI250 or an MI210, which have the same figures.
    told = resolve("AMD Instinct MI250X/MI250", sm_count=110, memory_bytes=68_702_699_520, compute="9.0")
    assert told.gpu is not None
    assert (told.gpu.id, told.inferred) == ("mi250x-gcd", True)
    assert told.ground == "110 CUs, 9.0, 64 GiB: Instinct MI250X"


def test_another_board_of_the_name_is_unknown() -> None:
    # Orin NX has 8 SMs, not 16; an RTX 4090 has 128; no H100 has 144.
    assert resolve("Orin", sm_count=8).gpu is None
    assert resolve("NVIDIA GeForce RTX 4090", sm_count=114).gpu is None
    assert resolve("NVIDIA H100 80GB HBM3", sm_count=144).gpu is None
    assert resolve("AMD Instinct MI300X", sm_count=300).gpu is None


def test_the_vendor_in_the_name_keeps_the_other_out() -> None:
    # An NVIDIA device of compute capability 9.0 is no gfx90a, though HIP calls that 9.0 too.
    assert resolve("NVIDIA X", sm_count=104, memory_bytes=68_702_699_520, compute="9.0").gpu is None


def test_a_name_needs_nothing_else() -> None:
    told = resolve("NVIDIA A100-PG509-200")
    assert told.gpu is not None
    assert (told.gpu.id, told.inferred) == ("a100-sxm4-40", False)


# --- the command -----------------------------------------------------------------------------------


def test_command_answers_an_entry_and_null(capsys: pytest.CaptureFixture[str]) -> None:
    from rooflight.cli.main import main

    assert main(["gpus", "NVIDIA H100 PCIe", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["id"] == "h100-pcie"
    # 756 TFLOP/s over 2039 GB/s = 370.77 FLOP per byte.
    assert told["ridge"]["bf16"] == 370.77
    assert main(["gpus", "Foo Accelerator X1", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) is None
    assert main(["gpus", "", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) is None


def test_an_unclear_name_is_answered_with_what_it_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    """ "H100" is a word of three boards; "RTX A1000 Laptop GPU" says more than any entry, "GPU" nothing."""
    from rooflight.cli.main import main

    assert sorted(g.id for g in alike("NVIDIA H100")) == ["h100-nvl", "h100-pcie", "h100-sxm"]
    assert alike("NVIDIA RTX A1000 Laptop GPU") == alike("GPU") == alike("") == []
    assert main(["gpus", "NVIDIA H100"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("unknown: no roof")
    assert all(g in told for g in ("h100-nvl", "h100-pcie", "h100-sxm"))


def test_command_lists_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    from rooflight.cli.main import main

    assert main(["gpus", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(gpus())
    assert main(["gpus"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(gpus()) + 2  # heading and legend
