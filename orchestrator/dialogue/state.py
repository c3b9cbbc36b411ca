"""The dialogue state: everything a session's next turn has to know (ST-1, ST-3).

It holds and bounds; deciding is the business of the modules. What leaves it stays in the archive.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.dialogue.ambiguity import AmbiguityHandler
from orchestrator.dialogue.flow import BaseFlow, FlowTypes, PlanFlow, load_flow
from orchestrator.dialogue.lifecycle import COMPLETED
from orchestrator.dialogue.records import (
    REOPENED,
    DigressionRecord,
    EffectNote,
    Flags,
    History,
    Intake,
    Message,
    PendingApproval,
    Prediction,
    Shown,
    Summary,
)
from orchestrator.dialogue.stack import FlowStack
from orchestrator.dialogue.storage.serialization import dump, load
from orchestrator.dialogue.storage.upgrade import SCHEMA_VERSION, upgrade
from orchestrator.dialogue.understanding import FlowScore
from orchestrator.types import Epoch, FlowId, JsonObject, SessionId


@dataclass(frozen=True, slots=True)
class StateLimits:
    """How much the working state holds of what grows with the conversation (ST-3)."""

    messages: int = 50
    trace: int = 100
    completed: int = 10
    effects: int = 50
    """Beyond those that have gone with their flows already."""


DEFAULT_LIMITS = StateLimits()
CANDIDATES_KEPT = 3
SHOWN_BEFORE = 3


@dataclass(slots=True)
class DialogueState:
    """`completed`: flows, latest last, with outputs (FS-7). `shown`: the rows that were displayed last, and
    `shown_before` those of other flows, latest last. `later`: requests that were made together with another one, by
    the flow that comes first. `written`: completed flows as JSON, each written once. `epoch`: of its own commit.

    The open questions refer to the state's own stack.
    """

    session: SessionId
    turn: int = 0
    epoch: int = 0
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
    shown_before: list[Shown] = field(default_factory=list[Shown])
    later: dict[FlowId, list[str]] = field(default_factory=dict[FlowId, list[str]])
    ambiguity: AmbiguityHandler = field(init=False)
    written: dict[FlowId, JsonObject] = field(default_factory=dict[FlowId, JsonObject], init=False)

    def __post_init__(self) -> None:
        self.ambiguity = AmbiguityHandler(self.stack)

    @classmethod
    def new(cls, session_id: SessionId) -> DialogueState:
        return cls(session_id)

    def put_off(self, first: FlowId, *requests: str) -> None:
        """Keep requests until a flow has ended, behind those that wait for it already."""
        self.later.setdefault(first, []).extend(requests)

    def take_due(self) -> list[str]:
        """Take the requests whose turn it is: the flow that came first is over, and nothing is asked."""
        if self.ambiguity.current is not None:
            return []
        waiting = {flow.flow_id for flow in self.stack.live()}
        due = next((first for first in self.later if first not in waiting), None)
        return [] if due is None else self.later.pop(due)

    def forget_later(self, *first: FlowId) -> None:
        """Drop the requests that come after these flows; without any, all."""
        for flow_id in first or tuple(self.later):
            self.later.pop(flow_id, None)

    def follow(self, epoch: Epoch) -> bool:
        """Take in what a session's next commit has; False if the one before it has no part in this state."""
        before, self.epoch = self.epoch, epoch
        return before in {0, epoch - 1}

    def begin_turn(self) -> None:
        self.turn += 1

    def take_back_turn(self) -> None:
        """Count a turn for nothing: it says nothing and leaves the conversation as it was."""
        self.turn -= 1

    def keep_done(self, broken: DialogueState, effects: Iterable[EffectNote]) -> None:
        """Take over from a state that is thrown away what stays: effects, and what was taken in."""
        self.effects.extend(effects)
        self.intake.labels = broken.intake.labels

    def end_digression(self) -> None:
        """The user is back on the task; the last kind stays on record."""
        self.digression.depth = 0

    def note_origin(self, *, natural: bool) -> None:
        """Note whether the top flow came from the user's own words."""
        self.flags.natural_birth = natural

    def note_issues(self, *, present: bool = True) -> None:
        """Note whether a check failed, or a result is not complete."""
        self.flags.has_issues = present

    def note_plan(self) -> None:
        """Note whether a plan is in progress."""
        self.flags.has_plan = self.stack.plan is not None

    def keep_going(self, *, going: bool) -> None:
        """Note whether the next flow is carried out without waiting for the user."""
        self.flags.keep_going = going

    def note_effect(self, note: EffectNote) -> None:
        """Note what a call did, in place of what was noted while its outcome was unknown."""
        known = [bool(one.fingerprint) and one.fingerprint == note.fingerprint for one in self.effects]
        place = known.index(True) if True in known else len(known)
        self.effects[place : place + 1] = [note]

    def note_shown(self, rows: Shown) -> None:
        """Keep the rows that the answer displays, so that the user can refer to them (IR-5)."""
        self.shown_before = [one for one in self.displayed if one.dact != rows.dact][-SHOWN_BEFORE:]
        self.shown = rows

    @property
    def displayed(self) -> list[Shown]:
        """All rows that were displayed and are still kept, latest last."""
        return [*self.shown_before, *([self.shown] if self.shown is not None else ())]

    def find_shown(self, names: Container[str]) -> Shown | None:
        """Find the rows displayed last that one of these names tells apart; else those displayed last."""
        return next((one for one in reversed(self.displayed) if one.key in names), self.shown)

    def talk_about(self, place: int) -> None:
        """Note which of the rows displayed last is being talked about."""
        if self.shown is not None:
            self.shown = replace(self.shown, place=place)

    def ask_approval(self, approval: PendingApproval) -> None:
        """Let a call wait for a decision, in place of whatever its flow waited for."""
        self.void_approvals(approval.flow_id)
        self.approvals.append(approval)

    def close_approval(self, approval: PendingApproval) -> None:
        self.approvals.remove(approval)

    def summarise(self, text: str, through_turn: int) -> None:
        """Take a summary of what was said up to and with a turn."""
        self.history.summary = Summary(text, through_turn)

    def predict(self, intent: str | None, flows: Iterable[FlowScore]) -> None:
        """Note what NLU thinks: the three best flows, best first."""
        candidates = sorted(flows, key=lambda flow: -flow.score)[:CANDIDATES_KEPT]
        self.prediction = Prediction(intent, candidates[0].dact if candidates else None, candidates)

    def say(self, role: str, text: str) -> None:
        """Add a line of the conversation."""
        self.history.messages.append(Message(role, text, self.turn))

    def converse(self, said: str, reply: str, most: int) -> None:
        """Add what was said and answered, and let go of what is older than the last `most` messages (ST-3)."""
        if said:
            self.say("user", said)
        self.say("agent", reply)
        del self.history.messages[: max(0, len(self.history.messages) - most)]

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
                flow.complete_outputs()
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

    def end_turn(self, trace: JsonObject, limits: StateLimits = DEFAULT_LIMITS) -> None:
        """Bring the state into the form in which it is kept. `trace`: what became of the turn, in small."""
        self.note_plan()
        if self.stack.top is None:
            self.note_origin(natural=True)
        self.history.trace.append(trace)
        self.prune(limits)

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
            **{name: value for name, value in body.items() if value or name not in _SELDOM},
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
        as_written = body.get("schema_version") == SCHEMA_VERSION
        if not as_written:
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
        if as_written:
            state.written = {one["flow_id"]: one for one in body["completed"]}
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
_SELDOM = frozenset({"summary", "entities", "shown", "shown_before", "later", "epoch"})
"""Not written while there is nothing in them."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """`body` is the state as serialised; nobody changes it."""

    raw: bytes
    body: JsonObject
    state: DialogueState


class StateCache:
    """Decoded states of sessions that stay on this process, so that they are not parsed again every turn.

    An entry is found by the very bytes it was written as: whatever another process commits meanwhile has others.
    Taking it removes it, because a turn changes it in place. Of more than `size`, the one kept longest ago goes.
    """

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._entries: OrderedDict[SessionId, Decoded] = OrderedDict()

    def take(self, session_id: SessionId, raw: bytes) -> Decoded | None:
        """Remove and give the session's entry if it was written as exactly these bytes."""
        found = self._entries.pop(session_id, None)
        return found if found is not None and found.raw == raw else None

    def keep(self, session_id: SessionId, decoded: Decoded) -> None:
        """Remember what the session's next turn is likely to begin with."""
        self._entries[session_id] = decoded
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
