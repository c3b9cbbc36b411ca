"""The Alembic environment, which uses the connection from `migrate` and needs no alembic.ini."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
