"""The same worker with the fence cut out of the SQL text: it has to fail the checker."""

from __future__ import annotations

from orchestrator.adapters.postgres import statements as sql
from orchestrator.settings import load_settings
from tests.integration.chaos.processes.counting import build
from workers.app import create_app

FENCE = "AND lease_token = %(token)s AND lanes.epoch = %(epoch)s"

_source = sql.source


def _unfenced(name: str) -> str:
    written = _source(name)
    if name != "commit_turn":
        return written
    assert written.count(FENCE) == 1, "the fence was not found, so nothing would be shown"
    return written.replace(FENCE, "")


# Statements are read when they are first needed, so whoever has imported them already gets the cut one too.
sql.source = _unfenced
sql.statement.cache_clear()

app = create_app(load_settings(), build)
