from __future__ import annotations

from typing import ClassVar

from domains.analytics.catalogue import TABLES
from domains.analytics.policy import TablePolicy, has_table, leave
from parley import Ending, Execution, FailureCategory


class Saving(TablePolicy):
    """The default policy of Prepare flows."""


class Dropping(TablePolicy):
    """The policy of `drop_table`. It rejects base tables and unknown tables."""

    dact: ClassVar[str | None] = "drop_table"

    async def review(self, run: Execution) -> Ending | None:
        table = run.value("table")
        if table in TABLES:
            why = f"{table} is a built-in table; only saved tables can be dropped."
            return leave(FailureCategory.VALIDATION_ERROR, why)
        if not has_table(run):
            return leave(FailureCategory.NOT_FOUND, f"There's no table '{table}'.")
        return await super().review(run)
