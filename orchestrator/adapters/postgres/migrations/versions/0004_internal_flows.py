"""Internal flows: claims, graphs and chains of runs; firings, scratchpads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision: str | None = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _add_tables()
    _extend_items()
    _extend_runs()


def _add_tables() -> None:
    op.execute("CREATE SEQUENCE internal_claim_tokens")
    op.create_table(
        "internal_claims",
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("internal_claims_pkey")),
        comment="Who is at work on a run or on some of its items; a token that is gone is fenced.",
    )
    op.create_index("internal_claims_run_id_idx", "internal_claims", ["run_id"], unique=False)
    op.create_table(
        "schedule_firings",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "fired_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("job", "due_at", name=op.f("schedule_firings_pkey")),
        comment="Scheduled jobs by due time: who inserts the row, fires (IF-15).",
    )
    op.create_table(
        "scratchpad_entries",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column(
            "used_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("session_id", "entry_id", name=op.f("scratchpad_entries_pkey")),
        comment="Accepted entries of scratchpads, from which Redis is filled again (RT-14).",
    )


def _extend_items() -> None:
    op.add_column("internal_items", sa.Column("reason", sa.Text(), nullable=True))
    op.add_column("internal_items", sa.Column("token", sa.BigInteger(), nullable=True))
    op.create_index(
        "internal_items_unfinished_idx",
        "internal_items",
        ["run_id", "position"],
        unique=False,
        postgresql_where=sa.text("status IN ('queued', 'running')"),
    )


def _extend_runs() -> None:
    op.add_column("internal_runs", sa.Column("chain_id", sa.Text(), server_default="", nullable=False))
    op.add_column("internal_runs", sa.Column("graph_id", sa.Text(), server_default="", nullable=False))
    op.add_column(
        "internal_runs", sa.Column("number", sa.BigInteger(), server_default=sa.text("0"), nullable=False)
    )
    op.add_column("internal_runs", sa.Column("phase", sa.Text(), server_default="before_all", nullable=False))
    op.add_column("internal_runs", sa.Column("parameters", sa.JSON(), server_default="{}", nullable=False))
    op.add_column("internal_runs", sa.Column("options", sa.JSON(), server_default="{}", nullable=False))
    op.add_column("internal_runs", sa.Column("settled_options", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("internal_runs", sa.Column("config", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("internal_runs", sa.Column("data", sa.JSON(), nullable=True))
    op.add_column("internal_runs", sa.Column("closing", sa.JSON(), nullable=True))
    op.add_column("internal_runs", sa.Column("reason", sa.Text(), nullable=True))
    op.add_column("internal_runs", sa.Column("redo_count", sa.Integer(), nullable=True))
    op.add_column("internal_runs", sa.Column("redo", sa.Text(), server_default="none", nullable=False))
    op.add_column("internal_runs", sa.Column("flight_key", sa.Text(), nullable=True))
    op.add_column(
        "internal_runs",
        sa.Column("open_predecessors", sa.Integer(), server_default=sa.text("0"), nullable=False),
    )
    op.add_column(
        "internal_runs",
        sa.Column("successors", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
    )
    op.add_column("internal_runs", sa.Column("on_failure", sa.Text(), server_default="block", nullable=False))
    op.add_column(
        "internal_runs", sa.Column("urgency", sa.Text(), server_default="housekeeping", nullable=False)
    )
    op.add_column(
        "internal_runs", sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
    op.add_column("internal_runs", sa.Column("token", sa.BigInteger(), nullable=True))
    op.add_column("internal_runs", sa.Column("ready_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("internal_runs", sa.Column("hint_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index("internal_runs_chain_id_idx", "internal_runs", ["chain_id"], unique=False)
    op.create_index(
        "internal_runs_created_at_idx", "internal_runs", ["tenant_id", "created_at"], unique=False
    )
    op.create_index(
        "internal_runs_flight_key",
        "internal_runs",
        ["tenant_id", "flight_key"],
        unique=True,
        postgresql_where=sa.text("flight_key IS NOT NULL"),
    )
    op.create_index("internal_runs_graph_id_idx", "internal_runs", ["graph_id"], unique=False)
    op.create_index(
        "internal_runs_hint_at_idx",
        "internal_runs",
        ["hint_at"],
        unique=False,
        postgresql_where=sa.text("hint_at IS NOT NULL"),
    )
    op.create_index("internal_runs_session_id_idx", "internal_runs", ["session_id"], unique=False)
    op.create_table_comment(
        "internal_runs",
        "One execution of an Internal flow: a node of its trigger's graph (IF-8, IF-9).",
        existing_comment=None,
        schema=None,
    )


def downgrade() -> None:
    op.drop_table_comment(
        "internal_runs",
        existing_comment="One execution of an Internal flow: a node of its trigger's graph (IF-8, IF-9).",
        schema=None,
    )
    op.drop_index("internal_runs_session_id_idx", table_name="internal_runs")
    op.drop_index(
        "internal_runs_hint_at_idx",
        table_name="internal_runs",
        postgresql_where=sa.text("hint_at IS NOT NULL"),
    )
    op.drop_index("internal_runs_graph_id_idx", table_name="internal_runs")
    op.drop_index(
        "internal_runs_flight_key",
        table_name="internal_runs",
        postgresql_where=sa.text("flight_key IS NOT NULL"),
    )
    op.drop_index("internal_runs_created_at_idx", table_name="internal_runs")
    op.drop_index("internal_runs_chain_id_idx", table_name="internal_runs")
    op.drop_column("internal_runs", "hint_at")
    op.drop_column("internal_runs", "ready_at")
    op.drop_column("internal_runs", "token")
    op.drop_column("internal_runs", "attempts")
    op.drop_column("internal_runs", "urgency")
    op.drop_column("internal_runs", "on_failure")
    op.drop_column("internal_runs", "successors")
    op.drop_column("internal_runs", "open_predecessors")
    op.drop_column("internal_runs", "flight_key")
    op.drop_column("internal_runs", "redo")
    op.drop_column("internal_runs", "redo_count")
    op.drop_column("internal_runs", "reason")
    op.drop_column("internal_runs", "closing")
    op.drop_column("internal_runs", "data")
    op.drop_column("internal_runs", "config")
    op.drop_column("internal_runs", "settled_options")
    op.drop_column("internal_runs", "options")
    op.drop_column("internal_runs", "parameters")
    op.drop_column("internal_runs", "phase")
    op.drop_column("internal_runs", "number")
    op.drop_column("internal_runs", "graph_id")
    op.drop_column("internal_runs", "chain_id")
    op.drop_index(
        "internal_items_unfinished_idx",
        table_name="internal_items",
        postgresql_where=sa.text("status IN ('queued', 'running')"),
    )
    op.drop_column("internal_items", "token")
    op.drop_column("internal_items", "reason")
    op.drop_table("scratchpad_entries")
    op.drop_table("schedule_firings")
    op.drop_index("internal_claims_run_id_idx", table_name="internal_claims")
    op.drop_table("internal_claims")
    op.execute("DROP SEQUENCE internal_claim_tokens")
