"""What turns signalled, and which turn made an Internal flow due (CO-6, RT-24)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision: str | None = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("turns", sa.Column("signals", sa.JSON(), nullable=True))
    op.add_column("internal_runs", sa.Column("turn_id", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("internal_runs", "turn_id")
    op.drop_column("turns", "signals")
