"""The catalogue has every cell of the collected tables, and docs/catalogue.md every number of the catalogue.

When a test says that a file is not current: ``scripts/make_specs.py GPUS.csv EFFICIENCY.csv`` writes the
specs, ``scripts/make_specs.py --pack`` catalogue.json alone, ``scripts/hardware_docs.py`` the page.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rooflight.hardware import Gpu, find, gpus, peaks, resolve
from rooflight.hardware.catalogue import measurements
from rooflight.hardware.entry import entry
from rooflight.readers.meta import read_meta
from rooflight.trace.timeline import DeviceProperties
from tests.shared import CHECKOUT, traces_dir

SPECS = CHECKOUT / "rooflight" / "hardware" / "specs"
TABLE = traces_dir().parent / "hardware" / "gpus.csv"
shared = pytest.mark.skipif(not TABLE.exists(), reason="the collected tables are not here")

# Column of the table -> where the entry has it.
NUMBERS = {
    "sm_or_cu": "sm_count",
    "boost_mhz": "boost_mhz",
    "tensor_clock_mhz": "tensor_mhz",
    "mem_bw_gbs": "mem_bw_gbs",
    "mem_gb_vendor": "mem_gb",
    "mem_mib_reported": "mem_mib",
    "l2_mib": "l2_mib",
    "llc_mib": "llc_mib",
    "smem_per_sm_kib": "smem_per_sm_kib",
    "tdp_w": "tdp_w",
    "link_gbs_per_dir": "link_gbs_per_dir",
    "link_gbs_total": "link_gbs_total",
    "pcie_gen": "pcie_gen",
}
TEXTS = {
    "id": "id",
    "vendor": "vendor",
    "name": "name",
    "variant": "variant",
    "arch": "arch",
    "cc_or_gfx": "compute",
    "device_unit": "device_unit",
    "mem_type": "mem_type",
    "link": "link",
    "confidence": "confidence",
    "notes": "notes",
}
VECTOR = {"fp64": "fp64", "fp32": "fp32", "fp16_vector": "fp16", "bf16_vector": "bf16"}
MATRIX = {
    "fp64_tensor": "fp64",
    "fp32_matrix": "fp32",
    "tf32": "tf32",
    "fp16_tensor": "fp16",
    "fp16_tensor_fp16acc": "fp16_fp16acc",
    "bf16_tensor": "bf16",
    "fp8": "fp8",
    "fp8_fp16acc": "fp8_fp16acc",
    "int8_tops": "int8",
    "mxfp6": "mxfp6",
    "fp4": "fp4",
}
LISTS = {"sources", "device_names_seen", "device_names_unverified"}


def rows() -> list[dict[str, str]]:
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def names_in(row: dict[str, str], column: str) -> list[str]:
    """Names without the collector's remarks, " (cloud label only)"."""
    return [n.partition(" (")[0].strip() for n in row[column].split("|") if n.strip()]


def number(cell: str) -> float | None:
    return float(cell) if cell else None


@shared
def test_every_column_of_the_table_is_compared() -> None:
    assert set(rows()[0]) == {*NUMBERS, *TEXTS, *VECTOR, *MATRIX, *LISTS}
    assert [r["id"] for r in rows()] == [g.id for g in gpus()]


@pytest.mark.parametrize("row", rows(), ids=lambda r: r["id"])
def test_every_cell_of_the_table_is_in_its_entry(row: dict[str, str]) -> None:
    """An empty cell is unknown there too."""
    gpu = next(g for g in gpus() if g.id == row["id"])
    for column, name in NUMBERS.items():
        assert getattr(gpu, name) == number(row[column]), column
    for column, name in TEXTS.items():
        assert (getattr(gpu, name) or "") == row[column].strip(), column
    for table, columns in ((gpu.vector, VECTOR), (gpu.matrix, MATRIX)):
        assert table == {d: float(row[c]) for c, d in columns.items() if row[c]}
    # Sources are parted at ";", remarks in parentheses stay with theirs.
    assert re.sub(r"\s*;\s*", ";", row["sources"]) == ";".join(
        re.sub(r"\s*;\s*", ";", s) for s in gpu.sources
    )


