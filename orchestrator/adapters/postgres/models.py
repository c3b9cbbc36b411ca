"""The tables, as SQLAlchemy sees them: for reads, for rare writes and for migrations.

The hot path (submit, claim, commit) is in `sql/*.sql`. Every row carries its tenant (RT-22); every
time is the database's own clock.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from orchestrator.adapters.postgres import models_access as access
from orchestrator.adapters.postgres import models_feedback as feedback_models
from orchestrator.adapters.postgres import models_internal as internal
from orchestrator.adapters.postgres import models_memory as memory
from orchestrator.adapters.postgres.columns import count_column as _count
from orchestrator.adapters.postgres.columns import metadata as metadata  # noqa: PLC0414  # part of this module's API
from orchestrator.adapters.postgres.columns import session_column as _session
from orchestrator.adapters.postgres.columns import text_column as _text
from orchestrator.adapters.postgres.columns import time_column as _time


def _added_text(name: str) -> Column[str]:
    """A column that older rows do not have a value for."""
    return Column(name, Text, nullable=False, server_default="")


NOW = func.clock_timestamp()
"""The database's clock, by which leases and deadlines are measured."""

webhooks = access.webhooks
feedback = feedback_models.feedback
internal_runs = internal.internal_runs
internal_items = internal.internal_items
preferences = memory.preferences
documents = memory.documents

sessions = Table(
    "sessions",
    metadata,
    Column("session_id", Text, primary_key=True),
    _text("tenant_id"),
    _text("user_id", null=True),
    _text("domain"),
    _text("webhook", null=True),
    _time("closed_at"),
    _time("created_at", now=True),
    comment="Fixed facts of a session.",
)

lanes = Table(
    "lanes",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.session_id"), primary_key=True),
    _text("tenant_id"),
    Column("if_busy", Text, nullable=False, server_default="enqueue"),
    Column("closed", Boolean, nullable=False, server_default=text("false")),
    # Whether a webhook listens; set by triggers.
    Column("hooked", Boolean, nullable=False, server_default=text("false")),
    _count("epoch"),
    _count("next_seq", 1),
    # Every turn up to this seq has finished; where the search for the next one begins.
    _count("done_seq"),
    Column("pending", Integer, nullable=False, server_default=text("0")),
    _count("next_event", 1),
    Column("lease_owner", BigInteger),
    _count("lease_token"),
    _time("lease_until"),
    # Since when there has been work.
    _time("ready_at"),
    # When the reconciler looks at this lane next; null: nothing to look for. It is cleared lazily, by
    # the sweep, so that the updates of a busy lane touch no index.
    _time("check_at"),
    # When the wait for a missing predecessor in `sequence` is over.
    _time("gap_at"),
    _time("updated_at", now=True),
    Index("lanes_check_at_idx", "check_at", postgresql_where=text("check_at IS NOT NULL")),
    Index("lanes_tenant_id_idx", "tenant_id"),
    comment="One narrow, hot row per session: order, lease, fence, counters.",
)

states = Table(
    "states",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.session_id"), primary_key=True),
    _text("tenant_id"),
    Column("epoch", BigInteger, nullable=False),
    _text("body"),
    comment="The working state after the last commit, as serialised.",
)

state_history = Table(
    "state_history",
    metadata,
    _session(),
    Column("epoch", BigInteger, nullable=False),
    _text("tenant_id"),
    _text("turn_id", null=True),
    _text("diff"),
    _text("snapshot", null=True),
    _time("at", now=True),
    PrimaryKeyConstraint("session_id", "epoch"),
    comment="What each epoch changed; a full copy at the first epoch and at distances.",
)

