"""Telemetry on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from app.times import Instant

SKEW_S = 5.0


class SkewFlag(BaseModel):
    """A clock that is wrong: the data is kept, by the host's own times."""

    code: str = Field(description="clock_skew")
    value: float = Field(description="Seconds between the two clocks, without sign.")
    detail: str


class ReceivedOut(BaseModel):
    """What became of a push."""

    received: int = Field(description="Rows of the push.")
    added: int = Field(description="Rows that were not there before.")
    devices: int = Field(description="Devices that the push speaks of.")
    skew_s: float | None = Field(description="This server's clock less the agent's, in seconds.")
    flags: list[SkewFlag]
    dropped: dict[str, int] = Field(description="What was counted of the batches that the agent dropped.")


class HostOut(BaseModel):
    """A machine whose agent reports."""

    id: str
    name: str
    first_seen: Instant
    last_seen: Instant = Field(description="By this server's clock.")
    devices: int
    skew_s: float | None = Field(description="At the last push: this server's clock less the host's.")
    flags: list[SkewFlag]
    dropped: dict[str, int] = Field(
        description="Batches that its agent gave up since the first push, by kind."
    )


class HostPage(BaseModel):
    """Hosts by name."""

    items: list[HostOut]
    next_cursor: str | None


class DeviceOut(BaseModel):
    """A device of a host; unknown is null."""

    id: str
    uuid: str
    host: str | None
    name: str | None
    parent_uuid: str | None = Field(description="The device that a MIG instance is part of.")
    state: str | None = Field(description="Of the newest window: ok, lost, …")
    first_seen: Instant
    last_seen: Instant = Field(description="By this server's clock.")
    latest: Instant = Field(description="End of the newest window, by the host's clock.")
    skew_s: float | None
    flags: list[SkewFlag]


class DevicePage(BaseModel):
    """Devices by UUID."""

    items: list[DeviceOut]
    next_cursor: str | None


class TelemetryOut(BaseModel):
    """A window of a device, or a sample, whose two times are one.  Its other fields are as they were sent;
    integers beyond 2^53 are decimal strings."""

    t_start: Instant
    t_end: Instant
    sample: bool
    fields: dict[str, Any]


class TelemetryPage(BaseModel):
    """What was measured of a device, in order of time."""

    device: str = Field(description="Its UUID.")
    items: list[TelemetryOut]
    next_cursor: str | None


class Fleet(BaseModel):
    """All that reports here."""

    hosts: int
    devices: int
    states: dict[str, int] = Field(description="Devices by state; `unknown` where none was told.")
    last_seen: Instant | None
    skewed_hosts: int = Field(description="Hosts whose clock is more than 5 s off.")
    dropped: dict[str, int] = Field(description="Batches that agents gave up, by kind.")
