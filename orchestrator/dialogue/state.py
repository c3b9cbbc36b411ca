"""The dialogue state: everything a session's next turn has to know (ST-1, ST-3).

It holds and bounds; deciding is the business of the modules. What leaves it stays in the archive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from orchestrator.dialogue.ambiguity import AmbiguityHandler
from orchestrator.dialogue.correction import REOPENED
from orchestrator.dialogue.flow import BaseFlow, FlowTypes, PlanFlow, load_flow
from orchestrator.dialogue.json_values import copy_json
from orchestrator.dialogue.lifecycle import ACTIVE, COMPLETED, INTERRUPTED
from orchestrator.dialogue.records import (
    DigressionRecord,
    EffectNote,
    Flags,
    LabelSource,
    Message,
    PendingApproval,
    Shown,
)
from orchestrator.dialogue.slots import SlotSource, SlotValue
from orchestrator.dialogue.stack import FlowStack
from orchestrator.dialogue.storage.serialization import dump, load
from orchestrator.dialogue.storage.upgrade import SCHEMA_VERSION, upgrade
from orchestrator.dialogue.understanding import FlowScore
from orchestrator.dialogue.validation import Rejected
from orchestrator.types import Dact, FlowId, JsonObject, SessionId


@dataclass(frozen=True, slots=True)
class StateLimits:
    """How much the working state holds of what grows with the conversation (ST-3)."""

    messages: int = 50
    trace: int = 100
    completed: int = 10
    effects: int = 50
    """Beyond those that have gone with their flows already."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What was said up to and with turn `through_turn`; nothing that is newer is in it."""

    text: str
    through_turn: int


DEFAULT_LIMITS = StateLimits()
CANDIDATES_KEPT = 3


@dataclass(slots=True)
class Prediction:
    """What NLU thought of the last message. `candidates`: the three best flows, best first."""

    intent: str | None = None
    flow: Dact | None = None
    candidates: list[FlowScore] = field(default_factory=list[FlowScore])


@dataclass(slots=True)
class History:
    """What was said and done lately. `summary` is of the older turns, once there are many (IF-12).

    `trace` holds small JSON records that are never changed once they are in.
    """

    messages: list[Message] = field(default_factory=list[Message])
    trace: list[JsonObject] = field(default_factory=list[JsonObject])
    summary: Summary | None = None


@dataclass(slots=True)
class Intake:
    """What the session has taken in from outside.

    `labels`: of what must not simply go out again (PX-3). `entities`: the session's own values by entity,
    with their metadata, which no catalogue knows (AG-3).
    """

    labels: list[LabelSource] = field(default_factory=list[LabelSource])
    entities: dict[str, dict[str, JsonObject]] = field(default_factory=dict[str, dict[str, JsonObject]])


