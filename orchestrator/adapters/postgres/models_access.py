"""The tables of who may come in and what is told outside: keys, readers, webhooks, guarded tables."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, PrimaryKeyConstraint, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY

from orchestrator.adapters.postgres.columns import (
    count_column,
    metadata,
    session_column,
    text_column,
    time_column,
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", Text, primary_key=True),
    text_column("tenant_id"),
    text_column("name"),
    Column("scopes", ARRAY(Text), nullable=False),
    # With it, a key that is no operator's reaches this user's sessions only.
    text_column("user_id", null=True),
    # SHA-256 of the secret part, which is long and random.
    text_column("digest"),
    time_column("created_at", now=True),
    time_column("expires_at"),
    time_column("revoked_at"),
    Index("api_keys_tenant_id_idx", "tenant_id"),
    comment="Keys of callers; their text is stored nowhere (RT-22).",
)

tenant_readers = Table(
    "tenant_readers",
    metadata,
    Column("role", Text, primary_key=True),
    text_column("tenant_id"),
    comment="Login roles of people, each tied to one tenant for good (RT-22).",
)

guarded_tables = Table(
    "guarded_tables",
    metadata,
    Column("name", Text, primary_key=True),
    text_column("runtime"),
    text_column("gateway"),
    text_column("reader"),
    comment="What each role may do with each table; applied by parley_guard.",
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("webhook_id", Text, primary_key=True),
    text_column("tenant_id"),
    # Null: for all sessions of the tenant.
    text_column("session_id", null=True),
    text_column("url"),
    text_column("host"),
    # Null: all durable events.
    Column("events", ARRAY(Text)),
    time_column("created_at", now=True),
    time_column("closed_at"),
    Index("webhooks_tenant_id_idx", "tenant_id", "session_id"),
    comment="Where events are told outside (RT-16).",
)

webhook_secrets = Table(
    "webhook_secrets",
    metadata,
    text_column("tenant_id"),
    text_column("secret_id"),
    text_column("secret"),
    time_column("created_at", now=True),
    PrimaryKeyConstraint("tenant_id", "secret_id"),
    comment="What deliveries of a tenant are signed with; the newest two are used.",
)

webhook_feeds = Table(
    "webhook_feeds",
    metadata,
    text_column("webhook_id"),
    session_column(),
    text_column("tenant_id"),
    # The last event there is, and the last one that was delivered.
    Column("wanted", BigInteger, nullable=False),
    Column("delivered", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    # When to deliver next; null: nothing to deliver, or given up.
    time_column("due_at"),
    time_column("failing_since"),
    time_column("given_up_at"),
    text_column("error", null=True),
    # Who delivers now, and until when nobody else does.
    count_column("token"),
    time_column("held_until"),
    PrimaryKeyConstraint("webhook_id", "session_id"),
    Index("webhook_feeds_due_at_idx", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    Index("webhook_feeds_session_id_idx", "session_id"),
    Index(
        "webhook_feeds_failing_idx",
        "tenant_id",
        "failing_since",
        postgresql_where=text("failing_since IS NOT NULL"),
    ),
    comment="How far each session's events were told to each webhook, in order.",
)
