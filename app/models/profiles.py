"""What a run was given, and the one analysis of all of it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, Id, UtcDateTime, new_id, utcnow

#: What a profile is.  The rank of an execution trace is that of the trace which it completes.
TRACE, EXECUTION, PUSH = "trace", "execution", "push"


class Profile(Base):
    """One accepted input: a raw trace (``blob_id``) or a pushed analysis (``document``, compressed JSON).

    ``events`` is the path of its launches' Parquet file inside the event store, if it has launches;
    ``result`` is what is kept of a trace's analysis (:mod:`app.ingest.kept`).
    """

    __tablename__ = "profiles"
    __table_args__ = (Index("ix_profiles_run_id", "run_id"), Index("ix_profiles_blob_id", "blob_id"))

    id: Mapped[str] = mapped_column(Id, primary_key=True, default=new_id)
    run_id: Mapped[str] = mapped_column(Id, ForeignKey("runs.id"))
    kind: Mapped[str] = mapped_column(String(16))
    source: Mapped[str] = mapped_column(Text)
    ranks: Mapped[list[int]] = mapped_column(JSON)
    blob_id: Mapped[str | None] = mapped_column(String(64), ForeignKey("blobs.id"))
    document: Mapped[bytes | None] = mapped_column(LargeBinary)
    events: Mapped[str | None] = mapped_column(Text)
    result: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utcnow)


class RunDocument(Base):
    """The merged analysis of a run: compressed JSON of ``rooflight.protocol.Document``."""

    __tablename__ = "run_documents"

    run_id: Mapped[str] = mapped_column(Id, ForeignKey("runs.id"), primary_key=True)
    schema_version: Mapped[int] = mapped_column(BigInteger)
    body: Mapped[bytes] = mapped_column(LargeBinary)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utcnow)
