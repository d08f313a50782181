"""Hosts, devices and their telemetry in the database.  ``project_id`` is as in :mod:`app.runs.queries`."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, and_, func, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from app.models import DeviceRow, HostRow, TelemetryRow
from app.problems import NotFound
from app.telemetry.flags import skew_flags
from app.telemetry.schemas import (
    SKEW_S,
    DeviceOut,
    DevicePage,
    Fleet,
    HostOut,
    HostPage,
    TelemetryOut,
    TelemetryPage,
)
from app.text import clean
from rooflight.errors import Refused

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Integers beyond it are rounded by a browser.
_EXACT = 2**53 - 1


async def fleet(session: AsyncSession, project_id: str | None) -> Fleet:
    """What reports here, counted."""
    hosts = list(await session.scalars(select(HostRow).where(_seen_by(HostRow.scope, project_id))))
    counted = select(DeviceRow.state, func.count(), func.max(DeviceRow.last_seen))
    states = list(
        await session.execute(counted.where(_seen_by(DeviceRow.scope, project_id)).group_by(DeviceRow.state))
    )
    dropped: Counter[str] = Counter()
    for host in hosts:
        dropped.update(host.dropped)
    return Fleet(
        hosts=len(hosts),
        devices=sum(n for _, n, _ in states),
        states={state or "unknown": n for state, n, _ in states},
        last_seen=max((at for _, _, at in states), default=None),
        skewed_hosts=sum(abs(host.skew_s or 0.0) > SKEW_S for host in hosts),
        dropped=dict(dropped),
    )


async def hosts(session: AsyncSession, project_id: str | None, cursor: str | None, limit: int) -> HostPage:
    """Hosts by name."""
    query = select(HostRow).where(_seen_by(HostRow.scope, project_id))
    if cursor:
        query = query.where(tuple_(HostRow.name, HostRow.id) > tuple_(*_read(cursor, str, str)))
    rows = list(await session.scalars(query.order_by(HostRow.name, HostRow.id).limit(limit + 1)))
    ids = [row.id for row in rows]
    counted = select(DeviceRow.host_id, func.count()).where(DeviceRow.host_id.in_(ids))
    counts = dict(list(await session.execute(counted.group_by(DeviceRow.host_id))))
    items = [_host_out(row, counts.get(row.id, 0)) for row in rows[:limit]]
    last = rows[limit - 1] if len(rows) > limit else None
    return HostPage(items=items, next_cursor=_cursor(last.name, last.id) if last else None)


async def devices(
    session: AsyncSession, project_id: str | None, host: str | None, cursor: str | None, limit: int
) -> DevicePage:
    """Devices by UUID; of one host (its id or name) when it is named."""
    query = select(DeviceRow, HostRow.name).outerjoin(HostRow, HostRow.id == DeviceRow.host_id)
    query = query.where(_seen_by(DeviceRow.scope, project_id))
    if host is not None:
        query = query.where(or_(HostRow.id == clean(host), HostRow.name == clean(host)))
    if cursor:
        query = query.where(tuple_(DeviceRow.uuid, DeviceRow.id) > tuple_(*_read(cursor, str, str)))
    rows = list(await session.execute(query.order_by(DeviceRow.uuid, DeviceRow.id).limit(limit + 1)))
    last = rows[limit - 1][0] if len(rows) > limit else None
    return DevicePage(
        items=[_device_out(row, name) for row, name in rows[:limit]],
        next_cursor=_cursor(last.uuid, last.id) if last else None,
    )


async def telemetry(
    session: AsyncSession,
    project_id: str | None,
    device: str,
    span_us: tuple[int | None, int | None],
    cursor: str | None,
    limit: int,
) -> TelemetryPage:
    """What overlaps ``span_us``, half open, of a device (its id or UUID), in order of time."""
    found = await _device(session, project_id, device)
    place = (TelemetryRow.t_start_us, TelemetryRow.t_end_us, TelemetryRow.is_sample)
    query = select(TelemetryRow).where(TelemetryRow.device_id == found.id)
    since, until = span_us
    if since is not None:
        query = query.where(or_(TelemetryRow.t_end_us > since, TelemetryRow.t_start_us >= since))
    if until is not None:
        query = query.where(TelemetryRow.t_start_us < until)
    if cursor:
        query = query.where(_after(*_read(cursor, int, int, bool)))
    rows = list(await session.scalars(query.order_by(*place).limit(limit + 1)))
    last = rows[limit - 1] if len(rows) > limit else None
    return TelemetryPage(
        device=found.uuid,
        items=[_telemetry_out(row) for row in rows[:limit]],
        next_cursor=_cursor(last.t_start_us, last.t_end_us, last.is_sample) if last else None,
    )


def _after(start: int, end: int, sample: bool) -> ColumnElement[bool]:
    row = TelemetryRow
    same = and_(row.t_start_us == start, row.t_end_us == end)
    later = and_(row.t_start_us == start, row.t_end_us > end)
    ahead = or_(row.t_start_us > start, later)
    return ahead if sample else or_(ahead, and_(same, row.is_sample))


async def _device(session: AsyncSession, project_id: str | None, device: str) -> DeviceRow:
    named = or_(DeviceRow.id == clean(device), DeviceRow.uuid == clean(device))
    query = select(DeviceRow).where(_seen_by(DeviceRow.scope, project_id), named)
    found = (await session.scalars(query.order_by(DeviceRow.last_seen.desc()).limit(1))).first()
    if found is None:
        where = f"device {clean(device)}"
        raise NotFound("there is no such device", where=where, hint="GET /api/v1/devices lists them")
    return found


def _seen_by(scope: Any, project_id: str | None) -> ColumnElement[bool]:
    """A token of one project sees its own, and what was reported without a project."""
    seen: ColumnElement[bool] = scope.is_not(None) if project_id is None else scope.in_(("", project_id))
    return seen


def _host_out(row: HostRow, n: int) -> HostOut:
    return HostOut(
        id=row.id,
        name=row.name,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        devices=n,
        skew_s=row.skew_s,
        flags=skew_flags(row.skew_s),
        dropped=row.dropped,
    )


def _device_out(row: DeviceRow, host: str | None) -> DeviceOut:
    return DeviceOut(
        id=row.id,
        uuid=row.uuid,
        host=host,
        name=row.name,
        parent_uuid=row.parent_uuid,
        state=row.state,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        latest=_time(row.latest_us),
        skew_s=row.skew_s,
        flags=skew_flags(row.skew_s),
    )


def _telemetry_out(row: TelemetryRow) -> TelemetryOut:
    return TelemetryOut(
        t_start=_time(row.t_start_us),
        t_end=_time(row.t_end_us),
        sample=row.is_sample,
        fields=_exact(row.fields),
    )


def _time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)


def _exact(value: Any) -> Any:
    """Integers that a browser would round, as decimal strings."""
    if isinstance(value, dict):
        return {k: _exact(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_exact(v) for v in value]
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if whole and abs(value) > _EXACT else value


def _cursor(*place: str | int) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode("ascii").rstrip("=")


def _read(text: str, *kinds: type) -> tuple[Any, ...]:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        place: tuple[Any, ...] = msgspec.json.decode(raw, type=tuple[kinds])  # type: ignore[valid-type]
        if any(isinstance(part, int) and abs(part) >= 2**63 for part in place):
            raise ValueError("too large")
    except (ValueError, binascii.Error) as e:
        hint = "take next_cursor as it was sent"
        raise Refused("this is no cursor of ours", where="query.cursor", hint=hint) from e
    return tuple(clean(part) if isinstance(part, str) else part for part in place)
