"""Runs the migrations on the connection that `migrate` hands over. Needs no alembic.ini."""

from __future__ import annotations

from alembic import context

from orchestrator.adapters.postgres.models import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
