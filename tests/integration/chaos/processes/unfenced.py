"""The same worker with the fence cut out of the SQL text: it has to fail the checker."""

from __future__ import annotations

from orchestrator.adapters.postgres import statements as sql
from orchestrator.settings import load_settings

FENCE = "AND lease_token = %(token)s AND lanes.epoch = %(epoch)s"

_fenced = sql.statement


def _unfenced(name: str) -> sql.Statement:
    if name != "commit_turn":
        return _fenced(name)
    written = sql.source(name)
    assert written.count(FENCE) == 1, "the fence was not found, so nothing would be shown"
    return sql.parse(written.replace(FENCE, ""))


sql.statement = _unfenced

# The adapters read the statement when they are imported, so they come after the cut.
from tests.integration.chaos.processes.counting import build  # noqa: E402
from workers.app import create_app  # noqa: E402

app = create_app(load_settings(), build)
