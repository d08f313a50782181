"""Runs say what a step of their traces holds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_12_02_units_per_step"
down_revision = "2026_12_02_telemetry"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("units_per_step", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("runs", "units_per_step")
