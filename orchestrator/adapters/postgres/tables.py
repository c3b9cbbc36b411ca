"""The tables that are read, and seldom written, through SQLAlchemy: names and types of their columns.

What else there is to a table (keys, defaults, indexes, comments) stands in `schema/*.sql`, which makes it; a test
compares the two. The hot path (submit, claim, commit) is in `sql/*.sql`.
"""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, DateTime, Integer, MetaData, Table, Text, func
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

metadata = MetaData()

NOW = func.clock_timestamp()
"""The database's clock, by which leases and deadlines are measured."""


def _table(
    name: str,
    *,
    texts: tuple[str, ...],
    lists: tuple[str, ...] = (),
    integers: tuple[str, ...] = (),
    bigints: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
    times: tuple[str, ...] = (),
    json: tuple[str, ...] = (),
    optional_json: tuple[str, ...] = (),
    jsonb: tuple[str, ...] = (),
) -> Table:
    """Declare a table by the names of its columns, grouped by type.

    None is stored in a `json` column as JSON's null and in an `optional_json` column as SQL's.
    """
    groups = (
        (Text(), texts),
        (ARRAY(Text), lists),
        (Integer(), integers),
        (BigInteger(), bigints),
        (Boolean(), flags),
        (DateTime(timezone=True), times),
        (JSON(), json),
        (JSON(none_as_null=True), optional_json),
        (JSONB(), jsonb),
    )
    return Table(name, metadata, *(Column(column, kind) for kind, columns in groups for column in columns))


sessions = _table(
    "sessions",
    texts=("session_id", "tenant_id", "user_id", "domain", "webhook"),
    times=("closed_at", "created_at"),
)
lanes = _table(
    "lanes",
    texts=("session_id", "tenant_id", "if_busy"),
    integers=("pending",),
    bigints=("epoch", "next_seq", "done_seq", "next_event", "lease_owner", "lease_token"),
    flags=("closed", "has_webhook"),
    times=("lease_until", "ready_at", "check_at", "gap_at", "updated_at"),
)
states = _table("states", texts=("session_id", "tenant_id", "body"), bigints=("epoch",))
state_history = _table(
    "state_history",
    texts=("session_id", "tenant_id", "turn_id", "diff", "snapshot"),
    bigints=("epoch",),
    times=("at",),
)
utterances = _table(
    "utterances",
    texts=("session_id", "tenant_id", "turn_id", "role", "form", "content"),
    integers=("position",),
    bigints=("epoch", "seq"),
    times=("at",),
)
flows_archive = _table(
    "flows_archive",
    texts=("session_id", "flow_id", "tenant_id", "turn_id", "dact", "state", "reason"),
    times=("at",),
    json=("body",),
)
frames = _table(
    "frames",
    texts=("session_id", "flow_id", "tenant_id", "turn_id", "frame_id"),
    times=("at",),
    json=("body",),
)
plans = _table(
    "plans",
    texts=("session_id", "plan_id", "tenant_id", "turn_id", "dact", "goal", "state", "reason"),
    integers=("revision",),
    times=("at",),
    json=("body",),
)
plan_revisions = _table(
    "plan_revisions",
    texts=("session_id", "plan_id", "tenant_id", "turn_id", "outcome", "why"),
    integers=("number",),
    bigints=("epoch",),
    times=("at",),
    json=("body",),
)
turns = _table(
    "turns",
    texts=(
        "turn_id",
        "session_id",
        "tenant_id",
        "idempotency_key",
        "kind",
        "form",
        "text",
        "status",
        "error",
        "merged_into",
    ),
    integers=("attempts", "merges"),
    bigints=("seq", "client_sequence", "token", "epoch"),
    flags=("forget",),
    times=(
        "cancel_requested_at",
        "accepted_at",
        "started_at",
        "deadline_at",
        "finished_at",
        "quarantined_at",
    ),
    optional_json=("action", "result", "signals"),
)
journal = _table(
    "journal",
    texts=("turn_id", "key", "tenant_id", "session_id", "kind", "status", "request_hash"),
    bigints=("token",),
    times=("at",),
    optional_json=("result",),
)
effects = _table(
    "effects",
    texts=(
        "session_id",
        "fingerprint",
        "tenant_id",
        "turn_id",
        "step_key",
        "idempotency_key",
        "flow_id",
        "tool_id",
        "status",
    ),
    times=("at",),
    optional_json=("result",),
    jsonb=("arguments", "slots"),
)
approvals = _table(
    "approvals",
    texts=(
        "approval_id",
        "tenant_id",
        "session_id",
        "turn_id",
        "flow_id",
        "tool_id",
        "fingerprint",
        "status",
        "question",
        "cause",
        "policy_version",
        "reason",
        "decided_by",
    ),
    integers=("plan_revision",),
    flags=("operator_only",),
    times=("created_at", "expires_at", "decided_at", "closed_at"),
    json=("arguments",),
)
events = _table(
    "events",
    texts=("session_id", "tenant_id", "turn_id", "type"),
    bigints=("number",),
    times=("at",),
    json=("payload",),
)
feedback = _table(
    "feedback",
    texts=("feedback_id", "tenant_id", "session_id", "turn_id", "author", "rating", "comment"),
    times=("at",),
    json=("correction",),
)
internal_runs = _table(
    "internal_runs",
    texts=(
        "run_id",
        "tenant_id",
        "session_id",
        "flow",
        "status",
        "error",
        "chain_id",
        "graph_id",
        "phase",
        "reason",
        "redo",
        "flight_key",
        "on_failure",
        "urgency",
        "turn_id",
    ),
    lists=("successors",),
    integers=("redo_count", "open_predecessors", "attempts"),
    bigints=("number", "token"),
    times=("created_at", "started_at", "finished_at", "ready_at", "hint_at"),
    json=("inputs", "parameters", "options"),
    optional_json=("progress", "final_options", "config", "data", "closing"),
)
internal_items = _table(
    "internal_items",
    texts=("run_id", "tenant_id", "status", "error", "reason"),
    integers=("attempts",),
    bigints=("position", "token"),
    times=("updated_at",),
    optional_json=("input", "result"),
)
scratchpad_entries = _table(
    "scratchpad_entries", texts=("session_id", "entry_id", "tenant_id"), times=("used_at",), json=("body",)
)
preferences = _table(
    "preferences",
    texts=("tenant_id", "user_id", "key", "kind", "source", "text"),
    times=("updated_at",),
    json=("value", "labels", "origin"),
)
records = _table(
    "records", texts=("tenant_id", "domain", "collection", "key"), times=("updated_at",), jsonb=("document",)
)
api_keys = _table(
    "api_keys",
    texts=("key_id", "tenant_id", "name", "user_id", "digest"),
    lists=("scopes",),
    times=("created_at", "expires_at", "revoked_at"),
)
webhooks = _table(
    "webhooks",
    texts=("webhook_id", "tenant_id", "session_id", "url", "host"),
    lists=("events",),
    times=("created_at", "closed_at"),
)
webhook_secrets = _table("webhook_secrets", texts=("tenant_id", "secret_id", "secret"), times=("created_at",))
webhook_feeds = _table(
    "webhook_feeds",
    texts=("webhook_id", "session_id", "tenant_id", "error"),
    integers=("attempts",),
    bigints=("wanted", "delivered", "token"),
    times=("due_at", "failing_since", "given_up_at", "held_until"),
)
