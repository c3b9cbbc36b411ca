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

    check = steps.check
    review = steps.review
    check_slots = steps.check_slots
    invoke = steps.invoke
    results = steps.results
    complete = steps.complete
    verify = steps.verify
    recover = steps.recover

    async def execute(self, run: Execution) -> Ending:
        """Take the steps in their order; the last one, `recover`, chooses what is to be done about a failure."""
        for step in steps.STEPS[:-1]:
            ending: Ending | None = await getattr(self, step.__name__)(run)
            if isinstance(ending, Failed):
                return await self.recover(run, ending)
            if ending is not None:
                return ending
        return Completed() if run.warning is None else Partial(run.warning)
