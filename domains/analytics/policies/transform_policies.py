"""Policies of Transform flows: new columns, rows and tables."""

from __future__ import annotations

from typing import ClassVar

from domains.analytics.policy import TablePolicy, ask
from orchestrator import Ending, Execution


class Shaping(TablePolicy):
    """Carried out as declared."""


class InsertRow(TablePolicy):
    dact: ClassVar[str | None] = "insert_row"

    async def review(self, run: Execution) -> Ending | None:
        """Ask for values of the row's own; what a query looked for in vain is only their beginning."""
        ending = await super().review(run)
        if ending is None and run.value("values") is None and not _says_it_all(run):
            return ask(run, "values")
        return ending


def _says_it_all(run: Execution) -> bool:
    """Check whether a condition gives the row, and was not taken over from a query."""
    return run.value("condition") is not None and run.context.changes.state.flags.natural_birth
