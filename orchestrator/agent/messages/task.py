"""Start the task that the user asks for, or carry on the open one of its type (FS-9, FS-10)."""

from __future__ import annotations

from orchestrator.agent.messages.unknown import be_unsure
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import start_task
from orchestrator.dialogue.understanding import Understanding


def take_task(turn: RunningTurn, understood: Understanding) -> None:
    known = [score.dact for score in understood.flows if score.dact in turn.context.world.domain.flows]
    state = turn.changes.state
    if known:
        waiting = state.stack.find(known[0])
        for entry in [
            e for e in state.ambiguity.open if waiting is not None and e.flow_id == waiting.flow_id
        ]:
            if entry.metadata.get("about") == "change":  # whoever asks for the task again wants it as it is
                state.ambiguity.resolve(entry)
        start_task(turn, known[0], understood.slots)
    else:
        be_unsure(turn, understood)
