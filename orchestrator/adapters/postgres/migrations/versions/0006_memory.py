"""What is remembered beyond a session: provenance of preferences, documents in chunks (CO-4)."""

from __future__ import annotations

from typing import Any

import pgvector.sqlalchemy
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision: str | None = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("preferences", sa.Column("kind", sa.Text(), server_default="rule", nullable=False))
    op.add_column("preferences", sa.Column("source", sa.Text(), server_default="habit", nullable=False))
    op.add_column("preferences", sa.Column("text", sa.Text(), server_default="", nullable=False))
    op.add_column("preferences", sa.Column("labels", sa.JSON(), server_default="[]", nullable=False))
    op.add_column("preferences", sa.Column("origin", sa.JSON(), server_default="{}", nullable=False))
    # Habits were kept as {value, seen, of}.
    op.execute(
        "UPDATE preferences SET origin = json_build_object('seen', value -> 'seen', 'of', value -> 'of'),"
        " value = value -> 'value'"
        " WHERE json_typeof(value) = 'object' AND value::jsonb ?& ARRAY['value', 'seen', 'of']"
    )
    op.drop_column("documents", "embedding")
    op.add_column("documents", sa.Column("user_id", sa.Text(), nullable=True))
    op.add_column("documents", sa.Column("digest", sa.Text(), server_default="", nullable=False))
    op.add_column("documents", sa.Column("origin", sa.JSON(), server_default="{}", nullable=False))
    op.add_column("documents", sa.Column("space", sa.Text(), nullable=True))
    op.add_column("documents", sa.Column("chunks", sa.Integer(), server_default="0", nullable=False))
    op.create_table(
        "document_chunks",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("terms", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("embedding", _vector_type(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "document_id"],
            ["documents.tenant_id", "documents.document_id"],
            name=op.f("document_chunks_tenant_id_document_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "document_id", "position", name=op.f("document_chunks_pkey")),
        comment="Pieces of documents that are found by meaning and by words (CO-4).",
    )
    op.create_index(
        "document_chunks_terms_idx", "document_chunks", ["terms"], unique=False, postgresql_using="gin"
    )


def downgrade() -> None:
    op.drop_table("document_chunks")
    for column in ("chunks", "space", "origin", "digest", "user_id"):
        op.drop_column("documents", column)
    op.add_column("documents", sa.Column("embedding", _vector_type(), nullable=True))
    for column in ("origin", "labels", "text", "source", "kind"):
        op.drop_column("preferences", column)


def _vector_type() -> Any:
    """An array where the server has no pgvector; see `adapters.postgres.documents` for what that means."""
    there = op.get_bind().execute(sa.text("SELECT 1 FROM pg_extension WHERE extname = 'vector'")).scalar()
    return pgvector.sqlalchemy.Vector() if there else postgresql.ARRAY(sa.Float(24))
