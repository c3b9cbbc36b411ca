"""Understand the user's turns of a dialogue as they are annotated: what a model that makes no mistake would answer.

How much such a model tells differs from model to model; `Telling` names the ways that are measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from orchestrator.types import JsonObject
from parley.evaluation.dialogues.as_domain import dact_of
from parley.evaluation.dialogues.dataset import NO_INTENT, Act, Dialogue, Frame, Service, Turn
from parley.evaluation.dialogues.recorded import ANYTHING
from parley.evaluation.dialogues.telling import Telling

SURE = 0.97


@dataclass(slots=True)
class Annotated:
    """Go through one dialogue. `told`: by service and slot, the value that was told last."""

    services: Mapping[str, Service]
    telling: Telling = Telling.NEW
    told: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _known: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    _canonical: dict[str, str] = field(default_factory=dict[str, str])
    _intents: dict[str, str] = field(default_factory=dict[str, str])
    _offered: dict[tuple[str, str], dict[str, str]] = field(
        default_factory=dict[tuple[str, str], dict[str, str]]
    )

    def hear(self, turn: Turn) -> None:
        """Take note of what the dialogue's assistant says: what it offers, and what it asks to be confirmed."""
        for frame in turn.frames:
            self._learn(frame)
            for act in ("OFFER", "CONFIRM"):
                values = {
                    one.slot: one.canonical[0] for one in frame.acts if one.name == act and one.canonical
                }
                if values:
                    self._offered[frame.service, act] = values
            # What is offered instead is to be agreed to.
            if any(one.name == "NOTIFY_FAILURE" for one in frame.acts):
                self._offered[frame.service, "CONFIRM"] = self._offered.get((frame.service, "OFFER"), {})

    def understand(self, turn: Turn) -> JsonObject:
        """Say what a user's turn means, in the form of `nlu_think`."""
        frames = [one for one in turn.frames if one.state is not None]
        for one in frames:
            self._learn(one)
        frame = max(frames, key=_weight, default=None)
        if frame is None:
            return _meaning("chitchat")
        service = self.services[frame.service]
        begins = self._begins(frame)
        acts = {act.name for act in frame.acts}
        intent = self._intents.get(frame.service, NO_INTENT)
        before = {slot: self.told.get((frame.service, slot)) for slot in service.slots}
        slots = self._slots(frame, service, intent, begins=begins)
        proposed = self._offered.get((frame.service, "CONFIRM"), {}) if "AFFIRM" in acts else {}
        slots = {slot: value for slot, value in slots.items() if proposed.get(slot) != value}
        kind = _kind(acts, slots, before, begins=begins)
        if self.telling is Telling.AGREED and intent in service.intents:
            slots = {
                slot: proposed[slot] for slot in service.intents[intent].slots if slot in proposed
            } | slots
        if intent == NO_INTENT:
            return _meaning(kind if kind in {"chitchat", "denial", "digression"} else "chitchat")
        dact = dact_of(service.name, intent)
        if kind == "correction" and self.telling is Telling.WORDS:
            return _meaning(kind, slots=slots, target=service.intents[intent].description.lower())
        return _meaning(kind, dact=None if kind == "chitchat" else dact, slots=slots)

    def _learn(self, frame: Frame) -> None:
        """Remember how the services write what people say, and what is known by now."""
        for act in frame.acts:
            self._canonical |= dict(zip(act.values, act.canonical, strict=False))
        if frame.state is not None:
            accepted = self._accepted(frame)
            known = self._known.setdefault(frame.service, {})
            for slot, values in frame.state.slot_values.items():
                known[slot] = _canonical_of(slot, values, frame.acts, accepted, self._canonical)

    def _accepted(self, frame: Frame) -> dict[str, str]:
        acts = {act.name for act in frame.acts}
        offered = self._offered.get((frame.service, "OFFER"), {}) if "SELECT" in acts else {}
        confirmed = self._offered.get((frame.service, "CONFIRM"), {}) if "AFFIRM" in acts else {}
        return {**offered, **confirmed}

    def _begins(self, frame: Frame) -> bool:
        """Whether the turn begins a task; notes which one is at hand."""
        assert frame.state is not None
        active = frame.state.active_intent
        begins = any(act.name in {"INFORM_INTENT", "AFFIRM_INTENT"} for act in frame.acts)
        begins |= active not in {"", NO_INTENT, self._intents.get(frame.service)}
        if active:
            self._intents[frame.service] = active
        return begins and active != NO_INTENT

    def _slots(self, frame: Frame, service: Service, intent: str, *, begins: bool) -> dict[str, str]:
        taken = service.intents[intent].slots if intent in service.intents else ()
        known = {slot: value for slot, value in self._known[service.name].items() if slot in taken}
        if self.telling is Telling.SAID:
            said = {act.slot for act in frame.acts if act.name == "INFORM"}
            chosen = {slot: value for slot, value in known.items() if slot in said}
        elif self.telling is Telling.RESTATED and begins:
            chosen = known
        elif {act.name for act in frame.acts} <= {"SELECT", "THANK_YOU", "GOODBYE"}:
            chosen = {}  # what was chosen is told with the task that it is for
        else:
            chosen = {
                slot: value for slot, value in known.items() if self.told.get((service.name, slot)) != value
            }
        self.told |= {(service.name, slot): value for slot, value in chosen.items()}
        return {slot: value for slot, value in chosen.items() if value != ANYTHING}


