from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.agent.modules import Modules
from orchestrator.context import Answer, TurnContext
from orchestrator.telemetry.traces import Phases
from orchestrator.turns.lease import Lease, Work


@dataclass(slots=True)
class RunningTurn:
    """The data of a running turn, with the lease for its commit.

    `began`: start time, in monotonic seconds. `answer`: None until RES has rendered it.
    """

    lease: Lease
    work: Work
    context: TurnContext
    phases: Phases
    began: float
    answer: Answer | None = None


Step: TypeAlias = Callable[[RunningTurn, Modules], Awaitable[None]]
