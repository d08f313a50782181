"""From timelines to an Analysis: the ranks of a run put together.

Each stage is a pure function over columns; :mod:`rooflight.results.stages` knows their order for one
recording.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from rooflight.errors import MissingExtra, NotATrace, Refused
from rooflight.pool import analyse_all
from rooflight.protocol import SCHEMA_VERSION, Document, Flag
from rooflight.readers import is_execution
from rooflight.readers.limits import DEFAULT_LIMITS, Limits
from rooflight.results.file import Beside, FileTask, read_run
from rooflight.results.launches import Columns
from rooflight.results.modules import modules
from rooflight.results.rank import analyse_rank, gaps, launches, phase_table, regrade
from rooflight.results.ranks import across_ranks, collective_rows, flags, listed, split_communication
from rooflight.results.rates import with_rates
from rooflight.results.result import RankResult
from rooflight.results.stages import Options, Stages
from rooflight.results.waiting import advise
from rooflight.trace.counters import CounterFile
from rooflight.trace.timeline import Timeline
from rooflight.units import us

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Analysis", "Options", "analyze", "analyze_files"]

DEFAULT = Options()


@dataclass(frozen=True)
class Analysis:
    """The result: ``document`` is the one JSON (:class:`rooflight.protocol.Document`; its fields and their
    units are in docs/definitions.md), ``launches`` the single GPU events in columns, by rank.

    The columns of a rank are made when they are first asked for; all have one entry per event, in order of
    their start (:func:`rooflight.results.launches.launch_columns`).  Times are ns on the recording's own
    clock, what is not known is -1, NaN or the empty text.  ``idle`` holds the gaps between GPU work likewise
    (:func:`rooflight.results.gaps.gap_columns`), ``by_phase`` the work of each step by phase
    (:func:`rooflight.results.phases.phase_columns`).
    """

    document: Document
    launches: Mapping[int, Columns]
    idle: Mapping[int, Columns] = field(default_factory=dict)
    by_phase: Mapping[int, Columns] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """What a notebook shows of it: the verdict, where the time goes, and what to do first."""
        from rooflight.report.notebook import shown

        return str(shown(self.document))

    @property
    def kernels(self) -> pd.DataFrame:
        """The kernel tables of all ranks as a pandas frame (extra ``notebook``)."""
        return _frame([(r.rank, k) for r in self.document.ranks for k in r.kernels])

    @property
    def communication(self) -> pd.DataFrame:
        """The collectives of all ranks, those that are alike as one row, as a pandas frame (extra
        ``notebook``)."""
        return _frame([(r.rank, c) for r in self.document.ranks for c in r.communication])

    @property
    def steps(self) -> pd.DataFrame:
        """The steps of all ranks as a pandas frame (extra ``notebook``)."""
        return _frame([(r.rank, s) for r in self.document.ranks for s in r.steps])

    @property
    def gaps(self) -> pd.DataFrame:
        """Every idle gap of all ranks as a pandas frame (extra ``notebook``), in order of its start; empty
        after :func:`analyze_files`, which keeps no recording."""
        return _stacked(self.idle)

    @property
    def phases(self) -> pd.DataFrame:
        """The work of each step by the phase of training that launched it, as a pandas frame (extra
        ``notebook``): over the phases each part adds up to that of the step.  Empty as :attr:`gaps` is."""
        return _stacked(self.by_phase)

    @property
    def modules(self) -> pd.DataFrame:
        """Every module with all that is inside it, as a pandas frame (extra ``notebook``)."""
        rows = ((r.rank, m) for r in self.document.ranks for m in modules(r.kernels))
        derived = ("depth", "regime", "roof_fraction")
        columns = [{"rank": n, **asdict(m), **{d: getattr(m, d) for d in derived}} for n, m in rows]
        return _pandas().DataFrame(columns)


def analyze(
    timelines: Timeline | Sequence[Timeline],
    gpu: str | None = None,
    options: Options = DEFAULT,
    *,
    eager: Timeline | None = None,
    counters: Sequence[CounterFile] = (),
) -> Analysis:
    """Analyse one recording, or the recordings of the ranks of one run, in any order.

    ``gpu`` names the device where the recording does not: an entry of the catalogue (`rooflight gpus`), whose
    datasheet every number of the roofs is from; an unknown name has no roof.  FLOPs and bytes come from the
    recorded inputs of ops, times from the recording; each figure that rests on less says so by its origin.
    ``eager`` is a recording of the same program without CUDA graphs: kernels of graphs are named from it
    where that is certain, and what they cost is then ``inferred``.  ``counters`` (:func:`read_counters`) are
    hardware counters of the same program: what they counted goes before every formula.
    Raises :class:`~rooflight.errors.Refused` when the recordings cannot be one run, and
    :class:`~rooflight.errors.NotATrace` when there is none.
    """
    several = [timelines] if isinstance(timelines, Timeline) else list(timelines)
    if not several:
        raise NotATrace("no trace was given")
    if gpu is not None:
        options = replace(options, gpu=gpu)
    stages = [Stages(t, options, eager, counters) for t in several]
    document = combine([analyse_rank(s) for s in stages])
    ranks = {s.timeline.meta.rank or 0: s for s in stages}
    return Analysis(document, _Lazily(ranks, launches), _Lazily(ranks, gaps), _Lazily(ranks, phase_table))


def analyze_files(
    paths: Sequence[str | PathLike[str]],
    gpu: str | None = None,
    options: Options = DEFAULT,
    *,
    jobs: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    salvage: bool = False,
    eager: str | PathLike[str] | None = None,
    counters: Sequence[str | PathLike[str]] = (),
) -> Analysis:
    """Read and analyse the traces of one run, several at a time, each in a process of its own.

    ``jobs`` is the number of processes (1: this one), by default one per CPU.  No recording is kept:
    memory is that of one recording per process, and ``launches`` is empty.  Execution traces among the files
    are joined to the traces of their processes; all are then held at once, in this process.  ``eager`` is
    the file of what :func:`analyze` takes, ``counters`` are those of the counters.  Raises
    :class:`~rooflight.errors.Refused` with the name of the file that cannot be used.
    """
    if not paths:
        raise NotATrace("no trace was given")
    if gpu is not None:
        options = replace(options, gpu=gpu)
    executions = [os.fsencode(p) for p in paths if is_execution(p, limits=limits)]
    files = [name for p in paths if (name := os.fsencode(p)) not in executions]
    graphless = None if eager is None else os.fsencode(eager)
    counted = tuple(map(os.fsencode, counters))
    tasks = [FileTask(name, options, limits, salvage, graphless, counted) for name in files]
    if executions:
        timelines, beside = read_run(tasks, executions), Beside.of(tasks[0])
        return analyze(timelines, options=options, eager=beside.eager, counters=beside.counters)
    return Analysis(combine(analyse_all(tasks, jobs)), {})


def combine(results: Sequence[RankResult]) -> Document:
    """The ranks of one run as one document; their rows become part of it.

    Raises :class:`~rooflight.errors.Refused` when a rank is there twice.
    """
    _one_file_each(results)
    ranks = sorted(results, key=lambda r: r.rank.rank)
    world = max((r.world_size for r in ranks if r.world_size), default=None)
    missing = _missing([r.rank.rank for r in ranks], world)
    for r in ranks:
        regrade(r, len(missing))
    across = across_ranks(ranks)
    if across is not None:
        split_communication(across)
    with_rates(across, ranks, len(missing))
    advise(across, ranks)
    return Document(
        schema_version=SCHEMA_VERSION,
        source=", ".join(r.source for r in ranks),
        ranks=[r.rank for r in ranks],
        collectives=collective_rows(across) if across else [],
        clock_offset_us={str(r): us(ns) for r, ns in sorted(across.offsets.items())} if across else {},
        missing_ranks=missing,
        world_size=world,
        flags=[*_missing_flag(missing, world), *(flags(across) if across else [])],
    )


class _Lazily(Mapping[int, Columns]):
    """Columns of each rank, made when they are asked for and kept."""

    def __init__(self, stages: dict[int, Stages], make: Callable[[Stages], Columns]) -> None:
        self._stages, self._make = stages, make
        self._made: dict[int, Columns] = {}

    def __getitem__(self, rank: int) -> Columns:
        if rank not in self._made:
            self._made[rank] = self._make(self._stages[rank])
        return self._made[rank]

    def __iter__(self) -> Iterator[int]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)


def _one_file_each(results: Sequence[RankResult]) -> None:
    first: dict[int, str] = {}
    for r in results:
        rank = r.rank.rank
        if rank in first:
            raise Refused(
                f"rank {rank} is there twice: both {first[rank]} and {r.source} say that they are it",
                hint="give each rank's file once, or analyse the runs one by one",
            )
        first[rank] = r.source


def _missing(present: Sequence[int], world: int | None) -> list[int]:
    # A world size from a hostile file must not make a list of a billion ranks.
    return [] if world is None or world > 100_000 else sorted(set(range(world)) - set(present))


def _missing_flag(missing: Sequence[int], world: int | None) -> list[Flag]:
    return (
        [Flag("missing_ranks", len(missing), f"not given: [{listed(missing)}] of {world}")] if missing else []
    )


def _frame(rows: Sequence[tuple[int, Any]]) -> pd.DataFrame:
    import msgspec

    return _pandas().DataFrame([{"rank": rank, **msgspec.to_builtins(row)} for rank, row in rows])


def _stacked(columns: Mapping[int, Columns]) -> pd.DataFrame:
    pandas = _pandas()
    frames = [pandas.DataFrame({"rank": rank, **of_rank}) for rank, of_rank in columns.items()]
    return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as e:
        raise MissingExtra("pandas is needed for tables: pip install 'rooflight[notebook]'") from e
    return pd