turns = Table(
    "turns",
    metadata,
    Column("turn_id", Text, primary_key=True),
    _session(),
    _text("tenant_id"),
    Column("seq", BigInteger, nullable=False),
    Column("client_sequence", BigInteger),
    _text("idempotency_key", null=True),
    _text("kind"),
    _text("form"),
    _text("text", null=True),
    Column("action", JSON(none_as_null=True)),
    Column("status", Text, nullable=False, server_default="queued"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    # The lease that ended the turn: tells a holder whose reply was lost that its commit held.
    Column("token", BigInteger),
    Column("epoch", BigInteger),
    _text("error", null=True),
    Column("result", JSON(none_as_null=True)),
    # What was predicted, checked, called and recovered, for evaluation (CO-6).
    Column("signals", JSON(none_as_null=True)),
    _text("merged_into", null=True),
    Column("merges", Integer, nullable=False, server_default=text("0")),
    # Leave no trace in the history if it ends cancelled and without effects (`rollback`).
    Column("forget", Boolean, nullable=False, server_default=text("false")),
    _time("cancel_requested_at"),
    _time("accepted_at", now=True),
    _time("started_at"),
    _time("deadline_at"),
    _time("finished_at"),
    _time("quarantined_at"),
    UniqueConstraint("session_id", "seq", name="turns_session_id_seq_key"),
    # No index may name a column that a running turn changes: queued, running and done stay in place.
    Index(
        "turns_idempotency_key",
        "session_id",
        "idempotency_key",
        unique=True,
        postgresql_where=text("idempotency_key IS NOT NULL"),
    ),
    Index(
        "turns_client_sequence_key",
        "session_id",
        "client_sequence",
        unique=True,
        postgresql_where=text("client_sequence IS NOT NULL"),
    ),
    Index("turns_merged_into_idx", "merged_into", postgresql_where=text("merged_into IS NOT NULL")),
    Index(
        "turns_quarantined_at_idx",
        "tenant_id",
        "quarantined_at",
        postgresql_where=text("quarantined_at IS NOT NULL"),
    ),
    comment="The inbox: every turn that was ever accepted.",
)

utterances = Table(
    "utterances",
    metadata,
    _session(),
    Column("epoch", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    _text("tenant_id"),
    _text("turn_id"),
    _text("role"),
    _text("form"),
    _text("content"),
    _time("at", now=True),
    PrimaryKeyConstraint("session_id", "epoch", "position"),
)

flows_archive = Table(
    "flows_archive",
    metadata,
    _session(),
    _text("flow_id"),
    _text("tenant_id"),
    _text("turn_id"),
    _text("dact"),
    _text("state"),
    _text("reason", null=True),
    Column("body", JSON, nullable=False),
    _time("at", now=True),
    PrimaryKeyConstraint("session_id", "flow_id"),
)

plans = Table(
    "plans",
    metadata,
    _session(),
    _text("plan_id"),
    _text("tenant_id"),
    _text("turn_id"),
    _text("dact"),
    _text("goal"),
    _text("state"),
    _text("reason", null=True),
    Column("revision", Integer, nullable=False),
    Column("body", JSON, nullable=False),
    _time("at", now=True),
    PrimaryKeyConstraint("session_id", "plan_id"),
    comment="Plans as they stand after the last turn that worked on them (PL-6).",
)

plan_revisions = Table(
    "plan_revisions",
    metadata,
    _session(),
    _text("plan_id"),
    Column("epoch", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    _text("tenant_id"),
    _text("turn_id"),
    _text("outcome"),
    _text("why"),
    Column("body", JSON, nullable=False),
    _time("at", now=True),
    PrimaryKeyConstraint("session_id", "plan_id", "epoch", "number"),
    comment="What each replanning check decided, and the steps after it (PL-6).",
)

frames = Table(
    "frames",
    metadata,
    _session(),
    _text("flow_id"),
    _text("tenant_id"),
    _text("turn_id"),
    _text("frame_id"),
    Column("body", JSON, nullable=False),
    _time("at", now=True),
    PrimaryKeyConstraint("session_id", "flow_id"),
)

journal = Table(
    "journal",
    metadata,
    _text("turn_id"),
    _text("key"),
    _text("tenant_id"),
    _session(),
    _text("kind"),
    _text("status"),
    _text("request_hash"),
    Column("result", JSON(none_as_null=True)),
    Column("token", BigInteger, nullable=False),
    _time("at", now=True),
    PrimaryKeyConstraint("turn_id", "key"),
    comment="Model and tool calls of a turn; replayed when the turn is taken up again (RT-8).",
)

effects = Table(
    "effects",
    metadata,
    _session(),
    _text("fingerprint"),
    _text("tenant_id"),
    _text("turn_id"),
    _added_text("step_key"),
    _added_text("idempotency_key"),
    _text("flow_id"),
    _text("tool_id"),
    Column("arguments", JSONB, nullable=False),
    Column("slots", JSONB, nullable=False),
    _text("status"),
    Column("result", JSON(none_as_null=True)),
    _time("at", now=True),
    PrimaryKeyConstraint("session_id", "fingerprint"),
    Index("effects_turn_id_idx", "turn_id"),
    comment="The ledger of what tools did to the world (RT-10, RT-12).",
)

events = Table(
    "events",
    metadata,
    _session(),
    Column("number", BigInteger, nullable=False),
    _text("tenant_id"),
    _text("turn_id", null=True),
    _text("type"),
    Column("payload", JSON, nullable=False),
    _time("at", now=True),
    PrimaryKeyConstraint("session_id", "number"),
    comment="The ordered log of a session; numbers have no gaps (RT-15).",
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    _text("tenant_id"),
    _session(),
    _text("turn_id", null=True),
    _text("kind"),
    Column("payload", JSON, nullable=False),
    _time("created_at", now=True),
    _time("sent_at"),
    _time("acknowledged_at"),
    Index("outbox_open_idx", "id", postgresql_where=text("acknowledged_at IS NULL")),
    comment="What is sent after the commit, and again until it is acknowledged (RT-4).",
)

workers = Table(
    "workers",
    metadata,
    Column("worker_id", BigInteger, primary_key=True),
    _text("host"),
    Column("pid", Integer, nullable=False),
    _time("started_at", now=True),
    comment="Worker processes; a row whose advisory lock is free belongs to a dead one (RT-11).",
)

approvals = Table(
    "approvals",
    metadata,
    Column("approval_id", Text, primary_key=True),
    _text("tenant_id"),
    _session(),
    _text("turn_id"),
    _text("flow_id"),
    _text("tool_id"),
    _text("fingerprint"),
    _text("status"),
    Column("arguments", JSON, nullable=False),
    _added_text("question"),
    # Why it was asked.
    _added_text("cause"),
    Column("plan_revision", Integer, nullable=False, server_default=text("0")),
    _added_text("policy_version"),
    Column("operator_only", Boolean, nullable=False, server_default=text("false")),
    # What the decider said.
    _text("reason", null=True),
    _text("decided_by", null=True),
    _time("created_at", now=True),
    _time("expires_at"),
    _time("decided_at"),
    # When it was used, expired or became void.
    _time("closed_at"),
    Index("approvals_session_id_idx", "session_id"),
    comment="Questions for approval of one call each, and who decided (PX-17).",
)

records = Table(
    "records",
    metadata,
    _text("tenant_id"),
    _text("domain"),
    _text("collection"),
    _text("key"),
    Column("document", JSONB, nullable=False),
    _time("updated_at", now=True),
    PrimaryKeyConstraint("tenant_id", "domain", "collection", "key"),
    Index(
        "records_document_idx",
        "document",
        postgresql_using="gin",
        postgresql_ops={"document": "jsonb_path_ops"},
    ),
    comment="What a domain's services keep: named collections of JSON documents.",
)
