"""The collectives of a rank, those that are alike as one row, and the kernels that suffer beside them."""

from __future__ import annotations

from dataclasses import dataclass

from rooflight.collectives import Communication
from rooflight.protocol import Rank
from rooflight.report.collectives import TOP_COLLECTIVES, bandwidth, collective, of_link, slowed, slower
from rooflight.report.summary import title


@dataclass(frozen=True, slots=True)
class CommunicationRow:
    """A row in words; ``least`` says that its bandwidth is a lower bound."""

    row: Communication
    name: str
    bandwidth: str
    of_link: str
    least: bool


def communication_rows(rank: Rank) -> list[CommunicationRow]:
    """Those that took longest."""
    return [
        CommunicationRow(
            r, collective(r), bandwidth(r), of_link(r), r.bus_gbs is not None and r.basis != "transfer"
        )
        for r in rank.communication[:TOP_COLLECTIVES]
    ]


def slowed_kernels(rank: Rank) -> list[tuple[str, str]]:
    """Kernels that take longer beside communication, with by how much."""
    known = [c for c in slowed(rank.contention) if c.kernel < len(rank.kernels)]
    return [(title(rank.kernels[c.kernel]), slower(c)) for c in known]
