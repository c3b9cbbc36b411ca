"""A flow in progress: its slots, outputs and status.

The stack decides when the flow is Active, and the policy runs it. The module `flow` defines a base class per
family.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeAlias

from orchestrator.dialogue.lifecycle import ACTIVE, ENDED, FlowState, FlowStatus, Reason, check_transition
from orchestrator.dialogue.progress import NO_CONSENT, Consent, Progress
from orchestrator.dialogue.slots import EVERY_TYPE, SlotSource, SlotTypes, SlotValue, check_any
from orchestrator.dialogue.specification import FlowSpec, Priority, SlotSpec
from orchestrator.dialogue.storage.serialization import dump
from orchestrator.dialogue.understanding import Mention
from orchestrator.dialogue.validation import Rejected, Valid, Verdict, show
from orchestrator.saying import Told, say
from orchestrator.types import Dact, FlowId, Json, JsonObject, TurnId, copy_json, new_flow_id, same_value

TURNS_KEPT = 20
"""Maximum number of turn IDs kept per flow: the first ID and the latest ones. The history has all IDs."""

STATUSES = {(state.value, None): FlowStatus(state) for state in FlowState} | {
    (state.value, reason.value): FlowStatus(state, reason) for state in FlowState for reason in Reason
}
_WRITTEN = {
    status: {"state": state} | ({"reason": reason} if reason else {})
    for (state, reason), status in STATUSES.items()
}


SELDOM = ("outputs", "notes", "turn_ids", "plan_id", "interrupted_at", "interruption", "completed_at")
"""Flow fields that are serialized without conversion, unless empty."""
_PROGRESS = tuple(one.name for one in fields(Progress))


class ProblemKind(StrEnum):
    UNKNOWN_SLOT = "unknown_slot"
    INVALID = "invalid"
    SEVERAL = "several"
    """The message fits several values, so the user must choose."""


@dataclass(frozen=True, slots=True)
class SlotProblem:
    """A problem with a slot's value. `why`: a sentence for the user. `candidates`: values to choose from."""

    slot: str
    kind: ProblemKind
    why: Told
    candidates: tuple[Json, ...] = ()


Labels: TypeAlias = Mapping[str, Mention | Json]
"""Values by slot name: mentions in a message, or plain values."""


class ValueFinder(Protocol):
    """A source of values that the user's latest message does not contain (PX-4)."""

    async def find_values(self, flow: BaseFlow, slots: Sequence[SlotSpec]) -> Labels: ...


