"""Several profiles of one run as one document: one entry per rank."""

from __future__ import annotations

from collections import Counter

from app.problems import Conflict
from rooflight.protocol import SCHEMA_VERSION, Document, Flag
from rooflight.results.throughput import joined


def merge(documents: list[Document]) -> Document:
    """The ranks of all; which ranks are missing is found anew.  :class:`Conflict` when a rank comes twice."""
    if len(documents) == 1:
        return documents[0]
    _refuse_doubles(documents)
    ranks = sorted((r for d in documents for r in d.ranks), key=lambda r: r.rank)
    sizes = [d.world_size for d in documents if d.world_size is not None]
    world = max(sizes) if sizes else None
    missing = sorted(set(range(world or 0)) - {r.rank for r in ranks}) if _plausible(world) else []
    flags = [f for d in documents for f in d.flags if f.code != "missing_ranks"]
    if missing:
        flags.append(Flag("missing_ranks", len(missing), ", ".join(map(str, missing[:50]))))
    return Document(
        schema_version=SCHEMA_VERSION,
        source=", ".join(dict.fromkeys(d.source for d in documents))[:2_000],
        ranks=ranks,
        collectives=[c for d in documents for c in d.collectives],
        clock_offset_us={k: v for d in documents for k, v in d.clock_offset_us.items()},
        missing_ranks=missing,
        world_size=world,
        flags=flags,
        units_per_step=joined(documents),
        telemetry=next((d.telemetry for d in documents if d.telemetry is not None), None),
    )


def _plausible(world: int | None) -> bool:
    # The number comes from outside; no job has ever had a million ranks.
    return world is not None and 0 < world <= 1_000_000


def _refuse_doubles(documents: list[Document]) -> None:
    seen = Counter(r.rank for d in documents for r in d.ranks)
    for rank, n in seen.items():
        if n > 1:
            owners = [d.source for d in documents if any(r.rank == rank for r in d.ranks)]
            raise Conflict(
                f"rank {rank} is in this run already",
                where=" and ".join(owners),
                hint="one profile per rank: make a new run for a new recording",
            )
