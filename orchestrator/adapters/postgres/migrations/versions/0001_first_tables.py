"""The first tables."""

from __future__ import annotations

from typing import Any

import pgvector.sqlalchemy
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    vectors = _create_extension()
    op.execute("CREATE SEQUENCE worker_ids AS integer")
    op.create_table(
        "approvals",
        sa.Column("approval_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("tool_id", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("approval_id", name=op.f("approvals_pkey")),
    )
    op.create_index("approvals_session_id_idx", "approvals", ["session_id"], unique=False)
    op.create_table(
        "documents",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=True),
        sa.Column("embedding", vectors, nullable=True),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("tenant_id", "document_id", name=op.f("documents_pkey")),
    )
    op.create_table(
        "effects",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("tool_id", sa.Text(), nullable=False),
        sa.Column("arguments", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("slots", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("session_id", "fingerprint", name=op.f("effects_pkey")),
        comment="The ledger of what tools did to the world (RT-10, RT-12).",
    )
    op.create_index("effects_turn_id_idx", "effects", ["turn_id"], unique=False)
    op.create_table(
        "events",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("session_id", "number", name=op.f("events_pkey")),
        comment="The ordered log of a session; numbers have no gaps (RT-15).",
    )
    op.create_table(
        "flows_archive",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("dact", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("session_id", "flow_id", name=op.f("flows_archive_pkey")),
    )
    op.create_table(
        "frames",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("frame_id", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("session_id", "flow_id", name=op.f("frames_pkey")),
    )
    op.create_table(
        "internal_runs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("flow", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("inputs", sa.JSON(), nullable=False),
        sa.Column("progress", sa.JSON(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("run_id", name=op.f("internal_runs_pkey")),
    )
    op.create_table(
        "journal",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("turn_id", "key", name=op.f("journal_pkey")),
        comment="Model and tool calls of a turn; replayed when the turn is taken up again (RT-8).",
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("acknowledged_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("outbox_pkey")),
        comment="What is sent after the commit, and again until it is acknowledged (RT-4).",
    )
    op.create_index(
        "outbox_open_idx", "outbox", ["id"], unique=False, postgresql_where=sa.text("acknowledged_at IS NULL")
    )
    op.create_table(
        "preferences",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "key", name=op.f("preferences_pkey")),
    )
    op.create_table(
        "records",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("document", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("tenant_id", "domain", "collection", "key", name=op.f("records_pkey")),
        comment="What a domain's services keep: named collections of JSON documents.",
    )
    op.create_index(
        "records_document_idx",
        "records",
        ["document"],
        unique=False,
        postgresql_using="gin",
        postgresql_ops={"document": "jsonb_path_ops"},
    )
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("webhook", sa.Text(), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("session_id", name=op.f("sessions_pkey")),
        comment="Fixed facts of a session.",
    )
    op.create_table(
        "state_history",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("diff", sa.Text(), nullable=False),
        sa.Column("snapshot", sa.Text(), nullable=True),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("session_id", "epoch", name=op.f("state_history_pkey")),
        comment="What each epoch changed; a full copy at the first epoch and at distances.",
    )
    op.create_table(
        "turns",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("client_sequence", sa.BigInteger(), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("action", sa.JSON(), nullable=True),
        sa.Column("status", sa.Text(), server_default="queued", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("merged_into", sa.Text(), nullable=True),
        sa.Column("merges", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("forget", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "accepted_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("quarantined_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("turn_id", name=op.f("turns_pkey")),
        sa.UniqueConstraint("session_id", "seq", name="turns_session_id_seq_key"),
        comment="The inbox: every turn that was ever accepted.",
    )
    op.create_index(
        "turns_client_sequence_key",
        "turns",
        ["session_id", "client_sequence"],
        unique=True,
        postgresql_where=sa.text("client_sequence IS NOT NULL"),
    )
    op.create_index(
        "turns_idempotency_key",
        "turns",
        ["session_id", "idempotency_key"],
        unique=True,
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.create_index(
        "turns_merged_into_idx",
        "turns",
        ["merged_into"],
        unique=False,
        postgresql_where=sa.text("merged_into IS NOT NULL"),
    )
    op.create_index(
        "turns_quarantined_at_idx",
        "turns",
        ["tenant_id", "quarantined_at"],
        unique=False,
        postgresql_where=sa.text("quarantined_at IS NOT NULL"),
    )
    op.create_table(
        "utterances",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("session_id", "epoch", "position", name=op.f("utterances_pkey")),
    )
    op.create_table(
        "workers",
        sa.Column("worker_id", sa.BigInteger(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("worker_id", name=op.f("workers_pkey")),
        comment="Worker processes; a row whose advisory lock is free belongs to a dead one (RT-11).",
    )
    op.create_table(
        "internal_items",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("input", sa.JSON(), nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["internal_runs.run_id"], name=op.f("internal_items_run_id_fkey")
        ),
        sa.PrimaryKeyConstraint("run_id", "position", name=op.f("internal_items_pkey")),
    )
    op.create_table(
        "lanes",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("if_busy", sa.Text(), server_default="enqueue", nullable=False),
        sa.Column("closed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("epoch", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_seq", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("done_seq", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("pending", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_event", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("lease_owner", sa.BigInteger(), nullable=True),
        sa.Column("lease_token", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ready_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("check_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("gap_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.session_id"], name=op.f("lanes_session_id_fkey")),
        sa.PrimaryKeyConstraint("session_id", name=op.f("lanes_pkey")),
        comment="One narrow, hot row per session: order, lease, fence, counters.",
    )
    op.create_index(
        "lanes_check_at_idx",
        "lanes",
        ["check_at"],
        unique=False,
        postgresql_where=sa.text("check_at IS NOT NULL"),
    )
    op.create_index("lanes_tenant_id_idx", "lanes", ["tenant_id"], unique=False)
    op.create_table(
        "states",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.session_id"], name=op.f("states_session_id_fkey")),
        sa.PrimaryKeyConstraint("session_id", name=op.f("states_pkey")),
        comment="The working state after the last commit, as serialised.",
    )
    _tune()


def _tune() -> None:
    """What the models cannot say: room for updates in place, and cheap storage of long texts.

    lz4 is used where the server has it; elsewhere the texts that change every turn stay uncompressed,
    which costs space and less time than pglz.
    """
    for table, percent in {"lanes": 70, "states": 70, "turns": 60}.items():
        op.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")
    op.execute("ALTER TABLE lanes SET (autovacuum_vacuum_scale_factor = 0.05)")
    long_texts = {"states": ["body"], "state_history": ["diff", "snapshot"], "turns": ["result"]}
    has_lz4 = "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
    lz4 = op.get_bind().exec_driver_sql(has_lz4).scalar_one()
    for table, columns in long_texts.items():
        for column in columns:
            if lz4:
                op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET COMPRESSION lz4")
            elif table == "states":
                op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")


def downgrade() -> None:
    op.drop_table("states")
    op.drop_index("lanes_tenant_id_idx", table_name="lanes")
    op.drop_index("lanes_check_at_idx", table_name="lanes", postgresql_where=sa.text("check_at IS NOT NULL"))
    op.drop_table("lanes")
    op.drop_table("internal_items")
    op.drop_table("workers")
    op.drop_table("utterances")
    op.drop_index(
        "turns_quarantined_at_idx", table_name="turns", postgresql_where=sa.text("quarantined_at IS NOT NULL")
    )
    op.drop_index(
        "turns_merged_into_idx", table_name="turns", postgresql_where=sa.text("merged_into IS NOT NULL")
    )
    op.drop_index(
        "turns_idempotency_key", table_name="turns", postgresql_where=sa.text("idempotency_key IS NOT NULL")
    )
    op.drop_index(
        "turns_client_sequence_key",
        table_name="turns",
        postgresql_where=sa.text("client_sequence IS NOT NULL"),
    )
    op.drop_table("turns")
    op.drop_table("state_history")
    op.drop_table("sessions")
    op.drop_index(
        "records_document_idx",
        table_name="records",
        postgresql_using="gin",
        postgresql_ops={"document": "jsonb_path_ops"},
    )
    op.drop_table("records")
    op.drop_table("preferences")
    op.drop_index("outbox_open_idx", table_name="outbox", postgresql_where=sa.text("acknowledged_at IS NULL"))
    op.drop_table("outbox")
    op.drop_table("journal")
    op.drop_table("internal_runs")
    op.drop_table("frames")
    op.drop_table("flows_archive")
    op.drop_table("events")
    op.drop_index("effects_turn_id_idx", table_name="effects")
    op.drop_table("effects")
    op.drop_table("documents")
    op.drop_index("approvals_session_id_idx", table_name="approvals")
    op.drop_table("approvals")
    op.execute("DROP SEQUENCE worker_ids")


def _create_extension() -> Any:
    """The type of vectors: pgvector's, or an array on a server that does not have it."""
    offered = sa.text("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
    if op.get_bind().execute(offered).scalar() is None:
        return postgresql.ARRAY(sa.Float(24))
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return pgvector.sqlalchemy.Vector()
