"""One execution of one flow: what the steps of a policy hand to each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.frame import Frame
from orchestrator.pex.tools import ToolRunner
from orchestrator.types import Json, JsonObject, ToolId
from orchestrator.world.world import World


@dataclass(slots=True)
class Execution:
    """`data`: what the tools returned, merged by name; later tools win.

    `filled`: the slots that held values when the tools were called, for `verify`.
    `gated`: the tools whose calls need an approval, and why.
    `warning`: why the data are only a part. `code`: what a skill wrote, for the frame.
    """

    flow: BaseFlow
    world: World
    tools: ToolRunner
    data: JsonObject = field(default_factory=JsonObject)
    used: list[ToolId] = field(default_factory=list[ToolId])
    returned: list[JsonObject] = field(default_factory=list[JsonObject])
    """What each of the tools in `used` gave."""
    frame: Frame | None = None
    filled: frozenset[str] = frozenset()
    gated: dict[ToolId, str] = field(default_factory=dict[ToolId, str])
    warning: str | None = None
    code: str | None = None
    by_skill: bool = False
    noted: bool = False
    """What was found is in the scratchpad."""

    def take(self, tool_id: ToolId, data: JsonObject) -> None:
        """Keep what a tool returned for later tools, the frame and the answer."""
        self.used.append(tool_id)
        self.returned.append(data)
        self.data.update(data)

    @property
    def has_result(self) -> bool:
        return bool(self.used) or self.by_skill

    def value(self, name: str) -> Json:
        return self.flow.value(name)
