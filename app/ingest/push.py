"""What is pushed instead of a trace: an analysis, or only the kernels that another tool measured."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from app.ingest.storable import read_json, storable
from rooflight.errors import ProtocolMismatch, Refused
from rooflight.protocol import ORIGINS, REGIMES, SCHEMA_VERSION, Document, Flag, Kernel, Rank, Roofs
from rooflight.units import us

_GRADES = ("complete", "usable", "unreliable")
_CONFIDENCES = ("high", "medium", "low")
MAX_RANKS = 65_536
_WITHHELD = "only kernel totals were sent: no steps and no gaps are known"

Launches = dict[int, dict[str, np.ndarray]]


class _Given(msgspec.Struct):
    """A kernel as other tools know it: a total, or one launch with its start and end in integer ns."""

    name: str
    time_us: float | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    count: int = 1
    op: str | None = None
    module: str | None = None
    input_dims: str | None = None
    input_types: str | None = None
    device: str = "0"
    family: str | None = None
    dtype: str | None = None
    flops: int | None = None
    bytes: int | None = None
    origin: str | None = None
    regime: str = "unknown"


def parse(body: bytes) -> tuple[Document, Launches]:
    """The document of a push and the launches it tells; :class:`Refused` names field and fault."""
    given = storable(read_json(body, "an analysis"))
    if not isinstance(given, dict):
        raise Refused(
            "an analysis is a JSON object", where="the body", hint="send the JSON of `rooflight analyze`"
        )
    if "ranks" not in given and "kernels" in given:
        return _of_kernels(given)
    return _of_analysis(given), {}


def _of_analysis(given: dict[str, Any]) -> Document:
    version = given.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise ProtocolMismatch(
            f"schema_version {version} is newer than {SCHEMA_VERSION}: upgrade this server"
        )
    document: Document = _convert(given, Document)
    if not document.ranks:
        raise Refused("an analysis has at least one rank", where="ranks")
    if len(document.ranks) > MAX_RANKS:
        raise Refused(f"more than {MAX_RANKS} ranks", where="ranks")
    for i, rank in enumerate(document.ranks):
        _check_rank(rank, f"ranks[{i}]")
    return document


def _convert(given: Any, kind: type[Any], where: str = "") -> Any:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as e:
        reason, _, path = str(e).partition(" - at ")
        field = path.strip("`").removeprefix("$").removeprefix(".")
        raise Refused(f"not an analysis: {reason}", where=".".join(p for p in (where, field) if p)) from e


def _check_rank(rank: Rank, where: str) -> None:
    if rank.rank < 0:
        raise Refused("a rank must not be negative", where=f"{where}.rank")
    _one_of(rank.grade, _GRADES, f"{where}.grade")
    for device, roofs in rank.roofs.items():
        _check_roofs(roofs, f"{where}.roofs.{device}")
    _check_verdict(rank, where)
    kernels = [("kernels", rank.kernels)]
    steps: list[tuple[str, list[Any]]] = [("steps", rank.steps), ("inferred_steps", rank.inferred_steps)]
    if rank.cpu is not None:
        _check_roofs(rank.cpu.roof, f"{where}.cpu.roof")
        _check_verdict(rank.cpu, f"{where}.cpu")
        kernels.append(("cpu.ops", rank.cpu.ops))
        steps.append(("cpu.steps", rank.cpu.steps))
    for name, rows in kernels:
        for i, kernel in enumerate(rows):
            _one_of(kernel.regime, REGIMES, f"{where}.{name}[{i}].regime")
            _one_of(kernel.origin, ORIGINS, f"{where}.{name}[{i}].origin")
    for name, rows in steps:
        for i, step in enumerate(rows):
            _check_verdict(step, f"{where}.{name}[{i}]")


def _check_roofs(roofs: Roofs, where: str) -> None:
    """Roofs are drawn on logarithmic axes and divided by."""
    named = {"memory": roofs.memory, "link": roofs.link, "pcie": roofs.pcie}
    named |= {f"compute.{dtype}": ceiling for dtype, ceiling in roofs.compute.items()}
    named |= {f"vector.{dtype}": ceiling for dtype, ceiling in roofs.vector.items()}
    for name, ceiling in named.items():
        for field in ("datasheet", "practical") if ceiling is not None else ():
            value = getattr(ceiling, field)
            if value is not None and value < 1:
                raise Refused("a roof must be at least 1 per second", where=f"{where}.{name}.{field}")


def _check_verdict(owner: Any, where: str) -> None:
    _one_of(owner.regime, (None, *REGIMES), f"{where}.regime")
    _one_of(owner.regime_confidence, (None, *_CONFIDENCES), f"{where}.regime_confidence")


def _one_of(value: str | None, allowed: tuple[str | None, ...], where: str) -> None:
    if value not in allowed:
        raise Refused(f"must be one of {', '.join(str(a) for a in allowed if a)}", where=where)


def _of_kernels(given: dict[str, Any]) -> tuple[Document, Launches]:
    rows = given["kernels"]
    if not isinstance(rows, list) or not rows:
        raise Refused("kernels is a list of at least one kernel", where="kernels")
    kernels = [_given_kernel(row, f"kernels[{i}]") for i, row in enumerate(rows)]
    launches = [k for k in kernels if k.start_ns is not None]
    groups = [_total(k) for k in kernels if k.start_ns is None] + _grouped(launches)
    total = sum(g.time_us for g in groups)
    for group in groups:
        group.share_pct = round(100 * group.time_us / total, 2) if total else None
    rank = Rank(
        rank=0,
        grade="usable",
        grade_reasons=[_WITHHELD],
        verdict_withheld=_WITHHELD,
        flags=[Flag("rank_assumed", 1, "the push names no rank"), Flag("no_steps", None, _WITHHELD)],
        kernels=sorted(groups, key=lambda g: -g.time_us),
        regime_reason=_WITHHELD,
        host=_run_text(given, "host"),
    )
    document = Document(
        schema_version=SCHEMA_VERSION,
        source=_run_text(given, "name") or "pushed kernels",
        ranks=[rank],
        telemetry=_metrics(given),
    )
    return document, {0: _columns(launches)} if launches else {}


def _given_kernel(row: Any, where: str) -> _Given:
    kernel: _Given = _convert(row, _Given, where)
    for field in ("time_us", "start_ns", "end_ns", "flops", "bytes"):
        value = getattr(kernel, field)
        if value is not None and value < 0:
            raise Refused(f"{field} must not be negative", where=f"{where}.{field}")
    if kernel.count < 1:
        raise Refused("count must be at least 1", where=f"{where}.count")
    _one_of(kernel.regime, REGIMES, f"{where}.regime")
    _one_of(kernel.origin, (None, *ORIGINS), f"{where}.origin")
    if kernel.time_us is None and (kernel.start_ns is None or kernel.end_ns is None):
        raise Refused("a kernel needs time_us, or start_ns and end_ns", where=where)
    if kernel.start_ns is not None and kernel.end_ns is not None and kernel.end_ns < kernel.start_ns:
        raise Refused("end_ns lies before start_ns", where=f"{where}.end_ns")
    return kernel


def _total(given: _Given) -> Kernel:
    return _kernel(
        given, count=given.count, time_us=given.time_us or 0.0, flops=given.flops, size=given.bytes
    )


def _grouped(launches: list[_Given]) -> list[Kernel]:
    groups: dict[tuple[str | None, ...], list[_Given]] = {}
    for k in launches:
        groups.setdefault((k.name, k.op, k.module, k.input_dims, k.input_types, k.device), []).append(k)
    return [_group(members) for members in groups.values()]


def _group(members: list[_Given]) -> Kernel:
    durations = [_duration_ns(m) for m in members]
    kernel = _kernel(
        members[0],
        count=len(members),
        time_us=us(sum(durations)),
        flops=_sum_known([m.flops for m in members]),
        size=_sum_known([m.bytes for m in members]),
    )
    kernel.min_us, kernel.max_us = us(min(durations)), us(max(durations))
    kernel.p50_us = us(float(np.median(durations)))
    return kernel


def _kernel(given: _Given, *, count: int, time_us: float, flops: int | None, size: int | None) -> Kernel:
    known = flops is not None or size is not None
    return Kernel(
        name=given.name,
        short_name=given.name[:200],
        family=given.family,
        dtype=given.dtype,
        op=given.op,
        module=given.module,
        input_dims=given.input_dims,
        input_types=given.input_types,
        device=given.device,
        count=count,
        time_us=time_us,
        flops=flops,
        bytes=size,
        origin=given.origin or ("measured" if known else "unknown"),
        ai=round(flops / size, 3) if flops is not None and size else None,
        achieved_tflops=round(flops / time_us / 1e6, 3) if flops is not None and time_us else None,
        achieved_gbs=round(size / time_us / 1e3, 3) if size is not None and time_us else None,
        regime=given.regime,
        reason="sent without a roof",
    )


def _sum_known(values: list[int | None]) -> int | None:
    """The total, or ``None`` when a part is unknown or the total fits no 64 bits."""
    known = [v for v in values if v is not None]
    total = sum(known)
    return total if len(known) == len(values) and total < 2**63 else None


def _duration_ns(k: _Given) -> int:
    if k.start_ns is not None and k.end_ns is not None:
        return k.end_ns - k.start_ns
    return round((k.time_us or 0.0) * 1_000)


def _columns(launches: list[_Given]) -> dict[str, np.ndarray]:
    def optional(values: list[int | None]) -> np.ndarray:
        return np.array(values, dtype=object)

    return {
        "name": np.array([k.name for k in launches], dtype=object),
        "device": np.array([k.device for k in launches], dtype=object),
        "start_ns": np.array([k.start_ns for k in launches], dtype=np.int64),
        "dur_ns": np.array([_duration_ns(k) for k in launches], dtype=np.int64),
        "flops": optional([k.flops for k in launches]),
        "bytes": optional([k.bytes for k in launches]),
    }


def _run_text(given: dict[str, Any], field: str) -> str | None:
    run = given.get("run")
    value = run.get(field) if isinstance(run, dict) else None
    return value if isinstance(value, str) and value else None


def _metrics(given: dict[str, Any]) -> dict[str, Any] | None:
    rows = given.get("metrics")
    if rows is None:
        return None
    if not isinstance(rows, list):
        raise Refused("metrics is a list of {name, value, unit}", where="metrics")
    for i, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise Refused("a metric has a name", where=f"metrics[{i}].name")
        value = row.get("value")
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise Refused("a metric's value is a number or null", where=f"metrics[{i}].value")
    return {"metrics": rows}
