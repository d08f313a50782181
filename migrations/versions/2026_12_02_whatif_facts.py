"""Kernel rows hold what a what-if asks: matrix work, blocks, link bytes, and what chains hand on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_12_02_whatif_facts"
down_revision = "2026_12_02_exclusive_time"
branch_labels = None
depends_on = None

_COUNTS = ("blocks", "link_bytes", "chained_in_bytes", "chained_out_bytes")


def upgrade() -> None:
    op.add_column("kernels", sa.Column("matrix", sa.Boolean(), nullable=True))
    for column in _COUNTS:
        op.add_column("kernels", sa.Column(column, sa.BigInteger(), nullable=True))


def downgrade() -> None:
    for column in ("matrix", *_COUNTS):
        op.drop_column("kernels", column)
