"""Hosts, their devices, and what was measured of these over time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_12_02_telemetry"
down_revision = "2026_12_02_captures"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "hosts",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("scope", sa.String(length=36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("skew_s", sa.Float(precision=53), nullable=True),
        sa.Column("dropped", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hosts"),
        sa.UniqueConstraint("scope", "name", name="uq_hosts_scope_name"),
    )
    op.create_table(
        "devices",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("scope", sa.String(length=36), nullable=False),
        sa.Column("uuid", sa.String(length=200), nullable=False),
        sa.Column("host_id", sa.String(length=36), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("parent_uuid", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("latest_us", sa.BigInteger(), nullable=False),
        sa.Column("skew_s", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.id"], name="fk_devices_host_id_hosts"),
        sa.PrimaryKeyConstraint("id", name="pk_devices"),
        sa.UniqueConstraint("scope", "uuid", name="uq_devices_scope_uuid"),
    )
    op.create_index("ix_devices_host_id", "devices", ["host_id"])
    op.create_table(
        "telemetry",
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("t_start_us", sa.BigInteger(), nullable=False),
        sa.Column("t_end_us", sa.BigInteger(), nullable=False),
        sa.Column("is_sample", sa.Boolean(), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["device_id"], ["devices.id"], name="fk_telemetry_device_id_devices"),
        sa.PrimaryKeyConstraint("device_id", "t_start_us", "t_end_us", "is_sample", name="pk_telemetry"),
    )


def downgrade() -> None:
    op.drop_table("telemetry")
    op.drop_index("ix_devices_host_id", "devices")
    op.drop_table("devices")
    op.drop_table("hosts")
