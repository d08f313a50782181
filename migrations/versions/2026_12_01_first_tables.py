"""The first tables: projects, tokens, runs, profiles and their analysis, jobs, blobs, calibrations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_12_01_first_tables"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "blobs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_blobs"),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("body_sha256", sa.String(length=64), nullable=False),
        sa.Column("status", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("scope", name="pk_idempotency_keys"),
    )
    op.create_table(
        "projects",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("last_number", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
        sa.UniqueConstraint("name", name="uq_projects_name"),
    )
    op.create_table(
        "calibrations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=36), nullable=True),
        sa.Column("device_key", sa.String(length=64), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("host", sa.Text(), nullable=True),
        sa.Column("uuid", sa.Text(), nullable=True),
        sa.Column("measured_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_calibrations_project_id_projects"),
        sa.PrimaryKeyConstraint("id", name="pk_calibrations"),
    )
    op.create_index("ix_calibrations_device_key_measured_at", "calibrations", ["device_key", "measured_at"])

    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("listed", sa.Boolean(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("host", sa.Text(), nullable=True),
        sa.Column("device_name", sa.Text(), nullable=True),
        sa.Column("n_steps", sa.BigInteger(), nullable=True),
        sa.Column("step_time_p50_us", sa.Double(), nullable=True),
        sa.Column("regime", sa.String(length=16), nullable=True),
        sa.Column("regime_confidence", sa.String(length=16), nullable=True),
        sa.Column("grade", sa.String(length=16), nullable=True),
        sa.Column("parts_us", sa.JSON(), nullable=True),
        sa.Column("job_id", sa.String(length=36), nullable=True),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("search_text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_runs_project_id_projects"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("project_id", "number", name="uq_runs_project_id_number"),
    )
    op.create_index("ix_runs_listed_created_at_id", "runs", ["listed", "created_at", "id"])

    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("prefix", sa.String(length=16), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=36), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_tokens_project_id_projects"),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("prefix", name="uq_tokens_prefix"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("blob_id", sa.String(length=64), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("stage", sa.String(length=32), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_jobs_run_id_runs"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_blob_id", "jobs", ["blob_id"])
    op.create_index("ix_jobs_run_id_state", "jobs", ["run_id", "state"])
    op.create_index("ix_jobs_state_created_at", "jobs", ["state", "created_at"])

    op.create_table(
        "kernels",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("rank", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("on_cpu", sa.Boolean(), nullable=False),
        sa.Column("idx", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("short_name", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=True),
        sa.Column("dtype", sa.Text(), nullable=True),
        sa.Column("op", sa.Text(), nullable=True),
        sa.Column("module", sa.Text(), nullable=True),
        sa.Column("input_dims", sa.Text(), nullable=True),
        sa.Column("input_types", sa.Text(), nullable=True),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("time_us", sa.Double(), nullable=False),
        sa.Column("share_pct", sa.Double(), nullable=True),
        sa.Column("min_us", sa.Double(), nullable=True),
        sa.Column("p50_us", sa.Double(), nullable=True),
        sa.Column("p95_us", sa.Double(), nullable=True),
        sa.Column("p99_us", sa.Double(), nullable=True),
        sa.Column("max_us", sa.Double(), nullable=True),
        sa.Column("flops", sa.BigInteger(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("ai", sa.Double(), nullable=True),
        sa.Column("achieved_tflops", sa.Double(), nullable=True),
        sa.Column("achieved_gbs", sa.Double(), nullable=True),
        sa.Column("bound_us", sa.Double(), nullable=True),
        sa.Column("roof_fraction", sa.Double(), nullable=True),
        sa.Column("roof_side", sa.Text(), nullable=True),
        sa.Column("regime", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("cost_reason", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("above_peak", sa.Boolean(), nullable=False),
        sa.Column("histogram", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_kernels_run_id_runs"),
        sa.PrimaryKeyConstraint("run_id", "rank", "on_cpu", "idx", name="pk_kernels"),
    )
    op.create_table(
        "profiles",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("ranks", sa.JSON(), nullable=False),
        sa.Column("blob_id", sa.String(length=64), nullable=True),
        sa.Column("document", sa.LargeBinary(), nullable=True),
        sa.Column("events", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["blob_id"], ["blobs.id"], name="fk_profiles_blob_id_blobs"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_profiles_run_id_runs"),
        sa.PrimaryKeyConstraint("id", name="pk_profiles"),
    )
    op.create_index("ix_profiles_blob_id", "profiles", ["blob_id"])
    op.create_index("ix_profiles_run_id", "profiles", ["run_id"])

    op.create_table(
        "run_documents",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("schema_version", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_documents_run_id_runs"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_documents"),
    )
    op.create_table(
        "steps",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("rank", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("idx", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("step_time_us", sa.Double(), nullable=False),
        sa.Column("device", sa.Text(), nullable=True),
        sa.Column("regime", sa.String(length=16), nullable=True),
        sa.Column("attainable_us", sa.Double(), nullable=True),
        sa.Column("bound_us", sa.Double(), nullable=True),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_steps_run_id_runs"),
        sa.PrimaryKeyConstraint("run_id", "rank", "source", "idx", name="pk_steps"),
    )


def downgrade() -> None:
    op.drop_table("steps")
    op.drop_table("run_documents")
    op.drop_index("ix_profiles_run_id", table_name="profiles")
    op.drop_index("ix_profiles_blob_id", table_name="profiles")

    op.drop_table("profiles")
    op.drop_table("kernels")
    op.drop_index("ix_jobs_state_created_at", table_name="jobs")
    op.drop_index("ix_jobs_run_id_state", table_name="jobs")
    op.drop_index("ix_jobs_blob_id", table_name="jobs")

    op.drop_table("jobs")
    op.drop_table("tokens")
    op.drop_index("ix_runs_listed_created_at_id", table_name="runs")

    op.drop_table("runs")
    op.drop_index("ix_calibrations_device_key_measured_at", table_name="calibrations")

    op.drop_table("calibrations")
    op.drop_table("projects")
    op.drop_table("idempotency_keys")
    op.drop_table("blobs")
