"""The tables of what is remembered beyond a session: preferences, documents and their chunks (CO-4)."""

from __future__ import annotations

from pgvector.sqlalchemy import Vector
from sqlalchemy import JSON, Column, ForeignKeyConstraint, Index, Integer, PrimaryKeyConstraint, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY

from orchestrator.adapters.postgres.columns import metadata, text_column, time_column

preferences = Table(
    "preferences",
    metadata,
    text_column("tenant_id"),
    text_column("user_id"),
    text_column("key"),
    Column("value", JSON, nullable=False),
    time_column("updated_at", now=True),
    Column("kind", Text, nullable=False, server_default="rule"),
    Column("source", Text, nullable=False, server_default="habit"),
    Column("text", Text, nullable=False, server_default=""),
    Column("labels", JSON, nullable=False, server_default="[]"),
    Column("origin", JSON, nullable=False, server_default="{}"),
    PrimaryKeyConstraint("tenant_id", "user_id", "key"),
)

documents = Table(
    "documents",
    metadata,
    text_column("tenant_id"),
    text_column("document_id"),
    text_column("domain"),
    text_column("title", null=True),
    text_column("body"),
    Column("labels", JSON(none_as_null=True)),
    time_column("updated_at", now=True),
    # Whom it is for; null: everybody of the tenant.
    text_column("user_id", null=True),
    Column("digest", Text, nullable=False, server_default=""),
    Column("origin", JSON, nullable=False, server_default="{}"),
    # In which its chunks are embedded; null: not yet.
    text_column("space", null=True),
    Column("chunks", Integer, nullable=False, server_default="0"),
    PrimaryKeyConstraint("tenant_id", "document_id"),
)

document_chunks = Table(
    "document_chunks",
    metadata,
    text_column("tenant_id"),
    text_column("document_id"),
    Column("position", Integer, nullable=False),
    text_column("text"),
    Column("terms", ARRAY(Text), nullable=False),
    # Of length 1. Without the extension it is an array, and the nearest are looked for among the words' finds.
    Column("embedding", Vector(), nullable=False),
    PrimaryKeyConstraint("tenant_id", "document_id", "position"),
    ForeignKeyConstraint(
        ["tenant_id", "document_id"], ["documents.tenant_id", "documents.document_id"], ondelete="CASCADE"
    ),
    Index("document_chunks_terms_idx", "terms", postgresql_using="gin"),
    comment="Pieces of documents that are found by meaning and by words (CO-4).",
)
