"""Profiles keep the result of their trace's analysis, for the next rank of the run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_12_02_profile_result"
down_revision = "2026_12_02_module_path"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("profiles", sa.Column("result", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column("profiles", "result")