@pytest.mark.parametrize("row", rows(), ids=lambda r: r["id"])
def test_every_name_of_the_table_finds_its_entry(row: dict[str, str]) -> None:
    for column in ("device_names_seen", "device_names_unverified"):
        for name in names_in(row, column):
            found = find(name)
            assert found is not None, name
            assert found.id == row["id"]


@shared
def test_every_measurement_of_the_table_is_there() -> None:
    with TABLE.with_name("efficiency.csv").open(newline="", encoding="utf-8") as f:
        table = [
            (r["gpu_id"], r["metric"], float(r["measured"]), float(r["fraction"])) for r in csv.DictReader(f)
        ]
    assert len(table) == 52
    assert [(m.gpu_id, m.metric, m.measured, m.fraction) for m in measurements()] == table


def devices_in(path: Path) -> list[DeviceProperties]:
    """The devices in the head or the tail of a trace, without the events between."""
    text = path.read_bytes()
    text = gzip.decompress(text) if path.suffix == ".gz" else text
    at = text.find(b'"deviceProperties"')
    if at < 0:
        return []
    value = text[text.index(b"[", at) : at + 100_000].decode("utf-8", "replace")
    return list(read_meta({"deviceProperties": json.JSONDecoder().raw_decode(value)[0]}).devices)


@pytest.mark.traces
def test_devices_of_the_shared_traces() -> None:
    """What each device of the traces is; ``pytest -s`` prints the table."""
    by_name: dict[str, set[str | None]] = {}
    for path in sorted(traces_dir().rglob("*.json*")):
        for d in devices_in(path):
            told = resolve(d.name, sm_count=d.sm_count, memory_bytes=d.memory_bytes, compute=d.compute)
            gpu_id = told.gpu.id if told.gpu else None
            if gpu_id not in by_name.setdefault(d.name, set()):
                print(f"{d.name!r:26} {d.sm_count!s:>4} {d.compute!s:>5}  {gpu_id!s:16} {told.ground}")
            by_name[d.name].add(gpu_id)
    assert by_name == {
        "": {"mi300x"},  # 304 CU, gfx942, 192 GB
        "AMD Radeon Graphics": {"mi210+mi250-gcd"},  # 104 CU, gfx90a, 64 GB: one figure
        "AMD Instinct MI210": {"mi210"},
        "AMD Instinct MI300X": {"mi300x"},
        "AMD Instinct MI300X VF": {"mi300x"},
        "NVIDIA A100-PG509-200": {"a100-sxm4-40"},
        "NVIDIA H100": {None},  # 95.07 GiB: an NVL of 94 or a GH200 of 96, which agree in no peak
        "NVIDIA H100 80GB HBM3": {"h100-sxm"},
        "Tesla V100-DGXS-32GB": {"v100-sxm2-32"},
        "Tesla V100-SXM2-16GB": {"v100-sxm2-16"},
        "Tesla V100-SXM2-32GB": {"v100-sxm2-32"},
    }


# --- the files -------------------------------------------------------------------------------------


def test_the_packed_file_is_what_the_specs_make(tmp_path: Path) -> None:
    for file in SPECS.glob("*.toml"):
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    script = CHECKOUT / "scripts" / "make_specs.py"
    subprocess.run([sys.executable, str(script), "--pack", str(tmp_path)], check=True)
    assert (tmp_path / "catalogue.json").read_text() == (SPECS / "catalogue.json").read_text()


