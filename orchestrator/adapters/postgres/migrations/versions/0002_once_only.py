"""The ledger knows its steps; approvals say what was asked, for what reason, and whether they were used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision: str | None = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("effects", sa.Column("step_key", sa.Text(), server_default="", nullable=False))
    op.add_column("effects", sa.Column("idempotency_key", sa.Text(), server_default="", nullable=False))
    op.add_column("approvals", sa.Column("question", sa.Text(), server_default="", nullable=False))
    op.add_column("approvals", sa.Column("cause", sa.Text(), server_default="", nullable=False))
    op.add_column("approvals", sa.Column("plan_revision", sa.Integer(), server_default="0", nullable=False))
    op.add_column("approvals", sa.Column("policy_version", sa.Text(), server_default="", nullable=False))
    op.create_table_comment("approvals", "Questions for approval of one call each, and who decided (PX-17).")
    op.add_column("approvals", sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    for column in ("closed_at", "policy_version", "plan_revision", "cause", "question"):
        op.drop_column("approvals", column)
    for column in ("idempotency_key", "step_key"):
        op.drop_column("effects", column)
