"""What every surface says of communication."""

from __future__ import annotations

import pytest

from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.collectives import Communication, Contention
from rooflight.protocol import Document, Kernel, Rank
from rooflight.report.collectives import bandwidth, collective, decimal, of_link, slowed, slower
from rooflight.report.html import report

FAST = Communication(
    kind="allreduce", group="dp [0, 1]", ranks=2, dtype="bf16", count=4, message_bytes=52_428_800,
    bus_bytes=52_428_800, time_us=8000, exposed_us=2000, exposed_pct=25, matched=4, wait_us=1000,
    transfer_us=800, basis="transfer", algorithm_gbs=262.144, bus_gbs=262.144, link_gbs=382.5,
    link_fraction=262.144 / 382.5,
)  # fmt: skip
BOUND = Communication(
    kind="all_to_allv", group="<b>|ep`", count=1, sizes=9, message_bytes=999, time_us=10, bus_gbs=0.0123,
    link_fraction=0.0004, reason="a lower bound",
)  # fmt: skip
UNKNOWN = Communication(kind="sendrecv", count=1, time_us=1)
SLOWED = Contention(0, 100, 50.0, 5, 5, 14.0, 7.0, 2.0)


def document(*, kinds: int = 3, contention: list[Contention] | None = None) -> Document:
    rank = Rank(
        rank=0, grade="usable", kernels=[Kernel(name="gemm", time_us=1)],
        communication=[FAST, BOUND, UNKNOWN], communication_rows=kinds,
        contention=[SLOWED] if contention is None else contention,
    )  # fmt: skip
    return Document(schema_version=1, source="a.json", ranks=[rank])


def test_a_row_in_words() -> None:
    assert collective(FAST) == "allreduce bf16 52.4 MB × 2 ranks"
    assert collective(BOUND) == "all_to_allv 999 B (9 sizes)"
    assert collective(UNKNOWN) == "sendrecv size unknown"


def test_lower_bounds_are_marked_and_unknowns_are_dashes() -> None:
    assert [bandwidth(r) for r in (FAST, BOUND, UNKNOWN)] == ["262", "≥0.0123", "–"]
    assert [of_link(r) for r in (FAST, BOUND, UNKNOWN)] == ["69 %", "≥0.04 %", "–"]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (52_428_800, "52.4 MB"),
    ],
)
def test_decimal(size: int, text: str) -> None:
    assert decimal(size) == text


def test_the_slowed_come_by_what_it_costs() -> None:
    """100 µs at twice the time cost 50, 300 at 1.1 times 27; a faster one or an unknown one nothing."""
    other = Contention(1, 300, 50.0, 5, 5, 11.0, 10.0, 1.1)
    none = [
        Contention(2, 900, 50.0, 5, 5, 5.0, 10.0, 0.5),
        Contention(3, 900, 50.0, 1, 5, 5.0, 1.0, None),
        Contention(4, 900, 50.0, 5, 5, None, None, 9.0),
    ]
    assert slowed([*none, other, SLOWED]) == [SLOWED, other]
    assert slower(SLOWED) == "14.0 µs, alone 7.0 µs (× 2.00)"


def test_the_table() -> None:
    lines = table(document(kinds=20)).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("Communication: 20 kinds, 6 calls"))
    assert lines[at + 1].split()[:6] == ["ms", "exposed", "wait", "bus", "GB/s", "link"]
    assert lines[at + 2].split()[:7] == ["8.000", "25", "%", "1.000", "262", "69", "%"]
    assert "4  allreduce bf16 52.4 MB × 2 ranks" in lines[at + 2]
    assert lines[at + 5].strip() == "and 17 more kinds"
    assert lines[at + 6].strip().startswith("≥ a lower bound: ")
    assert lines[at + 7].strip() == "beside communication 14.0 µs, alone 7.0 µs (× 2.00): gemm"
    assert all(len(line) <= 100 for line in lines)


def test_markdown() -> None:
    text = markdown(document(kinds=4))
    assert (
        "| `allreduce bf16 52.4 MB × 2 ranks` | `dp [0, 1]` | 4 | 8.000 | 25.0 | 1.000 | 262 | 69 % |" in text
    )
    assert "`<b>\\|ep'`" in text
    assert "Not shown: 1 more kind." in text
    assert "- Beside communication `gemm` takes 14.0 µs, alone 7.0 µs (× 2.00)" in text


def test_the_report_escapes_what_comes_from_outside() -> None:
    pytest.importorskip("plotly")
    html = report(document())
    section = html[html.index('id="communication"') :]
    section = section[: section.index("</section>")]
    assert "&lt;b&gt;|ep" in section
    assert "<b>|ep" not in section
    assert "52.4 MB" in section
    assert "≥0.0123" in section
    assert "14.0 µs, alone 7.0 µs" in section


@pytest.mark.parametrize("show", [table, markdown])
def test_without_communication_nothing_is_said(show) -> None:  # type: ignore[no-untyped-def]
    quiet = document()
    quiet.ranks[0].communication, quiet.ranks[0].communication_rows = [], 0
    assert "ollective" not in show(quiet)
