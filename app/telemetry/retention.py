"""Telemetry older than asked for goes, device by device: the key of the table begins with the device."""

from __future__ import annotations

import asyncio
import time

import structlog
from sqlalchemy import delete, select
from sqlalchemy.exc import DBAPIError

from app.db import Database
from app.models import DeviceRow, TelemetryRow

log = structlog.get_logger()
_DAY_US = 86_400_000_000
_EVERY_S = 3600.0


async def expire(database: Database, days: float, now: float) -> int:
    """Remove what ended more than ``days`` before ``now`` (s since the epoch); returns how many rows."""
    edge = int(now * 1e6) - int(days * _DAY_US)
    async with database.read() as session:
        devices = list(await session.scalars(select(DeviceRow.id).order_by(DeviceRow.id)))
    gone = 0
    for device in devices:
        old = (TelemetryRow.device_id == device, TelemetryRow.t_start_us < edge, TelemetryRow.t_end_us < edge)
        # A transaction for each: pushes wait for none of them long.
        async with database.write() as session:
            gone += len((await session.execute(delete(TelemetryRow).where(*old).returning(1))).all())
    return gone


async def keep_expiring(database: Database, days: float) -> None:
    """Once an hour, until cancelled; days of 0 keep everything."""
    while days:
        try:
            if gone := await expire(database, days, time.time()):
                log.info("old telemetry removed", rows=gone)
        except DBAPIError as error:
            log.error("old telemetry could not be removed", exc_info=error)
        await asyncio.sleep(_EVERY_S)
