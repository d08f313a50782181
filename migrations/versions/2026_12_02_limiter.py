"""Kernel rows say what kept a launch from filling the device."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_12_02_limiter"
down_revision = "2026_12_02_whatif_facts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("kernels", sa.Column("limiter", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("kernels", "limiter")
