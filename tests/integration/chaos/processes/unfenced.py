"""A worker without the fence in the SQL text. The checker must detect it."""

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


# Statements are read on first use, so importers get the modified statements too.
sql.source = _unfenced
sql.statement.cache_clear()

app = create_app(load_settings(), build)