@shared
def test_the_specs_are_what_the_tables_make(tmp_path: Path) -> None:
    script = CHECKOUT / "scripts" / "make_specs.py"
    tables = [str(TABLE), str(TABLE.with_name("efficiency.csv"))]
    subprocess.run([sys.executable, str(script), *tables, str(tmp_path)], check=True)
    for file in ("nvidia.toml", "amd.toml", "intel.toml", "measured.toml"):
        assert (tmp_path / file).read_text() == (SPECS / file).read_text()


def test_specs_are_data_only() -> None:
    """No machine path: the files are shown to users.  Every record has its date."""
    for file in SPECS.glob("*.toml"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"/(?:home|work|tmp|root)/", text)
        assert len(re.findall(r"^date = 2026-12-\d\d$", text, re.M)) == len(re.findall(r"^\[\[", text, re.M))


def test_every_entry_names_its_sources() -> None:
    assert all(g.sources and g.date == "2026-12-01" and g.condition == "dense" for g in gpus())
    assert len(gpus()) == 64


def test_an_empty_cell_is_absent() -> None:
    server = find("NVIDIA RTX PRO 6000 Blackwell Server Edition")
    assert server is not None
    assert (server.matrix, server.vector, server.mem_bw_gbs) == ({}, {}, None)


def test_no_peak_is_a_sparse_one() -> None:
    # Arithmetic of 4 x SM x 1024 multiply-adds x clock on Hopper: 132 x 4096 x 1.83 GHz = 989.4 TFLOP/s.
    h100 = find("NVIDIA H100 80GB HBM3")
    assert h100 is not None
    assert peaks(h100)["bf16"] == pytest.approx(132 * 4096 * 1.83e9 / 1e12, rel=0.001)


def the(gpu_id: str) -> Gpu:
    return next(g for g in gpus() if g.id == gpu_id)


def test_an_entry_tells_every_figure() -> None:
    told = entry(the("rtx4090"))
    # With fp16 sums a GeForce has twice the rate: 2 x 165.2, 2 x 330.3.
    assert told["fp16_accumulate_tflops"] == {"fp16": 330.3, "fp8": 660.6}
    assert told["peaks_tflops"]["fp16"] == 165.2
    assert told["sm_limits"]["threads"] == 1536
    assert (told["l2_mib"], told["llc_mib"], told["tdp_w"]) == (72, None, 450)
    mi300x = entry(the("mi300x"))
    assert (mi300x["link_gbs_per_dir"], mi300x["link_gbs_total"], mi300x["llc_mib"]) == (448, 896, 256)
    assert (mi300x["sm_limits"]["registers"], mi300x["sm_limits"]["shared_kib"]) == (131_072, 64)
    assert entry(the("max1550-stack"))["sm_limits"] is None
    json.dumps([entry(g) for g in gpus()])


def test_links_in_total_are_both_directions() -> None:
    """But of the MI250X, whose 350 stand alone."""
    linked = [g for g in gpus() if g.link_gbs_per_dir and g.id != "mi250x-card"]
    assert len(linked) > 30
    assert all(g.link_gbs_total == 2 * (g.link_gbs_per_dir or 0) for g in linked)


# --- the page --------------------------------------------------------------------------------------


def test_the_page_is_what_the_catalogue_makes() -> None:
    script = CHECKOUT / "scripts" / "hardware_docs.py"
    made = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert made.stdout == (CHECKOUT / "docs" / "catalogue.md").read_text()


def test_the_page_has_a_row_for_every_entry() -> None:
    page = (CHECKOUT / "docs" / "catalogue.md").read_text().splitlines()
    for gpu in gpus():
        peak, machine, vector = [line for line in page if line.startswith(f"| `{gpu.id}` |")][:3]
        assert gpu.name in peak
        assert gpu.compute in machine
        assert vector.count("|") == 6
        assert all(source in "\n".join(page) for source in gpu.sources)
    # H100 SXM: 989.4 TFLOP/s over 3350 GB/s.
    assert any("`h100-sxm`" in line and line.endswith("| 3350 | 295.34 |") for line in page)
