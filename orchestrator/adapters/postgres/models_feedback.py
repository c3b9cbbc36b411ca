"""The table of feedback on turns."""

from __future__ import annotations

from sqlalchemy import JSON, Column, ForeignKey, Index, Table, Text, UniqueConstraint

from orchestrator.adapters.postgres.columns import metadata, session_column, text_column, time_column

feedback = Table(
    "feedback",
    metadata,
    Column("feedback_id", Text, primary_key=True),
    text_column("tenant_id"),
    session_column(),
    Column("turn_id", Text, ForeignKey("turns.turn_id", ondelete="CASCADE"), nullable=False),
    text_column("author"),
    text_column("rating", null=True),
    text_column("comment", null=True),
    Column("correction", JSON, nullable=False),
    time_column("at", now=True),
    UniqueConstraint("turn_id", "author", name="feedback_turn_id_author_key"),
    Index("feedback_tenant_id_at_idx", "tenant_id", "at"),
    Index("feedback_session_id_idx", "session_id"),
    comment="What people think of answers, one word per author and turn; anonymous ones share one.",
)
