"""A push of telemetry into the database: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import Table, select
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from app.db import WriteSession, insert_new
from app.idempotency import Outcome
from app.models import DeviceRow, HostRow, TelemetryRow
from app.models.base import new_id
from app.telemetry.flags import skew_flags
from app.telemetry.push import Push, Row
from app.telemetry.schemas import ReceivedOut


@dataclass(frozen=True, slots=True)
class Arrival:
    """A push with when it came, by this server's clock, and for whom (a project's id, or empty)."""

    push: Push
    scope: str
    at: datetime

    @property
    def skew_s(self) -> float | None:
        """This server's clock less the agent's."""
        if self.push.sent_us is None:
            return None
        return round(self.at.timestamp() - self.push.sent_us / 1e6, 3)


async def store(session: WriteSession, arrival: Arrival) -> Outcome:
    """Store what is new; rows that are there already stay as they are."""
    push = arrival.push
    host = await _host(session, arrival) if push.host else None
    devices = await _devices(session, arrival, host)
    added = await _insert(session, push.rows, devices)
    answer = ReceivedOut(
        received=len(push.rows),
        added=added,
        devices=len(devices),
        skew_s=arrival.skew_s,
        flags=skew_flags(arrival.skew_s),
        # Without a host there is no one to count them for: the agent goes on telling them.
        dropped=push.dropped if host else {},
    )
    return Outcome(201, answer.model_dump(mode="json"))


async def _host(session: WriteSession, arrival: Arrival) -> HostRow:
    name, at = arrival.push.host, arrival.at
    values = {"scope": arrival.scope, "name": name, "first_seen": at, "last_seen": at, "dropped": {}}
    await insert_new(session, HostRow, id=new_id(), **values)
    known = select(HostRow).where(HostRow.scope == arrival.scope, HostRow.name == name)
    host = (await session.scalars(known.with_for_update())).one()
    host.last_seen = max(host.last_seen, at)
    host.skew_s = host.skew_s if arrival.skew_s is None else arrival.skew_s
    told = arrival.push.dropped
    host.dropped = {k: host.dropped.get(k, 0) + told.get(k, 0) for k in {**host.dropped, **told}}
    await session.flush()
    return host


async def _devices(session: WriteSession, arrival: Arrival, host: HostRow | None) -> dict[str, str]:
    """UUID → id of every device that the push speaks of; each row is locked, in one order for all."""
    newest: dict[str, Row] = {}
    for row in arrival.push.rows:
        before = newest.get(row.uuid)
        if before is None or row.t_end_us >= before.t_end_us:
            newest[row.uuid] = row
    rows = await _locked(session, arrival.scope, newest)
    missing = sorted(set(newest) - set(rows))
    for uuid in missing:
        values = {"scope": arrival.scope, "uuid": uuid, "first_seen": arrival.at, "last_seen": arrival.at}
        await insert_new(session, DeviceRow, id=new_id(), latest_us=0, **values)
    if missing:
        rows = await _locked(session, arrival.scope, newest)
    for uuid, device in rows.items():
        _update(device, newest[uuid], arrival, host)
    await session.flush()
    return {uuid: device.id for uuid, device in rows.items()}


async def _locked(session: WriteSession, scope: str, uuids: Iterable[str]) -> dict[str, DeviceRow]:
    known = select(DeviceRow).where(DeviceRow.scope == scope, DeviceRow.uuid.in_(list(uuids)))
    found = await session.scalars(known.order_by(DeviceRow.uuid).with_for_update())
    return {device.uuid: device for device in found}


def _update(device: DeviceRow, newest: Row, arrival: Arrival, host: HostRow | None) -> None:
    device.last_seen = max(device.last_seen, arrival.at)
    device.skew_s = device.skew_s if arrival.skew_s is None else arrival.skew_s
    if newest.t_end_us < device.latest_us:
        return  # what was kept through an outage says nothing of now
    device.latest_us = newest.t_end_us
    device.host_id = host.id if host else device.host_id
    device.name = newest.fields.get("name") or device.name
    device.parent_uuid = newest.fields.get("parent_uuid") or device.parent_uuid
    device.state = newest.fields.get("state") or device.state


async def _insert(session: WriteSession, rows: list[Row], devices: dict[str, str]) -> int:
    """How many rows were not there before."""
    if not rows:
        return 0
    sqlite = session.get_bind().dialect.name == "sqlite"
    insert = (sqlite_insert if sqlite else postgres_insert)(cast(Table, TelemetryRow.__table__))
    new = insert.on_conflict_do_nothing().returning(TelemetryRow.__table__.c.t_start_us)
    values = [
        {
            "device_id": devices[row.uuid],
            "t_start_us": row.t_start_us,
            "t_end_us": row.t_end_us,
            "is_sample": row.is_sample,
            "fields": row.fields,
        }
        for row in rows
    ]
    return len((await session.execute(new, values)).all())
