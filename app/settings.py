"""Every setting of the service, with its default, its unit and its help.

Each is read from the environment as ``ROOFLIGHT_`` + its name in capitals; flags of the command line win.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import URL, make_url

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
MIB = 2**20
GIB = 2**30


def _default_data() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "rooflight"


class Settings(BaseSettings):
    """The service's settings; immutable once read."""

    model_config = SettingsConfigDict(env_prefix="ROOFLIGHT_", frozen=True, extra="ignore")

    data: Path = Field(default_factory=_default_data, description="Folder of database, traces and events.")
    database: str = Field("", description="Database URL; empty means SQLite in the data folder.")
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8585, ge=0, le=65535, description="TCP port; 0 takes a free one.")
    allow_remote: bool = Field(
        False, description="Permit an address other than loopback; a token must exist already."
    )
    allowed_hosts: list[str] = Field(
        default_factory=list,
        description="Further names by which browsers may address the service (JSON list).",
    )
    secret: str = Field("", description="Key of signed cookies; empty means one kept in the data folder.")
    upload_bytes: int = Field(2 * GIB, gt=0, description="Largest trace as sent, in bytes.")
    unpacked_bytes: int = Field(8 * GIB, gt=0, description="Largest trace once inflated, in bytes.")
    ratio: int = Field(200, gt=0, description="Largest ratio of inflated to sent bytes.")
    body_bytes: int = Field(128 * MIB, gt=0, description="Largest body of any other request, in bytes.")
    workers: int = Field(
        1, ge=0, le=64, description="Analyses run at once by this server; 0 leaves them to workers."
    )
    worker_memory_mib: int = Field(8192, ge=256, description="Address space of one analysis, in MiB.")
    job_seconds: float = Field(1800, gt=0, description="Longest run of one attempt at a job, in seconds.")
    lease_seconds: float = Field(
        30, gt=0, description="A job without a heartbeat for this long is taken over."
    )
    telemetry_days: float = Field(
        90, ge=0, le=36_500, description="Telemetry is kept for so many days; 0 keeps it for ever."
    )
    log_json: bool = Field(False, description="Write the log as JSON lines.")
    prices: Path | None = Field(
        None, description="Price list of your own (CSV), which wins over the built-in one; read at the start."
    )

    @field_validator("prices", mode="before")
    @classmethod
    def _unset(cls, value: object) -> object:
        return None if value == "" else value

    @property
    def exposed(self) -> bool:
        """Whether others than this machine can reach the server."""
        return self.host not in LOOPBACK

    @property
    def url(self) -> URL:
        """The database's URL with the driver that both the blocking and the async engine know."""
        url = (
            make_url(self.database)
            if self.database
            else URL.create("sqlite", database=str(self.data / "rooflight.db"))
        )
        if url.get_backend_name() == "postgresql":
            return url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() == "sqlite":
            return url.set(drivername="sqlite")
        raise ValueError(f"unknown database {url.get_backend_name()!r}: use sqlite:/// or postgresql://")

    def signing_key(self) -> str:
        """The configured secret, else one made at the first call and kept, readable by its owner only."""
        if self.secret:
            return self.secret
        path = self.data / "secret"
        self.data.mkdir(parents=True, exist_ok=True)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_text("ascii").strip()
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32))
        return path.read_text("ascii").strip()
