#!/usr/bin/env python3
"""Write rooflight/prices/instances.toml from the collected table.

usage: make_instances.py INSTANCES.csv [OUT.toml]

One [[instance]] per row; an empty cell stays absent, since an unknown price is not zero.  The model's name
and the price per GPU are not kept: the catalogue has the one, and the other is worked out.
"""

from __future__ import annotations

import sys
from pathlib import Path

from make_specs import number, quoted, read

DATE = "2026-12-01"
OUT = Path(__file__).resolve().parent.parent / "rooflight" / "prices" / "instances.toml"
# Column of the table -> key of the entry.
NUMBERS = {
    "gpu_count": "gpu_count",
    "vcpu": "vcpu",
    "ram_gib": "ram_gib",
    "gpu_mem_mib_each": "gpu_mem_mib",
    "network_gbps": "network_gbps",
}
TEXTS = {
    "interconnect": "interconnect",
    "usd_per_hour": "usd_per_hour",  # as text: an amount of money keeps its digits
    "region": "region",
    "price_date": "date",
    "source": "source",
    "confidence": "confidence",
    "notes": "notes",
}
#: Further names under which a provider's own files list an instance.
NAMES = {
    # src/gpuhunt/providers/azure.py in dstackai/gpuhunt@137c3a9: ND(\d+)asr_v4 is the A100 40GB series.
    "Standard_ND96asr_A100_v4": ["Standard_ND96asr_v4"],
}


def main(argv: list[str]) -> int:
    if len(argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    out = Path(argv[2]) if len(argv) == 3 else OUT
    out.write_text(header() + "\n".join(map(instance, read(argv[1]))), encoding="utf-8")
    return 0


def header() -> str:
    return (
        f"# GPU instances and what they cost, collected {DATE}.  Written by scripts/make_instances.py:\n"
        "# change the table, not this file.  On-demand prices in USD per hour of the whole instance, each\n"
        '# as of its date; "snapshot" and "undated": not told by the source.  What is absent is unknown.\n\n'
    )


def instance(row: dict[str, str]) -> str:
    lines = ["[[instance]]", f"provider = {quoted(row['provider'])}", f"name = {quoted(name(row))}"]
    if also := NAMES.get(row["instance"]):
        lines.append(f"also = [{', '.join(map(quoted, also))}]")
    lines.append(f"gpu_id = {quoted(row['gpu_id'])}")
    lines += [f"{key} = {number(row[column])}" for column, key in NUMBERS.items() if row[column]]
    row = {**row, "source": source(row["source"])}
    lines += [f"{key} = {quoted(row[column])}" for column, key in TEXTS.items() if row[column]]
    return "\n".join(lines) + "\n"


def source(text: str) -> str:
    """Where the figures were seen; of some rows only the name was known beforehand."""
    return "none read: the name alone" if text.startswith("name from the task") else text


def name(row: dict[str, str]) -> str:
    """The instance as its provider calls it; a region in parentheses only told two rows apart."""
    return row["instance"].removesuffix(f" ({row['region']})") if row["region"] else row["instance"]


if __name__ == "__main__":
    sys.exit(main(sys.argv))
