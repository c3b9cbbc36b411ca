"""Policies of Transform flows: a part can be fetched only if its shelf is known. The user is asked last."""

from __future__ import annotations

from parley import BasePolicy, Ending, Execution, Failed, FailureCategory


class FetchPart(BasePolicy):
    dact = "fetch_part"

    async def invoke(self, run: Execution) -> Ending | None:
        if run.value("shelf") is None:
            why = "Which shelf is it on?"
            return Failed(
                FailureCategory.VALIDATION_ERROR, why, uncertain=True, evidence={"slots": ["shelf"]}
            )
        return await super().invoke(run)
