"""The mailroom's list of salaries, with other rows and another display."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestrator.dialogue.records import Frame
from orchestrator.domain.services import ServiceContext
from orchestrator.pex.execution import Execution
from orchestrator.pex.policy import BasePolicy
from orchestrator.types import Dact
from parley.simulator import Conversation, Simulator
from parley.testing.memory import MemoryRecords
from tests.domains.mailroom.services import Mailroom
from tests.trained import trained


class Salaries(Mailroom):
    def __init__(self, rows: list[Any]) -> None:
        super().__init__(ServiceContext(MemoryRecords(), {}))
        self.rows = rows

    async def list_salaries(self) -> dict[str, Any]:
        return {"rows": self.rows}


def converse_about(salaries: Salaries, sections: Any = None, **looks: Any) -> Conversation:
    """Start a conversation in which the frame of the list has these attributes."""

    class Looking(BasePolicy):
        def frame(self, run: Execution) -> Frame:
            frame = super().frame(run)
            for name, value in looks.items():
                setattr(frame, name, value)
            return frame

    loaded, system1 = trained("mailroom")
    changed = replace(loaded, policies={**loaded.policies, Dact("list_salaries"): Looking})
    services = {"Mailroom": salaries}
    return Simulator.of(changed, system1=system1, services=services, sections=sections).converse()
