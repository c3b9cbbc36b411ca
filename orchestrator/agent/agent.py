"""The Agent: drives one turn through NLU, PEX and RES and decides everything that is to be committed (AG-1).

It writes nothing itself; journal steps and tools' effects happen on the way.
"""

from __future__ import annotations

from orchestrator.agent.guard import guarded
from orchestrator.agent.modules import Modules
from orchestrator.agent.steps import STEPS
from orchestrator.agent.steps.load import load
from orchestrator.agent.steps.record import record
from orchestrator.agent.system_turns.context_found import brings_context, take_context_turn
from orchestrator.agent.system_turns.proposals import decide, is_proposal
from orchestrator.runtime.journal import Journal
from orchestrator.telemetry.phases import Phase
from orchestrator.turns.lease import Lease, TurnCommit, Work


class Agent:
    """One per domain and process; what belongs to a turn is in the running turn."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        """Decide everything the turn changes.

        Raises:
            TurnCancelled, LaneLost, DeadlineExceeded: the turn was ended from outside.
        """
        if is_proposal(work.input):
            return decide(lease, work, self._modules)
        if brings_context(work.input):
            return await take_context_turn(lease, work, journal, self._modules)
        with Phase("load"):
            turn = load(lease, work, journal, self._modules)
        for step in STEPS:
            with Phase(step.__name__):
                await guarded(step, turn, self._modules)
        with Phase("record"):
            return record(turn, self._modules)
