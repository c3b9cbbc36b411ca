"""One step of a plan: what it is for, where its values come from, how far it has come, what it found.

It stays on record with its plan after its flow has left the stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestrator.dialogue.lifecycle import CANCELLED, PLANNED, PRUNED, FlowState, Reason, Standing
from orchestrator.types import Dact, FlowId, JsonObject

BOUND = "bound"
"""The note of a sub-flow that has been given its values, so that work on it has begun."""
ANSWERED = "answered"
"""The note of a step that was given up because its answer is known; it counts as done."""


@dataclass(slots=True)
class PlanStep:
    """`name`: unique in the plan; the dact when nobody gave one. `slots`: bindings by slot, as serialised.

    `outputs`: what the step found, for later ones. `note`: why it was given up, in words for the user.
    """

    flow_id: FlowId
    dact: Dact
    state: FlowState = FlowState.PENDING
    reason: Reason | None = Reason.PLANNED
    name: str = ""
    purpose: str = ""
    slots: JsonObject = field(default_factory=JsonObject)
    needs: tuple[str, ...] = ()
    optional: bool = False
    tell: bool = False
    outputs: JsonObject = field(default_factory=JsonObject)
    note: str = ""

    def __post_init__(self) -> None:
        self.name = self.name or self.dact

    @property
    def standing(self) -> Standing:
        return Standing(self.state, self.reason)

    @property
    def is_planned(self) -> bool:
        """Nothing has been done for it yet."""
        return self.standing == PLANNED

    @property
    def is_finished(self) -> bool:
        return self.state in {FlowState.COMPLETED, FlowState.INVALID}

    @property
    def is_done(self) -> bool:
        """Completed, or not needed because its answer was known."""
        answered = self.standing == PRUNED and self.note == ANSWERED
        return self.state is FlowState.COMPLETED or answered

    @property
    def was_dropped_by_user(self) -> bool:
        return self.standing == CANCELLED

    @property
    def was_never_begun(self) -> bool:
        """Given up while it was still planned."""
        return self.standing == PRUNED

    @property
    def label(self) -> str:
        """What the user reads."""
        return self.purpose or self.name.replace("_", " ")

    def become(self, standing: Standing, note: str = "") -> None:
        self.state, self.reason = standing
        self.note = note or self.note

    def carried_out_by(self, flow_id: FlowId, dact: Dact) -> PlanStep:
        """The same step, to be carried out by another flow."""
        return replace(
            self, flow_id=flow_id, dact=dact, state=FlowState.PENDING, reason=Reason.PLANNED, note=""
        )