@dataclass(slots=True)
class DialogueState:
    """`completed`: flows, latest last, with outputs (FS-7). `shown`: the rows that were displayed last.
    `written`: completed flows as JSON, so that each is written once.

    The open questions refer to the state's own stack.
    """

    session: SessionId
    turn: int = 0
    prediction: Prediction = field(default_factory=Prediction)
    flags: Flags = field(default_factory=Flags)
    stack: FlowStack = field(default_factory=FlowStack)
    digression: DigressionRecord = field(default_factory=DigressionRecord)
    approvals: list[PendingApproval] = field(default_factory=list[PendingApproval])
    history: History = field(default_factory=History)
    completed: list[BaseFlow] = field(default_factory=list[BaseFlow])
    effects: list[EffectNote] = field(default_factory=list[EffectNote])
    intake: Intake = field(default_factory=Intake)
    shown: Shown | None = None
    ambiguity: AmbiguityHandler = field(init=False)
    written: dict[FlowId, JsonObject] = field(default_factory=dict[FlowId, JsonObject], init=False)

    def __post_init__(self) -> None:
        self.ambiguity = AmbiguityHandler(self.stack)

    @classmethod
    def new(cls, session_id: SessionId) -> DialogueState:
        """The state of a session in which nothing has been said."""
        return cls(session_id)

    # What a turn does

    def predict(self, intent: str | None, flows: Iterable[FlowScore]) -> None:
        """Note what NLU thinks: the three best flows, best first."""
        candidates = sorted(flows, key=lambda flow: -flow.score)[:CANDIDATES_KEPT]
        self.prediction = Prediction(intent, candidates[0].dact if candidates else None, candidates)

    def say(self, role: str, text: str) -> None:
        """Add a line of the conversation."""
        self.history.messages.append(Message(role, text, self.turn))

    def inherit(self, flow: BaseFlow) -> list[str]:
        """Give a starting flow its declared inputs from completed ones (FS-7). Returns what it got.

        Each comes from the most recently completed flow that has it as an output, is marked as
        inherited, and never replaces a value or enters a slot whose type turns it away.
        """
        return [name for name in flow.spec.inputs if name not in flow.slots and self._inherit(flow, name)]

    def _inherit(self, flow: BaseFlow, name: str) -> bool:
        giver = next((done for done in reversed(self.completed) if done.outputs.get(name) is not None), None)
        if giver is None:
            return False
        verdict = flow.judge(name, giver.outputs[name])
        if isinstance(verdict, Rejected):
            return False
        turn_id = giver.turn_ids[-1] if giver.turn_ids else None
        flow.slots[name] = SlotValue(copy_json(verdict.value), SlotSource.INHERITED, turn_id)
        return True

    def archive(self, flows: Iterable[BaseFlow], limits: StateLimits = DEFAULT_LIMITS) -> list[BaseFlow]:
        """Keep completed flows at hand and close the questions of all that left (FS-9).

        Returns the flows, for the lasting archive. Outputs that a flow did not set are taken from
        its slots of the same names.
        """
        left = list(flows)
        for flow in left:
            self.ambiguity.resolve(flow_id=flow.flow_id)
            self.void_approvals(flow.flow_id)
            if flow.status == COMPLETED:
                _complete_outputs(flow)
                self.completed.append(flow)
        self.completed = self.completed[-limits.completed :] if limits.completed else []
        return left

    def find_completed(self, dact: str | None = None) -> BaseFlow | None:
        """The most recently completed flow, of this dact if one is named."""
        return next((flow for flow in reversed(self.completed) if dact in {None, flow.dact}), None)

    def void_approvals(self, flow_id: str) -> list[PendingApproval]:
        """Drop the pending approvals of a flow, after a correction, a replanning, or its end (PX-17)."""
        void = [approval for approval in self.approvals if approval.flow_id == flow_id]
        if void:
            self.approvals = [approval for approval in self.approvals if approval.flow_id != flow_id]
        return void

    def prune(self, limits: StateLimits = DEFAULT_LIMITS) -> None:
        """Drop the oldest of everything that grows (ST-3).

        What was done is known exactly as long as the flows that did it, because only those can be
        corrected (RT-12).
        """
        grown = (self.history.messages, limits.messages), (self.history.trace, limits.trace)
        for kept, most in (*grown, (self.completed, limits.completed)):
            del kept[: max(0, len(kept) - most)]
        if self.effects:
            at_hand = self._at_hand()
            self.effects[:] = [note for note in self.effects if note.flow_id in at_hand]
            del self.effects[: max(0, len(self.effects) - limits.effects)]

    def _at_hand(self) -> set[str]:
        """Flows that can still be corrected: completed ones, those on the stack, steps of a plan there."""
        stacked = [*self.stack.flows, *self.stack.departed]
        own = {flow.flow_id for flow in (*stacked, *self.completed)}
        corrected = {flow.notes[REOPENED] for flow in stacked if REOPENED in flow.notes}
        steps = {step.flow_id for flow in stacked if isinstance(flow, PlanFlow) for step in flow.steps}
        return own | corrected | steps

    # JSON

    def serialize(self) -> JsonObject:
        """As JSON; shares no container that is changed later. What does not change is the same object each time."""
        body = dump(self, without=_WRITTEN_APART)
        parts = {part: body.pop(part) for part in ("prediction", "intake")}
        history, stack = self.history, self.stack
        parts["history"] = {
            "messages": [{"role": one.role, "text": one.text, "turn": one.turn} for one in history.messages],
            "trace": [*history.trace],
            "summary": None if history.summary is None else dump(history.summary),
        }
        found = {name: parts[part][inner] for name, (part, inner) in _PLACES.items()}
        self.written = {flow.flow_id: self._write(flow) for flow in self.completed}
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: value for name, value in body.items() if value is not None},
            **{name: value for name, value in found.items() if value or name not in _SELDOM},
            "stack": [flow.serialize() for flow in stack.flows],
            "departed": [flow.serialize() for flow in stack.departed],
            "completed": [*self.written.values()],
            "ambiguity": dump(self.ambiguity, without={"stack": True}),
        }

    def _write(self, flow: BaseFlow) -> JsonObject:
        """A completed flow as JSON. Only its notes still change, and plans, whose steps may be undone."""
        known = self.written.get(flow.flow_id)
        if known is None or known.get("notes", {}) != flow.notes or isinstance(flow, PlanFlow):
            return flow.serialize()
        return known

    @classmethod
    def from_dict(cls, body: JsonObject, flow_types: FlowTypes) -> DialogueState:
        """The inverse of `serialize`, for documents of this version and of older ones.

        Raises SchemaTooNew.
        """
        if body.get("schema_version") != SCHEMA_VERSION:
            body = upgrade(body)
        names = ("stack", "departed", "completed")
        flows, departed, completed = ([load_flow(one, flow_types) for one in body[name]] for name in names)
        own: JsonObject = {"prediction": {}, "history": {}, "intake": {}}
        for name, part in body.items():
            if name not in names:
                place, inner = _PLACES.get(name, ("", name))
                (own[place] if place else own)[inner] = part
        state = load(cls, own)
        state.stack.flows, state.stack.departed, state.completed = flows, departed, completed
        asked = load(AmbiguityHandler, body["ambiguity"])
        state.ambiguity = AmbiguityHandler(state.stack, asked.open, asked.counts)
        return state


