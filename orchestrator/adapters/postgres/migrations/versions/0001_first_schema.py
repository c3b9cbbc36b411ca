"""The first schema, as `migrate` creates it in an empty database.

After a release, each change gets a separate revision.
"""

from __future__ import annotations

from alembic import op

from orchestrator.adapters.postgres.migrate import read_first_schema

revision = "0001"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind().execution_options(
        no_parameters=True
    )  # text() would require escaping % in the text
    for part in read_first_schema():
        connection.exec_driver_sql(part)
