"""Which frame goes with the answer, as clients get it (RS-5)."""

from __future__ import annotations

from orchestrator.dialogue.frame import Frame
from orchestrator.world.world import World


def display(world: World) -> Frame | None:
    """The frame of the flow whose results are told last in this turn; degradation is visible on it."""
    frames = [world.frames[flow.flow_id] for flow in world.told if flow.flow_id in world.frames]
    return frames[-1] if frames else None
