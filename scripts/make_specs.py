#!/usr/bin/env python3
"""Write rooflight/hardware/specs from the collected tables.

usage: make_specs.py GPUS.csv EFFICIENCY.csv [OUT_DIR]
       make_specs.py --pack [OUT_DIR]

One [[gpu]] per row and per vendor a file; an empty cell stays absent, since unknown is not zero.  Then, or
alone with --pack, catalogue.json: the same records in the form that is read in a tenth of the time.
limits.toml is written by hand.
"""

from __future__ import annotations

import csv
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

DATE = "2026-12-01"
OUT = Path(__file__).resolve().parent.parent / "rooflight" / "hardware" / "specs"

# Column of the table -> key of the entry.  Matrix peaks are dense with fp32 accumulation.
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
VECTOR = {"fp64": "fp64", "fp32": "fp32", "fp16_vector": "fp16", "bf16_vector": "bf16"}
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
TEXTS = ("id", "vendor", "name", "variant", "arch")
# The firmware holds these under what their units could do: a lower clock does not lower the peak.
CAPPED = ("h20", "h20-3e")
FILES = {"gpu": ("nvidia", "amd", "intel"), "measured": ("measured",), "limits": ("limits",)}


def main(argv: list[str]) -> int:
    if len(argv) in (2, 3) and argv[1] == "--pack":
        pack(Path(argv[2]) if len(argv) == 3 else OUT)
        return 0
    if len(argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    out = Path(argv[3]) if len(argv) == 4 else OUT
    out.mkdir(parents=True, exist_ok=True)
    write(out, argv)
    pack(out)
    return 0


def write(out: Path, argv: list[str]) -> None:
    by_vendor: dict[str, list[dict[str, str]]] = {}
    for row in read(argv[1]):
        by_vendor.setdefault(row["vendor"].lower(), []).append(row)
    for vendor, rows in by_vendor.items():
        (out / f"{vendor}.toml").write_text(header("GPUs") + "\n".join(map(gpu, rows)), encoding="utf-8")
    measured = header("Measured ceilings") + "\n".join(map(measurement, read(argv[2])))
    (out / "measured.toml").write_text(measured, encoding="utf-8")


def pack(out: Path) -> None:
    """All records of the files, a line each."""
    lines = []
    for key, names in FILES.items():
        rows = [r for name in names for r in records(out / f"{name}.toml", key)]
        body = ",\n".join(json.dumps(r, ensure_ascii=False, default=str) for r in rows)
        lines.append(f'"{key}": [\n{body}\n]')
    (out / "catalogue.json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


def records(file: Path, key: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))[key] if file.exists() else []
    return rows


def read(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as f:
        return [{k: (v or "").strip() for k, v in row.items()} for row in csv.DictReader(f)]


def header(what: str) -> str:
    return (
        f"# {what}, collected {DATE}.  Written by scripts/make_specs.py: change the table, not this file.\n"
        "# Peaks in TFLOP/s (int8: TOP/s), dense, fp32 accumulation; bandwidth in decimal GB/s.\n\n"
    )


def gpu(row: dict[str, str]) -> str:
    lines = ["[[gpu]]", *(f"{k} = {quoted(row[k])}" for k in TEXTS)]
    lines.append(f"compute = {quoted(row['cc_or_gfx'])}")
    lines.append(f"device_unit = {quoted(row['device_unit'])}")
    lines += [f"{key} = {number(row[column])}" for column, key in NUMBERS.items() if row[column]]
    lines += [f"{key} = {quoted(row[key])}" for key in ("mem_type", "link") if row[key]]
    lines.append(f"matrix = {table(row, MATRIX)}")
    lines.append(f"vector = {table(row, VECTOR)}")
    lines.append(f"names = {listed(names(row))}")
    lines.append(f"sources = {listed(split(row['sources'], ';'))}")
    lines.append(f"date = {DATE}")
    lines.append('condition = "dense"')
    if row["id"] in CAPPED:
        lines.append("capped = true")
    lines.append(f"confidence = {quoted(row['confidence'])}")
    if row["notes"]:
        lines.append(f"notes = {quoted(row['notes'])}")
    return "\n".join(lines) + "\n"


def names(row: dict[str, str]) -> list[str]:
    """Names that a driver reports, without remarks in parentheses.  "A/B" is the name of neither."""
    seen = split(row["device_names_seen"], "|") + split(row["device_names_unverified"], "|")
    return list(dict.fromkeys(n.partition(" (")[0] for n in seen if "/" not in n))


def measurement(row: dict[str, str]) -> str:
    lines = ["[[measured]]", *(f"{k} = {quoted(row[k])}" for k in ("gpu_id", "metric", "unit"))]
    lines += [f"{k} = {number(row[k])}" for k in ("measured", "peak_used", "fraction")]
    lines.append(f"conditions = {quoted(row['conditions'])}")
    # A place in an index that nobody else can open is no source.
    source = "a public log" if row["source"].startswith("find_string") else row["source"]
    lines.append(f"source = {quoted(source)}")
    lines.append(f"confidence = {quoted(row['confidence'])}")
    if use := stands_for(row):
        lines.append(f"use = {quoted(use)}")
    lines.append(f"date = {DATE}")
    return "\n".join(lines) + "\n"


def stands_for(row: dict[str, str]) -> str:
    """The roof that a measurement stands for: a GEMM for its dtype, a stream triad for memory.  A read or
    an initialisation is not how kernels use memory, and an under-filled run is only a lower bound."""
    metric = row["metric"]
    if metric.endswith(" GEMM"):
        return metric.removesuffix(" GEMM")
    if metric in ("stream triad", "stream"):
        return "" if "lower bound" in row["conditions"] else "memory"
    if metric.startswith("PCIe5 x16"):
        return "pcie"
    return "link" if metric.startswith("NVLink") else ""


def table(row: dict[str, str], columns: dict[str, str]) -> str:
    cells = ", ".join(f"{key} = {number(row[column])}" for column, key in columns.items() if row[column])
    return f"{{ {cells} }}" if cells else "{}"


def split(text: str, separator: str) -> list[str]:
    """Parts outside parentheses."""
    parts, depth, start = [], 0, 0
    for i, ch in enumerate(text):
        depth += (ch == "(") - (ch == ")")
        if ch == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def number(cell: str) -> str:
    value = float(cell)
    return str(int(value)) if value.is_integer() else repr(value)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def listed(items: list[str]) -> str:
    return "[" + ", ".join(map(quoted, items)) + "]"


if __name__ == "__main__":
    sys.exit(main(sys.argv))
