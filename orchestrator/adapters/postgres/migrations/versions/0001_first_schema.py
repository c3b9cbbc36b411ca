"""The first schema, from the files of `schema/` in their order. A change after a release is a revision of its own."""

from __future__ import annotations

from importlib import resources

from alembic import op

revision = "0001"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    folder = resources.files("orchestrator.adapters.postgres").joinpath("schema")
    connection = op.get_bind().execution_options(no_parameters=True)  # or % in the text would need doubling
    for part in sorted(folder.iterdir(), key=lambda part: part.name):
        connection.exec_driver_sql(part.read_text("utf-8"))