@dataclass(eq=False, repr=False)
class BaseFlow:
    """A task in progress. Subclasses define `spec`; slot values belong to the instance (FS-6).

    Slots only hold values that their types accept. Times are in Unix seconds. `plan_id`: the plan that this flow
    serves, or None. `interruption`: why the flow was interrupted, or None. `notes`: data that the policy keeps between
    turns.
    """

    spec: ClassVar[FlowSpec]
    dact: ClassVar[Dact]
    title: ClassVar[str]
    """The name displayed to users."""
    slot_types: ClassVar[SlotTypes] = EVERY_TYPE
    _defaults: ClassVar[JsonObject]
    _needs: ClassVar[tuple[tuple[SlotSpec, ...], ...]]
    """Groups of slots that each need a value: one group per required slot, then the elective groups."""

    started_at: float = 0.0
    _: KW_ONLY
    flow_id: FlowId = field(default_factory=new_flow_id)
    plan_id: FlowId | None = None
    status: FlowStatus = ACTIVE
    slots: dict[str, SlotValue] = field(default_factory=dict[str, SlotValue])
    outputs: JsonObject = field(default_factory=JsonObject)
    turn_ids: list[TurnId] = field(default_factory=list[TurnId])
    interrupted_at: float | None = None
    interruption: str | None = None
    completed_at: float | None = None
    consent: Consent = NO_CONSENT
    progress: Progress = field(default_factory=Progress)
    notes: JsonObject = field(default_factory=JsonObject)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "spec" in vars(cls):
            cls.dact = cls.spec.dact
            named = cls.dact.replace("_", " ")
            cls.title = named if cls.spec.language == "en" else cls.spec.description.rstrip(".") or named
            specs = cls.spec.slots.values()
            groups: dict[str, list[SlotSpec]] = {}
            for spec in specs:
                if spec.priority is Priority.ELECTIVE:
                    groups.setdefault(spec.group or "", []).append(spec)
            required = [(spec,) for spec in specs if spec.priority is Priority.REQUIRED]
            cls._needs = (*required, *map(tuple, groups.values()))
            cls._defaults = {spec.name: spec.default for spec in specs if spec.default is not None}

    def __repr__(self) -> str:
        return f"<{self.dact} {self.flow_id}: {self.status}>"

    @property
    def state(self) -> FlowState:
        return self.status.state

    @property
    def reason(self) -> Reason | None:
        return self.status.reason

    @property
    def is_finished(self) -> bool:
        return self.status.state in ENDED

    def become(self, after: FlowStatus) -> None:
        """Change the status. Raises IllegalTransition if this change is not allowed."""
        check_transition(self.status, after)
        self.status = after

    def note_turn(self, turn_id: TurnId) -> None:
        """Record a turn in which the flow was active. Only the first and the latest turns are kept (FS-14)."""
        if self.turn_ids and self.turn_ids[-1] == turn_id:
            return
        self.turn_ids.append(turn_id)
        if len(self.turn_ids) > TURNS_KEPT:
            del self.turn_ids[1]

    @classmethod
    def slot(cls, name: str) -> SlotSpec | None:
        """Return the specification of a slot, or of an input without a slot (FS-7), or None."""
        found = cls.spec.slots.get(name)
        if found is None and name in cls.spec.inputs:
            return SlotSpec(name=name, type="")
        return found

    @classmethod
    def judge(cls, name: str, value: Json) -> Verdict:
        """Validate a value for a slot of this flow type, or for an input without a slot. Other names are rejected."""
        spec = cls.spec.slots.get(name)
        if spec is not None:
            return cls.slot_types.validate(value, spec)
        if name in cls.spec.inputs and value is not None:
            return check_any(value, SlotSpec(name=name, type=""))
        return Rejected(say("no_such_slot", task=cls.title, slot=show(name)))

    def fill_slots_by_label(
        self,
        labels: Labels,
        *,
        turn_id: TurnId | None = None,
        source: SlotSource = SlotSource.USER,
    ) -> list[SlotProblem]:
        """Fill the named slots. Return a problem for each value that doesn't fit."""
        problems: list[SlotProblem] = []
        for name, label in labels.items():
            mention = label if isinstance(label, Mention) else Mention(value=label)
            problem = self._fill(name, mention, turn_id, source)
            if problem is not None:
                problems.append(problem)
        return problems

    def _fill(
        self, name: str, mention: Mention, turn_id: TurnId | None, source: SlotSource
    ) -> SlotProblem | None:
        value = self.read(name, mention)
        if isinstance(value, SlotProblem):
            return value
        held = self.slots.get(name)
        confirmed = held is not None and held.confirmed and same_value(held.value, value.value)
        self.slots[name] = SlotValue(value.value, source, turn_id, confirmed, mention.text[:200])
        return None

    def read(self, name: str, mention: Mention) -> Valid | SlotProblem:
        """Return the value for the slot, or why this mention cannot fill the slot. The flow stays unchanged."""
        if self.slot(name) is None:
            why = say("no_such_slot", task=self.title, slot=show(name))
            return SlotProblem(name, ProblemKind.UNKNOWN_SLOT, why)
        if mention.invalid:
            return SlotProblem(name, ProblemKind.INVALID, mention.invalid)
        if mention.value is None and mention.candidates:
            why = say("several_values", count=len(mention.candidates), slot=name.replace("_", " "))
            return SlotProblem(name, ProblemKind.SEVERAL, why, mention.candidates)
        verdict = self.judge(name, mention.value)
        if isinstance(verdict, Rejected):
            return SlotProblem(name, ProblemKind.INVALID, verdict.why)
        return verdict

    def take_over(self, old: BaseFlow) -> None:
        """Copy slot values and turn IDs from another flow (FS-11).

        Only empty slots with the same names are filled, if their types accept the values. Copied values are
        not confirmed.
        """
        for name, held in old.slots.items():
            if name in self.slots or name not in self.spec.slots:
                continue
            verdict = self.judge(name, held.value)
            if not isinstance(verdict, Rejected):
                value = copy_json(verdict.value)
                self.slots[name] = SlotValue(value, held.source, held.turn_id, False, held.text)
        for turn_id in old.turn_ids:
            if turn_id not in self.turn_ids:
                self.note_turn(turn_id)

    async def fill_slot_values(
        self, context: ValueFinder | None, memory: ValueFinder | None, *, turn_id: TurnId | None = None
    ) -> list[SlotProblem]:
        """Fill open slots from the conversation, then from memory (FS-2, PX-4).

        `context`, `memory`: the finders, or None to skip a source. They may call a model. Values from
        memory get the source `MEMORY`. Return a problem for each unusable value.
        """
        problems: list[SlotProblem] = []
        for finder, source in ((context, SlotSource.USER), (memory, SlotSource.MEMORY)):
            wanted = self.open_slots()
            if finder is None or not wanted:
                continue
            names = {spec.name for spec in wanted}
            found = await finder.find_values(self, wanted)
            useful = {name: label for name, label in found.items() if name in names}
            problems += self.fill_slots_by_label(useful, turn_id=turn_id, source=source)
        return problems

    def holds(self, name: str) -> bool:
        """Return whether the slot has a value, or a default that its type accepts."""
        spec = self.spec.slots.get(name)
        if name in self.slots or spec is None or spec.default is None:
            return name in self.slots
        return not isinstance(self.judge(name, spec.default), Rejected)

    def _unsatisfied(self) -> Iterator[tuple[SlotSpec, ...]]:
        for members in self._needs:
            for spec in members:
                if spec.name in self.slots or self.holds(spec.name):
                    break
            else:
                yield members

    def is_filled(self) -> bool:
        """Return whether all required slots, and a slot in each elective group, have valid values (FS-3)."""
        return next(self._unsatisfied(), None) is None

    def missing(self) -> list[SlotSpec]:
        """Return the slots to ask for, in order: required slots, then the first slot of each empty elective group."""
        return [members[0] for members in self._unsatisfied()]

    def open_slots(self) -> list[SlotSpec]:
        """Return the required slots without a value, and all slots of elective groups without a value."""
        return [spec for members in self._unsatisfied() for spec in members]

    def needs_to_think(self) -> bool:
        """Return whether required values are missing, so that the flow can't run yet (FS-2)."""
        return not self.is_filled()

    def value(self, name: str) -> Json | None:
        """Return the slot's value, or its default, or None."""
        held = self.slots.get(name)
        if held is not None:
            return held.value
        spec = self.spec.slots.get(name)
        return None if spec is None else spec.default

    def values(self) -> JsonObject:
        """Return all values by slot name, with defaults and without empty slots."""
        return self._defaults | {name: held.value for name, held in self.slots.items()}

    def take(self, name: str, value: Json, source: SlotSource, turn_id: TurnId | None = None) -> bool:
        """Set a value that doesn't come from the message. Return False if the slot's type rejects the value."""
        verdict = self.judge(name, value)
        if isinstance(verdict, Rejected):
            return False
        self.slots[name] = SlotValue(copy_json(verdict.value), source, turn_id)
        return True

    def follow(self, name: str, held: SlotValue) -> None:
        """Adopt the value of another flow in the same plan, as if the user had stated it."""
        self.slots[name] = SlotValue(held.value, SlotSource.USER, held.turn_id, False, held.text)

    def give(self, outputs: JsonObject) -> None:
        """Store outputs for other flows (FS-7)."""
        self.outputs.update(outputs)

    def complete_outputs(self) -> None:
        """Fill the missing declared outputs from slots with the same names."""
        for name in self.spec.outputs:
            value = self.value(name)
            if name not in self.outputs and value is not None:
                self.outputs[name] = copy_json(value)

    def take_back(self, output: str) -> Json | None:
        """Remove and return an output, because the session stores it instead. Return None if it is missing."""
        return self.outputs.pop(output, None)

    def clear(self, name: str) -> None:
        self.slots.pop(name, None)

    def confirm(self, *names: str) -> None:
        """Mark the slots `names` as confirmed by the user. Default: all slots with values."""
        for name in names or tuple(self.slots):
            if name in self.slots:
                self.slots[name].confirmed = True

    @classmethod
    def dependents(cls, name: str) -> list[str]:
        """Return the slots that depend on this slot, directly or through others, in declared order."""
        reached = {name}
        grew = True
        while grew:
            found = {s.name for s in cls.spec.slots.values() if not reached.isdisjoint(s.depends_on)}
            grew = not found <= reached
            reached |= found
        return [slot for slot in cls.spec.slots if slot in reached and slot != name]

    def still_holds(self, name: str) -> bool:
        """Return whether the slot `name` keeps its value after the correction of a slot that it depends on (IR-4).

        Only values from the user survive. Values of exact slots never survive.
        """
        held = self.slots.get(name) if self.holds(name) else None
        return held is not None and held.source is SlotSource.USER and self.spec.slots[name].type != "exact"

    def serialize(self) -> JsonObject:
        """Return the flow as JSON without empty fields. The JSON shares the flow's values, outputs and notes."""
        body: JsonObject = {
            "flow_id": self.flow_id,
            "dact": self.dact,
            **_WRITTEN[self.status],
            "started_at": self.started_at,
            "slots": {name: held.serialize() for name, held in self.slots.items()},
        }
        if self.consent != NO_CONSENT:
            body["consent"] = dump(self.consent)
        progress = {name: value for name in _PROGRESS if (value := getattr(self.progress, name))}
        if progress:
            body["progress"] = dump(progress)
        return body | {name: value for name in SELDOM if (value := getattr(self, name)) not in (None, [], {})}
