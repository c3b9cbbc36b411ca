"""Carries a flow out by its policy: the skeleton that every flow goes through, each step a method (PX-1).

Public to domains: subclass, override one step or choice. A policy holds no state of a turn; the execution does.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.pex import steps
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Completed, Ending, Execution, Failed, Partial


class BasePolicy(Choices):
    """One per flow type and process. The steps return None to go on, or an ending."""

    dact: ClassVar[str | None] = None
    """The flow that a domain's policy is for; a flow may also name its policy in its YAML."""

    async def execute(self, run: Execution) -> Ending:
        """Take the steps in their order; the last one, `recover`, chooses what is to be done about a failure."""
        for step in steps.STEPS[:-1]:
            ending: Ending | None = await getattr(self, step.__name__)(run)
            if isinstance(ending, Failed):
                return await self.recover(run, ending)
            if ending is not None:
                return ending
        return Completed() if run.warning is None else Partial(run.warning)

    async def check(self, run: Execution) -> Ending | None:
        return steps.check(run)

    async def review(self, run: Execution) -> Ending | None:
        return await steps.review(run)

    async def check_slots(self, run: Execution) -> Ending | None:
        return steps.check_slots(run)

    async def invoke(self, run: Execution) -> Ending | None:
        return await steps.invoke(run, self)

    async def results(self, run: Execution) -> Ending | None:
        return await steps.results(run, self)

    async def complete(self, run: Execution) -> Ending | None:
        await steps.complete(run, self)
        return None

    async def verify(self, run: Execution) -> Ending | None:
        steps.verify(run)
        return None

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        return steps.recover(run, self, failure)