@dataclass(slots=True)
class Mistaken:
    """Replaces some of the answers by wrong ones: another flow, slot, value or kind."""

    share: float
    dialogues: Sequence[Dialogue]
    services: Mapping[str, Service]
    chance: Random

    def distort(self, meaning: JsonObject) -> JsonObject:
        """Give what is meant, or now and then something else."""
        if self.chance.random() >= self.share:
            return meaning
        service = self.services[self.chance.choice(sorted(self.services))]
        intent = service.intents[self.chance.choice(sorted(service.intents))]
        slots = dict(meaning["slots"])
        match self.chance.choice(["flow", "slot", "value", "kind"]):
            case "slot" if len(slots) > 1:
                one, other = self.chance.sample(sorted(slots), 2)
                slots[one], slots[other] = slots[other], slots[one]
                return {**meaning, "slots": slots}
            case "value" if slots:
                slots[self.chance.choice(sorted(slots))] = self._any_value()
                return {**meaning, "slots": slots}
            case "kind":
                kinds = ("confirmation", "denial", "correction", "slot_value", "cancellation", "chitchat")
                return {**meaning, "kind": self.chance.choice(kinds)}
            case _:
                return _meaning("task", dact=dact_of(service.name, intent.name), slots=slots)

    def _any_value(self) -> str:
        while True:
            turn = self.chance.choice(self.chance.choice(self.dialogues).turns)
            values = [act.canonical[0] for frame in turn.frames for act in frame.acts if act.canonical]
            if values:
                return self.chance.choice(values)


def _weight(frame: Frame) -> int:
    """Weigh what a turn says to one of several services: what begins a task counts most, what only chooses least."""
    acts = {act.name for act in frame.acts}
    return (
        2
        if acts & {"INFORM_INTENT", "AFFIRM_INTENT"}
        else int(not acts <= {"SELECT", "THANK_YOU", "GOODBYE"})
    )


def _kind(acts: set[str], slots: Mapping[str, str], before: Mapping[str, str | None], *, begins: bool) -> str:
    """Name the kind of message that acts make."""
    changes = any(before.get(slot) not in {None, value} for slot, value in slots.items())
    if begins:
        return "task"
    if "AFFIRM" in acts:
        return "correction" if changes else "confirmation"
    if "THANK_YOU" in acts or acts <= {"GOODBYE"}:
        return "chitchat"
    if "NEGATE" in acts or "REQUEST_ALTS" in acts:
        return "correction" if slots else "denial" if "NEGATE" in acts else "digression"
    if "NEGATE_INTENT" in acts:
        return "denial"
    if slots:
        return "correction" if changes else "slot_value"
    if "REQUEST" in acts:
        return "digression"
    return "confirmation" if "SELECT" in acts else "slot_value"


def _meaning(
    kind: str, *, dact: str | None = None, slots: Mapping[str, str] | None = None, target: str | None = None
) -> JsonObject:
    return {
        "kind": kind,
        "intent": None,
        "flows": [{"dact": str(dact), "score": SURE}] if dact else [],
        "slots": dict(slots or {}),
        "target": target,
        "digression": "question" if kind == "digression" else None,
    }


def _canonical_of(
    slot: str,
    values: Sequence[str],
    acts: Sequence[Act],
    accepted: Mapping[str, str],
    canonical: Mapping[str, str],
) -> str:
    """Write a value of the annotated state as the service does; the turn's own words count most."""
    said = next((act.canonical[0] for act in acts if act.slot == slot and act.canonical), None)
    if said is not None:
        return said
    if slot in accepted:
        return accepted[slot]
    return next((canonical[value] for value in values if value in canonical), values[0])
