"""Policies of Read flows: questions about tables, and where a query goes whose data are not there."""

from __future__ import annotations

from typing import ClassVar

from domains.analytics.policy import TablePolicy, ask, names_no_table
from orchestrator import Dact, Ending, Execution, Failed, FailureCategory, Recover, Recovery

_ABOUT_VALUES = frozenset({FailureCategory.VALIDATION_ERROR, FailureCategory.NOT_FOUND})


def choose_staging(sources: int, targets: int, *, columns: bool = True) -> Dact | None:
    """Choose the change that makes what is missing, by how many tables are at hand and how much is missing.

    Several tables have to become one. In one table, missing rows are inserted; a missing column is derived,
    and several are split off another. Where nothing is missing: none.
    """
    if sources >= 2:
        return Dact("merge")
    if not targets:
        return None
    if not columns:
        return Dact("insert_row")
    return Dact("split_column" if targets >= 2 else "derive_column")


class Reading(TablePolicy):
    """Lets go of a question of several parts that has no answer: it is as quickly asked anew."""

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        about_values = failure.category in _ABOUT_VALUES and failure.check is None
        about_values = about_values and not names_no_table(run, failure)
        if about_values and len(run.flow.slots) > 1 and self.fallback(run, failure) is None:
            return Recover(Recovery.ESCALATE, failure)
        return await super().recover(run, failure)


class Query(Reading):
    dact: ClassVar[str | None] = "query"

    def fallback(self, run: Execution, failure: Failed) -> Dact | None:
        """Lead a query whose data do not exist yet to the change that would make them (PX-16)."""
        if failure.category is not FailureCategory.NOT_FOUND or "sources" not in run.data:
            return super().fallback(run, failure)
        data = run.data
        change = choose_staging(data["sources"], data["targets"], columns=bool(data["missing"]))
        return change or super().fallback(run, failure)

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        """Hand over, of the columns asked for, only those that are missing: they are to be made."""
        ending = await super().recover(run, failure)
        if isinstance(ending, Recover) and ending.target is not None:
            run.flow.clear("columns")
            if run.data["missing"]:
                run.flow.fill_slots_by_label(
                    {"columns": run.data["missing"]}, turn_id=run.context.ids.turn_id
                )
        return ending


class Aggregate(Reading):
    dact: ClassVar[str | None] = "aggregate"

    async def review(self, run: Execution) -> Ending | None:
        """Everything but counting rows needs a column."""
        ending = await super().review(run)
        if ending is None and run.value("function") not in {None, "count"} and run.value("column") is None:
            return ask(run, "column")
        return ending


class Compare(Reading):
    dact: ClassVar[str | None] = "compare"

    async def review(self, run: Execution) -> Ending | None:
        """Two groups or two years are needed, whichever was begun with."""
        ending = await super().review(run)
        if ending is not None:
            return ending
        if run.value("first_year") is not None and run.value("second_year") is not None:
            return None
        return next((ask(run, slot) for slot in ("first", "second") if run.value(slot) is None), None)
