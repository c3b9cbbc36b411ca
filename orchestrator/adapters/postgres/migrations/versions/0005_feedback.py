"""Feedback on turns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision: str | None = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feedback",
        sa.Column("feedback_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("rating", sa.Text(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("correction", sa.JSON(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["turn_id"], ["turns.turn_id"], name=op.f("feedback_turn_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("feedback_id", name=op.f("feedback_pkey")),
        sa.UniqueConstraint("turn_id", "author", name="feedback_turn_id_author_key"),
        comment="What people think of answers, one word per author and turn; anonymous ones share one.",
    )
    op.create_index("feedback_tenant_id_at_idx", "feedback", ["tenant_id", "at"])
    op.create_index("feedback_session_id_idx", "feedback", ["session_id"])


def downgrade() -> None:
    op.drop_table("feedback")
