"""Kernel rows hold the time that is theirs alone, and how many launches start within steps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_12_02_exclusive_time"
down_revision = "2026_12_02_profile_result"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("kernels", sa.Column("exclusive_us", sa.Double(), nullable=True))
    op.add_column("kernels", sa.Column("steps_exclusive_us", sa.Double(), nullable=True))
    op.add_column("kernels", sa.Column("steps_count", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    for column in ("exclusive_us", "steps_exclusive_us", "steps_count"):
        op.drop_column("kernels", column)
