"""The dialogue state: all data that a session's next turn needs (ST-1, ST-3).

The state has a limited size. Flows that leave the state stay in the archive.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, fields, replace

import orjson

from orchestrator.dialogue.ambiguity import Ambiguity, AmbiguityHandler
from orchestrator.dialogue.flow import BaseFlow, FlowTypes, PlanFlow, load_flow
from orchestrator.dialogue.lifecycle import COMPLETED
from orchestrator.dialogue.records import (
    DigressionRecord,
    EffectNote,
    Flags,
    History,
    Intake,
    LabelSource,
    PendingApproval,
    Shown,
    Summary,
)
from orchestrator.dialogue.stack import FlowStack
from orchestrator.dialogue.storage.serialization import load
from orchestrator.dialogue.storage.upgrade import SCHEMA_VERSION, upgrade
from orchestrator.dialogue.tables import ShownTable
from orchestrator.dialogue.understanding import FlowScore, Prediction
from orchestrator.types import Epoch, FlowId, JsonObject, SessionId, copy_json


@dataclass(frozen=True, slots=True)
class StateLimits:
    """Maximum number of entries in each part of the state that grows with the conversation (ST-3)."""

    messages: int = 50
    trace: int = 100
    completed: int = 10
    effects: int = 50
    """Maximum number of side-effect notes whose flows can be corrected, or whose results are awaited."""


DEFAULT_LIMITS = StateLimits()
CANDIDATES_KEPT = 3
SHOWN_BEFORE = 3


@dataclass(slots=True)
class DialogueState:
    """A session's dialogue state.

    `turn`: number of turns so far. `epoch`: the epoch of the last commit. `person`: the operator who answers instead
    of the assistant, or None. `completed`: completed flows with outputs, latest last (FS-7). `shown`: the rows
    displayed last. `shown_before`: rows that other flows displayed, latest last. `table`: the table displayed last.
    `later`: postponed requests in the user's words, by the flow that must end first. `ambiguity`: open questions.
    """

    session: SessionId
    turn: int = 0
    epoch: int = 0
    person: str | None = None
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
    table: ShownTable | None = None
    later: dict[FlowId, list[str]] = field(default_factory=dict[FlowId, list[str]])
    ambiguity: AmbiguityHandler = field(init=False)

    def __post_init__(self) -> None:
        self.ambiguity = AmbiguityHandler(self.stack)

    @classmethod
    def new(cls, session_id: SessionId) -> DialogueState:
        return cls(session_id)

    def put_off(self, first: FlowId, *requests: str) -> None:
        """Postpone requests until the flow `first` ends, behind the requests already postponed for this flow."""
        self.later.setdefault(first, []).extend(requests)

    def take_due(self) -> list[str]:
        """Remove and return the due requests, which waited for one ended flow. Return [] while a question is open."""
        if self.ambiguity.current is not None:
            return []
        waiting = {flow.flow_id for flow in self.stack.live()}
        due = next((first for first in self.later if first not in waiting), None)
        return [] if due is None else self.later.pop(due)

    def forget_later(self, *first: FlowId) -> None:
        """Drop the requests that wait for the flows `first` to end. Default: all postponed requests."""
        for flow_id in first or tuple(self.later):
            self.later.pop(flow_id, None)

    def follow(self, epoch: Epoch) -> bool:
        """Set the epoch of the session's next commit. Return False if this state missed the previous commit."""
        before, self.epoch = self.epoch, epoch
        return before in {0, epoch - 1}

    def begin_turn(self) -> None:
        self.turn += 1

    def take_back_turn(self) -> None:
        """Subtract the current turn from the turn count, because it did not affect the conversation."""
        self.turn -= 1

    def keep_done(self, broken: DialogueState, effects: Iterable[EffectNote]) -> None:
        """Add `effects`, and take over the labels of external content from the discarded state `broken`."""
        self.effects.extend(effects)
        self.intake.labels = broken.intake.labels

    def leave_to(self, person: str | None) -> None:
        """Route the session to an operator, or back to the assistant (None)."""
        self.person = person

    def end_digression(self) -> None:
        """Reset the digression depth because the user is back on the task. The last kind stays on record."""
        self.digression.depth = 0

    def note_origin(self, *, natural: bool) -> None:
        """Record whether the top flow came from the user's request, not from a fallback."""
        self.flags.natural_birth = natural

    def note_issues(self, *, present: bool = True) -> None:
        self.flags.has_issues = present

    def note_plan(self) -> None:
        self.flags.has_plan = self.stack.plan is not None

    def keep_going(self, *, going: bool) -> None:
        self.flags.keep_going = going

    def note_effect(self, note: EffectNote) -> None:
        """Record a call's side effect, replacing any earlier note about the same call."""
        known = [bool(one.fingerprint) and one.fingerprint == note.fingerprint for one in self.effects]
        place = known.index(True) if True in known else len(known)
        self.effects[place : place + 1] = [note]

    def forget_call(self, fingerprint: str) -> None:
        """Remove the note about a call that turned out to have had no effect."""
        self.effects[:] = [note for note in self.effects if note.fingerprint != fingerprint]

    def note_shown(self, rows: Shown) -> None:
        """Store the rows that the answer displays, so that the user can refer to them (IR-5)."""
        self.shown_before = [one for one in self.displayed if one.dact != rows.dact][-SHOWN_BEFORE:]
        self.shown = rows

    @property
    def displayed(self) -> list[Shown]:
        """Return all stored rows that were displayed, oldest first."""
        return [*self.shown_before, *([self.shown] if self.shown is not None else ())]

    def find_shown(self, names: Container[str]) -> Shown | None:
        """Return the latest displayed rows whose key is in `names`, or the rows displayed last, or None."""
        return next((one for one in reversed(self.displayed) if one.key in names), self.shown)

    def find_rows(self, flow: BaseFlow | None) -> Shown | None:
        """Return the rows displayed last, or None if `flow` takes one of these rows but its values don't fit them."""
        listed = self.shown
        if listed is None or flow is None or flow.slot(listed.key) is None:
            return listed
        return listed if listed.fits(flow.values()) else None

    def find_current_rows(self) -> Shown | None:
        """Return the rows displayed last if the current flow displayed them or takes one of them, or None.

        The current flow is the active flow or, if there is none, the last completed flow.
        """
        if self.shown is None:
            return None
        flow = self.stack.active or self.find_completed()
        listed = self.find_rows(flow)
        if listed is None or flow is None or not listed.rows:
            return None
        return listed if flow.dact == listed.dact or flow.slot(listed.key) is not None else None

    def find_current_row(self) -> JsonObject:
        """Return the current row, with the pending call's facts if they are about this row.

        Without a current row, return only the facts.
        """
        active = self.stack.active
        candidate = None if active is None else active.consent.candidate
        offered = {} if candidate is None else candidate.facts
        listed = None if self.shown is None else self.find_current_rows()
        if listed is None:
            return offered
        row = listed.current
        return row | offered if row.get(listed.key) == offered.get(listed.key) else row

    def talk_about(self, place: int) -> None:
        """Set the current row to the row at index `place` of the rows displayed last."""
        if self.shown is not None and self.shown.place != place:
            self.shown = replace(self.shown, place=place)

    def note_table(self, table: ShownTable) -> None:
        self.table = table

    def ask_approval(self, approval: PendingApproval) -> None:
        """Add a pending approval, replacing its flow's earlier approvals."""
        self.void_approvals(approval.flow_id)
        self.approvals.append(approval)

    def close_approval(self, approval: PendingApproval) -> None:
        self.approvals.remove(approval)

    def summarize(self, text: str, through_turn: int) -> None:
        self.history.summary = Summary(text, through_turn)

    def predict(self, intent: str | None, flows: Iterable[FlowScore]) -> None:
        """Record NLU's result: the intent, and the three best of `flows`, best first."""
        candidates = sorted(flows, key=lambda flow: -flow.score)[:CANDIDATES_KEPT]
        self.prediction = Prediction(intent, candidates[0].dact if candidates else None, candidates)

    def say(self, role: str, text: str) -> None:
        """Add a message to the history. `role`: ``user``, ``agent`` or ``system``."""
        self.history.lines.append({"role": role, "text": text, "turn": self.turn})

    def converse(self, said: str, reply: str, most: int) -> None:
        """Add the user's message and the reply, and keep only the last `most` messages (ST-3)."""
        if said:
            self.say("user", said)
        self.say("agent", reply)
        del self.history.lines[: max(0, len(self.history.lines) - most)]

    def archive(self, flows: Iterable[BaseFlow], limits: StateLimits = DEFAULT_LIMITS) -> list[BaseFlow]:
        """Close the questions and approvals of flows that left the stack, and keep the latest completed flows (FS-9).

        Return the flows to archive. Missing outputs of completed flows are filled from slots with the same
        names.
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

    def find_flow(self, flow_id: str | None) -> BaseFlow | None:
        """Return the flow with this ID, on the stack or completed, or None."""
        return next((flow for flow in (*self.stack.flows, *self.completed) if flow.flow_id == flow_id), None)

    def find_completed(self, dact: str | None = None) -> BaseFlow | None:
        """Return the most recently completed flow, or None. `dact`: consider only flows with this name."""
        return next((flow for flow in reversed(self.completed) if dact in {None, flow.dact}), None)

    def void_approvals(self, flow_id: str) -> list[PendingApproval]:
        """Drop and return a flow's pending approvals, after a correction, a replanning, or its end (PX-17)."""
        void = [approval for approval in self.approvals if approval.flow_id == flow_id]
        if void:
            self.approvals = [approval for approval in self.approvals if approval.flow_id != flow_id]
        return void

    def end_turn(self, trace: JsonObject, limits: StateLimits = DEFAULT_LIMITS) -> None:
        """Prepare the state for storage. `trace`: the turn's trace entry."""
        self.note_plan()
        if self.stack.top is None:
            self.note_origin(natural=True)
        self.history.trace.append(trace)
        self.prune(limits)

    def prune(self, limits: StateLimits = DEFAULT_LIMITS) -> None:
        """Drop the oldest entries beyond the limits (ST-3).

        Side-effect notes are also dropped if their flows can't be corrected (RT-12) and no result is awaited.
        """
        grown = (self.history.lines, limits.messages), (self.history.trace, limits.trace)
        for kept, most in (*grown, (self.completed, limits.completed)):
            del kept[: max(0, len(kept) - most)]
        if self.effects:
            at_hand = self._correctable()
            self.effects[:] = [note for note in self.effects if note.flow_id in at_hand or note.is_awaited]
            del self.effects[: max(0, len(self.effects) - limits.effects)]

    def _correctable(self) -> set[FlowId]:
        """Return the IDs of completed and stacked flows, of reopened flows' originals, and of stacked plans' steps."""
        stacked = [*self.stack.flows, *self.stack.departed]
        own = {flow.flow_id for flow in (*stacked, *self.completed)}
        corrected = {one for flow in stacked if (one := flow.progress.reopened_from) is not None}
        steps = {step.flow_id for flow in stacked if isinstance(flow, PlanFlow) for step in flow.steps}
        return own | corrected | steps

    def serialize(self) -> JsonObject:
        """Return the state as JSON that shares nothing with the state."""
        return self.write()[0]

    def write(self) -> tuple[JsonObject, bytes]:
        """Return the state as a JSON object, which shares nothing with the state, and as the object's bytes."""
        history, intake, flags = self.history, self.intake, self.flags
        body: JsonObject = {
            "schema_version": SCHEMA_VERSION,
            "session": self.session,
            "turn": self.turn,
            "predicted_intent": self.prediction.intent,
            "predicted_flow": self.prediction.flow,
            "candidates": [{"dact": one.dact, "score": one.score} for one in self.prediction.candidates],
            "flags": {name: getattr(flags, name) for name in _FLAGS},
            "digression": {"depth": self.digression.depth, "last": self.digression.last},
        }
        if self.digression.last is not None:
            body["digression"]["last"] = str(self.digression.last)
        if self.epoch:
            body["epoch"] = self.epoch
        if self.person:
            body["person"] = self.person
        parts = {
            "approvals": self.approvals,
            "effects": self.effects,
            "shown": self.shown,
            "shown_before": self.shown_before,
            "table": self.table,
            "later": self.later,
            "summary": history.summary,
            "labels": intake.labels,
            "entities": intake.entities,
            "stack": [flow.serialize() for flow in self.stack.flows],
            "departed": [flow.serialize() for flow in self.stack.departed],
            "completed": [flow.serialize() for flow in self.completed],
            "ambiguity": {"open": self.ambiguity.open, "counts": self.ambiguity.counts},
            "messages": history.lines,
            "trace": history.trace,
        }
        body |= {name: part for name, part in parts.items() if part or name not in _SELDOM}
        raw = orjson.dumps(body)
        return orjson.loads(raw), raw

    @classmethod
    def from_dict(cls, body: JsonObject, flow_types: FlowTypes) -> DialogueState:
        """Create a state from JSON in this or an older version. Raises SchemaTooNew if a later release wrote it."""
        if body.get("schema_version") != SCHEMA_VERSION:
            body = upgrade(body)
        state = load(cls, {name: body[name] for name in _LOADED if name in body})
        state.prediction.intent, state.prediction.flow = body["predicted_intent"], body["predicted_flow"]
        state.prediction.candidates = [FlowScore(**score) for score in body["candidates"]]
        history, intake, asked = state.history, state.intake, body["ambiguity"]
        history.lines, history.trace = [*body["messages"]], [*body["trace"]]
        if body.get("summary"):
            history.summary = Summary(**body["summary"])
        intake.labels = load(list[LabelSource], body["labels"]) if body["labels"] else []
        intake.entities = copy_json(body.get("entities", {}))
        stack, departed, completed = (
            [load_flow(one, flow_types) for one in body[name]] for name in ("stack", "departed", "completed")
        )
        state.stack.flows, state.stack.departed, state.completed = stack, departed, completed
        state.ambiguity.open = load(list[Ambiguity], asked["open"]) if asked["open"] else []
        state.ambiguity.counts |= asked["counts"]
        return state


_RARE = ("shown", "shown_before", "table", "later", "person")
_LOADED = ("session", "turn", "epoch", "flags", "digression", "approvals", "effects", *_RARE)
"""Fields that can be loaded from the JSON value with the same name without conversion."""
_FLAGS = tuple(one.name for one in fields(Flags))
_SELDOM = frozenset({"summary", "entities", *_RARE})
"""Fields that are omitted when empty."""