_PLACES: Mapping[str, tuple[str, str]] = {
    "predicted_intent": ("prediction", "intent"),
    "predicted_flow": ("prediction", "flow"),
    "candidates": ("prediction", "candidates"),
    "messages": ("history", "messages"),
    "trace": ("history", "trace"),
    "summary": ("history", "summary"),
    "labels": ("intake", "labels"),
    "entities": ("intake", "entities"),
}
"""Where in the state a key of its JSON is."""
_WRITTEN_APART: Mapping[str, bool] = dict.fromkeys(
    ("stack", "completed", "history", "written", "ambiguity"), True
)
_SELDOM = frozenset({"summary", "entities"})
"""Not written while there is nothing in them."""


def _complete_outputs(flow: BaseFlow) -> None:
    for name in flow.spec.outputs:
        value = flow.value(name)
        if name not in flow.outputs and value is not None:
            flow.outputs[name] = copy_json(value)


def repair(state: DialogueState, now: float) -> list[str]:
    """Interrupt what is Active below the top, take the top up, drop approvals of flows that are gone."""
    done: list[str] = []
    stack = state.stack
    for flow in stack.flows[:-1]:
        if flow.status == ACTIVE:
            flow.become(INTERRUPTED)
            flow.interrupted_at = now
            done.append(f"{flow.dact} was Active below the top and is interrupted now.")
    top = stack.top
    if top is not None and top.status == INTERRUPTED:
        stack.reactivate()
        done.append(f"{top.dact} on top is Active again.")
    there = {flow.flow_id for flow in stack.flows}
    orphans = [approval for approval in state.approvals if approval.flow_id not in there]
    if orphans:
        state.approvals = [approval for approval in state.approvals if approval.flow_id in there]
        done.append(f"{len(orphans)} approvals of flows that are gone were dropped.")
    return done
