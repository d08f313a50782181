"""Kernel rows hold the path of the module that launched them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_12_02_module_path"
down_revision = "2026_12_01_first_tables"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("kernels", sa.Column("module_path", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("kernels", "module_path")
