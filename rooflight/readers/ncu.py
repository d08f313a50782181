"""Nsight Compute's CSV (``ncu --csv``), both layouts.

``--page raw`` has a row per launch and a column per metric, and below the header a row of units.
``--page details`` (the default) has a row per metric, and one per rule:

    "ID","Process ID",...,"Kernel Name",...,"Grid Size",...,"Metric Name","Metric Unit","Metric Value"

Values are printed in units that suit them, with thousands separators; "n/a" is none.  Metrics asked for by
name (``--metrics``) keep it, those of sections have a label in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rooflight.readers.amounts import amount, sizes
from rooflight.readers.sheets import Row
from rooflight.trace.counters import CountedLaunch, CounterFile

_KEYS = ("ID", "Kernel Name")
_NAME, _UNIT, _VALUE = "Metric Name", "Metric Unit", "Metric Value"
#: Metrics that tell what a launch did; a whole set has thousands.
_READ = (
    "dram__",
    "lts__t_bytes.sum",
    "lts__t_sectors.sum",
    "l1tex__t_bytes.sum",
    "l1tex__t_sectors.sum",
    "gpu__time_duration",
    "sm__throughput",
    "sm__ops_path_tensor",
    "sm__inst_executed_pipe_tensor",
    "smsp__sass_thread_inst_executed_op_",
    "sm__sass_thread_inst_executed_op_",
)
#: The labels of such metrics, as sections of Nsight Compute 2022 to 2026 print them; by the kind of unit, as
#: "Memory Throughput" is a share in one section and a rate in another.
_LABELS = {
    ("Duration", "time"): "gpu__time_duration.sum",
    ("Memory Throughput", "rate"): "dram__bytes.sum.per_second",
}
_NOT_TOLD = ("n/a", "nan", "-nan", "no data")


def is_header(cells: Sequence[str]) -> bool:
    """Whether this is the header of either layout."""
    return all(key in cells for key in _KEYS)


def launches(header: Sequence[str], rows: Iterator[Row], name: str) -> CounterFile:
    """The counted launches of a table with this header."""
    found = _Launches()
    if {_NAME, _UNIT, _VALUE} <= set(header):
        for row in rows:
            found.add(row, [(row[_NAME], row[_UNIT], row[_VALUE])])
    else:
        metrics = [column for column in header if column.startswith(_READ)]
        units: Row = {}
        for row in rows:
            if not row["ID"] and not row["Kernel Name"]:
                units = row
            else:
                found.add(row, [(m, units.get(m, ""), row[m]) for m in metrics])
    return CounterFile(name, tuple(found.all()), found.unavailable)


class _Launches:
    """Metrics gathered by launch, in order of first appearance."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], Row] = {}
        self._values: dict[tuple[str, str], dict[str, float]] = {}
        self.unavailable = 0

    def add(self, row: Row, metrics: Iterable[tuple[str, str, str]]) -> None:
        if not row["ID"].isdecimal():
            return
        key = row.get("Process ID", ""), row["ID"]
        self._first.setdefault(key, row)
        values = self._values.setdefault(key, {})
        for metric, unit, text in metrics:
            if (known := _known(metric, unit)) is None:
                continue
            value = amount(text, unit)
            if value is not None:
                values.setdefault(known, value)
            self.unavailable += text.lower().endswith(_NOT_TOLD)

    def all(self) -> Iterator[CountedLaunch]:
        for key, row in self._first.items():
            yield CountedLaunch(
                name=row["Kernel Name"],
                values=self._values[key],
                process=key[0],
                device=row.get("Device", ""),
                grid=sizes(row.get("Grid Size", "")),
                block=sizes(row.get("Block Size", "")),
            )


def _known(metric: str, unit: str) -> str | None:
    """The name of a metric that is read, ``None`` for any other."""
    if metric.startswith(_READ):
        return metric
    if unit.endswith(("byte/second", "byte/s")):
        return _LABELS.get((metric, "rate"))
    return _LABELS.get((metric, "time")) if unit.endswith(("second", "s")) else None
