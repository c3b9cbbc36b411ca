"""Records of a flow in progress: confirmations, approvals and the runtime's notes (PX-18)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.types import FlowId, JsonObject, ToolId, copy_json


@dataclass(frozen=True, slots=True)
class Candidate:
    """A displayed call that awaits confirmation.

    `fingerprint`: the digest that the user's confirmation must match. `agreed`: True if the user confirmed the call.
    `data`: tool results needed after the confirmation. `again`: True if the call may have been made before.
    """

    tool_id: ToolId
    arguments: JsonObject
    data: JsonObject
    fingerprint: str
    agreed: bool = False
    again: bool = False

    @property
    def facts(self) -> JsonObject:
        """Return the texts, numbers and booleans in `data`, which the offer may display."""
        return {name: value for name, value in self.data.items() if isinstance(value, str | int | float)}


@dataclass(frozen=True, slots=True)
class AwaitedCall:
    """An accepted call whose result comes later (RT-32).

    `call`: the call's idempotency key. `data`: results of earlier tools that are still needed. `until`: the deadline,
    in Unix seconds. `answer`: the result, or None until it arrives. `expired`: True if the deadline has
    passed and the user must be asked what to do.
    """

    call: str
    tool_id: ToolId
    arguments: JsonObject
    data: JsonObject
    until: float
    answer: JsonObject | None = None
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """A granted approval that is still unused. `call`: the digest of the approved call."""

    approval_id: str
    call: str


@dataclass(frozen=True, slots=True)
class Consent:
    """A flow's permissions for calls that need a confirmation or an approval.

    Only `dialogue.consent` changes these permissions.
    """

    candidate: Candidate | None = None
    grant: Grant | None = None


NO_CONSENT = Consent()


@dataclass(slots=True)
class Progress:
    """The runtime's record of a running flow, deleted with the flow.

    `doubted`: True if only a model understood the request, so that every side effect needs a confirmation.
    `begun`: True if the plan's values were copied to this sub-flow. `refers`: True if a model resolved the
    user's reference to an earlier value. `reopened_from`: the completed flow that runs again.
    `undo_first`: flows whose side effects are undone before this flow runs. `waits_for`: the run that gathers
    context, its time limit and its cause. `gathered_for`: the slot values when context was last gathered.
    `awaits`: the call whose result comes later. `out_of_order`: the dates last reported as out of order, by
    slot. `scratchpad`: the flow's scratchpad entries.
    """

    doubted: bool = False
    begun: bool = False
    refers: bool = False
    reopened_from: FlowId | None = None
    undo_first: tuple[FlowId, ...] = ()
    waits_for: JsonObject | None = None
    gathered_for: JsonObject | None = None
    awaits: AwaitedCall | None = None
    out_of_order: JsonObject | None = None
    scratchpad: tuple[JsonObject, ...] = ()

    def doubt(self) -> None:
        """Require a confirmation for every side effect, even if the domain doesn't require it."""
        self.doubted = True

    def begin(self) -> None:
        self.begun = True

    def set_back(self) -> None:
        self.begun = False

    def refer(self) -> None:
        self.refers = True

    def undo_before(self, done: Iterable[FlowId]) -> None:
        self.undo_first = tuple(done)

    def wait_for(self, run: JsonObject | None) -> None:
        """Record the context-gathering run that the flow waits for, or None to end the wait."""
        self.waits_for = run

    def await_result(self, call: AwaitedCall | None) -> None:
        """Record the call whose result the flow waits for, or None to end the wait."""
        self.awaits = call

    def note_gathered(self, values: JsonObject) -> None:
        self.gathered_for = copy_json(values)

    def note_out_of_order(self, days: JsonObject) -> None:
        self.out_of_order = days

    def keep(self, notes: Iterable[JsonObject]) -> None:
        self.scratchpad = tuple(notes)
