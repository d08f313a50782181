"""Orders to record running processes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_12_02_captures"
down_revision = "2026_12_02_limiter"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "captures",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(36), nullable=False),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("order", sa.JSON(), nullable=False),
        sa.Column("outcome", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_captures_project_id_projects"),
        sa.PrimaryKeyConstraint("id", name="pk_captures"),
    )
    op.create_index("ix_captures_host_state_created_at", "captures", ["host", "state", "created_at"])


def downgrade() -> None:
    op.drop_index("ix_captures_host_state_created_at", "captures")
    op.drop_table("captures")
