"""Counters of AMD's profilers.

rocprof-compute's ``pmc_perf.csv`` has a row per dispatch and a column per counter.  rocprofv3 ``--pmc``
writes ``*_counter_collection.csv`` with a row per dispatch and counter, or JSON (ROCm/rocprofiler-sdk,
source/lib/output/generateJSON.cpp, as far as it is read):

    {"rocprofiler-sdk-tool": [{
      "metadata": {"pid": 1}, "counters": [{"id": {"handle": 7}, "name": "SQ_WAVES"}],
      "kernel_symbols": [{"kernel_id": 8, "formatted_kernel_name": "..."}],
      "callback_records": {"counter_collection": [{
        "dispatch_data": {"dispatch_info": {"kernel_id": 8, "grid_size": {"x": 256, ...}, ...}},
        "records": [{"counter_id": {"handle": 7}, "value": 64}]}]}}]}

A grid counts work-items.  The records of one counter are those of its instances, and add up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct, field

from rooflight.errors import Malformed, NotATrace
from rooflight.readers.amounts import number
from rooflight.readers.sheets import HINT, Row
from rooflight.trace.counters import CountedLaunch, CounterFile

_KERNEL = "Kernel_Name"
_COUNTER, _VALUE = "Counter_Name", "Counter_Value"
_PLACE = ("Dispatch_ID", "Dispatch_Id")
_GRID, _GROUP = "Grid_Size", "Workgroup_Size"
#: Counters that tell what a dispatch did.
_READ = ("SQ_INSTS_", "TCC_EA", "TCC_BUBBLE", "FETCH_SIZE", "WRITE_SIZE")
_Values = defaultdict[str, float]


def is_header(cells: Sequence[str]) -> bool:
    """Whether this is the header of a table of dispatches."""
    return _KERNEL in cells and any(key in cells for key in _PLACE)


def launches(header: Sequence[str], rows: Iterator[Row], name: str) -> CounterFile:
    """The counted dispatches of a table with this header."""
    # Channels of a cache have a column each, with their number in brackets, beside their sum.
    counters = [c for c in header if c.startswith(_READ) and "[" not in c]
    place = next(key for key in _PLACE if key in header)
    first: dict[tuple[str, ...], Row] = {}
    values: defaultdict[tuple[str, ...], _Values] = defaultdict(lambda: defaultdict(float))
    unavailable = 0
    for row in rows:
        key = row.get("Process_Id", ""), row.get("Agent_Id", row.get("GPU_ID", "")), row[place]
        first.setdefault(key, row)
        found = [(row[_COUNTER], row.get(_VALUE, ""))] if _COUNTER in row else [(c, row[c]) for c in counters]
        for counter, text in found:
            value = number(text) if counter.startswith(_READ) else None
            unavailable += value is None and counter.startswith(_READ) and bool(text)
            if value is not None:
                values[key][counter] += float(value)
    counted = (_launch(row, _summed(values[key]), key) for key, row in first.items())
    return CounterFile(name, tuple(counted), unavailable)


def _summed(values: _Values) -> dict[str, float]:
    """The counters; what the instances of a cache counted one by one is their sum, too."""
    sums = {f"{c}_sum": v for c, v in values.items() if c.startswith("TCC_") and not c.endswith("_sum")}
    return {**sums, **values}


def _launch(row: Row, values: dict[str, float], key: tuple[str, ...]) -> CountedLaunch:
    threads, block = number(row.get(_GRID, "")), number(row.get(_GROUP, ""))
    return CountedLaunch(
        name=plain(row[_KERNEL]),
        values=values,
        process=key[0],
        device=key[1],
        threads=None if threads is None else int(threads),
        block=None if block is None else (int(block),),
    )


def plain(name: str) -> str:
    """The kernel's name without the mark of its descriptor."""
    return name.removesuffix(" (.kd)").removesuffix(".kd")


# -- JSON --------------------------------------------------------------------------------------------


class _Handle(Struct, frozen=True):
    handle: int = -1


class _Counter(Struct, frozen=True):
    id: _Handle = _Handle()
    name: str = ""


class _Symbol(Struct, frozen=True):
    kernel_id: int = -1
    formatted_kernel_name: str = ""
    kernel_name: str = ""


class _Size(Struct, frozen=True):
    x: int = 1
    y: int = 1
    z: int = 1

    @property
    def all(self) -> int:
        return math.prod((self.x, self.y, self.z))


class _Dispatch(Struct, frozen=True):
    kernel_id: int = -1
    dispatch_id: int = -1
    agent_id: _Handle = _Handle()
    workgroup_size: _Size = _Size()
    grid_size: _Size = _Size()


class _DispatchData(Struct, frozen=True):
    dispatch_info: _Dispatch = _Dispatch()


class _Record(Struct, frozen=True):
    counter_id: _Handle = _Handle()
    value: float = 0.0


class _Collected(Struct, frozen=True):
    dispatch_data: _DispatchData = _DispatchData()
    records: list[_Record] = field(default_factory=list)


class _Callbacks(Struct, frozen=True):
    counter_collection: list[_Collected] = field(default_factory=list)


class _Metadata(Struct, frozen=True):
    pid: int = -1


class _Process(Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    counters: list[_Counter] = field(default_factory=list)
    kernel_symbols: list[_Symbol] = field(default_factory=list)
    callback_records: _Callbacks = _Callbacks()


class _Document(Struct, frozen=True):
    processes: list[_Process] = field(name="rocprofiler-sdk-tool", default_factory=list)


def read_json(data: bytes, name: str) -> CounterFile:
    """The counted dispatches of rocprofv3's JSON; :class:`~rooflight.errors.Refused` when it has none."""
    try:
        document = msgspec.json.decode(data, type=_Document)
    except (msgspec.DecodeError, RecursionError) as e:
        raise Malformed(f"not rocprofv3's JSON: {e}", where=name, hint=HINT) from e
    launches = tuple(launch for process in document.processes for launch in _collected(process))
    if not launches:
        raise NotATrace(
            "no counters: rocprofv3 recorded dispatches alone", where=name, hint="record with rocprofv3 --pmc"
        )
    return CounterFile(name, launches)


def _collected(process: _Process) -> Iterator[CountedLaunch]:
    names = {c.id.handle: c.name for c in process.counters}
    kernels = {s.kernel_id: s.formatted_kernel_name or s.kernel_name for s in process.kernel_symbols}
    for found in process.callback_records.counter_collection:
        info = found.dispatch_data.dispatch_info
        values: _Values = defaultdict(float)
        for record in found.records:
            if (counter := names.get(record.counter_id.handle, "")).startswith(_READ):
                values[counter] += record.value
        yield CountedLaunch(
            name=plain(kernels.get(info.kernel_id, "")),
            values=_summed(values),
            process=str(process.metadata.pid),
            device=str(info.agent_id.handle),
            threads=info.grid_size.all,
            block=(info.workgroup_size.all,),
        )
