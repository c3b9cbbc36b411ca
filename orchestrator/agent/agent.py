"""The Agent: drives one turn through NLU, PEX and RES and decides everything that is to be committed (AG-1).

It writes nothing itself; journal steps and tools' effects happen on the way.
"""

from __future__ import annotations

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import run_steps
from orchestrator.agent.steps import STEPS
from orchestrator.agent.steps.load import load
from orchestrator.agent.steps.record import record
from orchestrator.agent.system_turns import take_system_turn
from orchestrator.runtime.journal import Journal
from orchestrator.telemetry.traces import Phases
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.turn import TurnKind


class Agent:
    """One per domain and process; what belongs to a turn is in the running turn."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self.deadline_s = modules.domain.config.session.deadline_s

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        """Decide everything the turn changes.

        Raises:
            TurnCancelled, LaneLost, DeadlineExceeded: the turn was ended from outside.
        """
        with Phases("load") as phases:
            if work.input.kind is TurnKind.SYSTEM:
                return await take_system_turn(lease, work, journal, self._modules, phases)
            turn = load(lease, work, journal, self._modules, phases)
            await run_steps(STEPS, turn, self._modules)
            phases.enter("record")
            return record(turn, self._modules)
