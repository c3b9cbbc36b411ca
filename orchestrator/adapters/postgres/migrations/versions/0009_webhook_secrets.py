"""Only who signs reads what is signed with: the gateway makes webhook secrets and cannot read them back (RT-22)."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision: str | None = "0008"
branch_labels = None
depends_on = None

_GUARD = "SELECT parley_guard('webhook_secrets', 'SELECT', '{gateway}', '')"


def upgrade() -> None:
    op.execute(_GUARD.format(gateway="SELECT (tenant_id, secret_id, created_at), INSERT, DELETE"))


def downgrade() -> None:
    op.execute(_GUARD.format(gateway="SELECT, INSERT, DELETE"))
