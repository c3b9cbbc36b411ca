"""The tables of Internal flows: runs, items, claims, firings, scratchpads."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from orchestrator.adapters.postgres.columns import (
    count_column,
    metadata,
    session_column,
    text_column,
    time_column,
)

internal_runs = Table(
    "internal_runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    text_column("tenant_id"),
    text_column("session_id", null=True),
    text_column("flow"),
    text_column("status"),
    # As given, before any override by `before_all`.
    Column("inputs", JSON, nullable=False),
    Column("progress", JSON(none_as_null=True)),
    text_column("error", null=True),
    time_column("created_at", now=True),
    time_column("started_at"),
    time_column("finished_at"),
    # The first run of the chain, and the runs that were started together.
    Column("chain_id", Text, nullable=False, server_default=""),
    Column("graph_id", Text, nullable=False, server_default=""),
    count_column("number"),
    Column("phase", Text, nullable=False, server_default="before_all"),
    Column("parameters", JSON, nullable=False, server_default="{}"),
    Column("options", JSON, nullable=False, server_default="{}"),
    # Of this run, once `before_all` has ended.
    Column("settled_options", JSON(none_as_null=True)),
    Column("config", JSON(none_as_null=True)),
    Column("data", JSON),
    Column("closing", JSON),
    text_column("reason", null=True),
    Column("redo_count", Integer),
    Column("redo", Text, nullable=False, server_default="none"),
    text_column("flight_key", null=True),
    Column("open_predecessors", Integer, nullable=False, server_default=text("0")),
    Column("successors", ARRAY(Text), nullable=False, server_default="{}"),
    Column("on_failure", Text, nullable=False, server_default="block"),
    Column("urgency", Text, nullable=False, server_default="housekeeping"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    # The turn that made it due, if one did.
    text_column("turn_id", null=True),
    # Who holds `before_all` or `after_all`; null: nobody.
    Column("token", BigInteger),
    time_column("ready_at"),
    # When the reconciler sends a message for this run; null: nothing to do, or somebody is at it.
    time_column("hint_at"),
    Index("internal_runs_hint_at_idx", "hint_at", postgresql_where=text("hint_at IS NOT NULL")),
    Index("internal_runs_chain_id_idx", "chain_id"),
    Index("internal_runs_graph_id_idx", "graph_id"),
    Index("internal_runs_session_id_idx", "session_id"),
    Index("internal_runs_created_at_idx", "tenant_id", "created_at"),
    Index(
        "internal_runs_flight_key",
        "tenant_id",
        "flight_key",
        unique=True,
        postgresql_where=text("flight_key IS NOT NULL"),
    ),
    comment="One execution of an Internal flow: a node of its trigger's graph (IF-8, IF-9).",
)

internal_items = Table(
    "internal_items",
    metadata,
    Column("run_id", Text, ForeignKey("internal_runs.run_id"), nullable=False),
    Column("position", BigInteger, nullable=False),
    text_column("tenant_id"),
    text_column("status"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("input", JSON(none_as_null=True)),
    Column("result", JSON(none_as_null=True)),
    text_column("error", null=True),
    time_column("updated_at", now=True),
    text_column("reason", null=True),
    Column("token", BigInteger),
    PrimaryKeyConstraint("run_id", "position"),
    Index(
        "internal_items_unfinished_idx",
        "run_id",
        "position",
        postgresql_where=text("status IN ('queued', 'running')"),
    ),
)

internal_claims = Table(
    "internal_claims",
    metadata,
    Column("token", BigInteger, primary_key=True),
    text_column("tenant_id"),
    text_column("run_id"),
    Column("owner", BigInteger, nullable=False),
    Column("lease_until", DateTime(timezone=True), nullable=False),
    Index("internal_claims_run_id_idx", "run_id"),
    comment="Who is at work on a run or on some of its items; a token that is gone is fenced.",
)

schedule_firings = Table(
    "schedule_firings",
    metadata,
    text_column("tenant_id"),
    text_column("job"),
    Column("due_at", DateTime(timezone=True), nullable=False),
    time_column("fired_at", now=True),
    PrimaryKeyConstraint("job", "due_at"),
    comment="Scheduled jobs by due time: who inserts the row, fires (IF-15).",
)

scratchpad_entries = Table(
    "scratchpad_entries",
    metadata,
    session_column(),
    text_column("entry_id"),
    text_column("tenant_id"),
    Column("body", JSON, nullable=False),
    time_column("used_at", now=True),
    PrimaryKeyConstraint("session_id", "entry_id"),
    comment="Accepted entries of scratchpads, from which Redis is filled again (RT-14).",
)
