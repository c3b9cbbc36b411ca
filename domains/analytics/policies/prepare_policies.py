"""Policies of Prepare flows: changes of a table, confirmed where something would be lost."""

from __future__ import annotations

from domains.analytics.policy import TablePolicy
from orchestrator import Ending, Execution, Failed, FailureCategory, Recover, Recovery


class Tidying(TablePolicy):
    """Carried out as declared."""


class Removing(TablePolicy):
    """Lets go where there is nothing to remove: then there is nothing to ask."""

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        if failure.category is FailureCategory.VALIDATION_ERROR:
            return Recover(Recovery.ESCALATE, failure)
        return await super().recover(run, failure)
