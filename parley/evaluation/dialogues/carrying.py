"""Values that go on from one service to another: "I need a hotel there".

Which ones do is learnt from annotated dialogues; at measure time only what both sides said is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp

from orchestrator.nlu.linear import Examples, Features, LinearModel, fit, score
from orchestrator.nlu.text import fold
from parley.evaluation.dialogues.dataset import NO_INTENT, Dialogue, Frame, SchemaSlot, Service, Turn
from parley.evaluation.dialogues.decisions import Words
from parley.evaluation.dialogues.offers import NOTHING

_STRENGTH = 10.0
_SURE = 0.5
_GIVEN = frozenset({"OFFER", "INFORM", "CONFIRM"})
_CARRIED = "carried"
_TOLD = 0.35
"""The weight of a word for what is carried over."""

Place = tuple[str, str]
"""A service and one of its slots."""


@dataclass(slots=True)
class Heard:
    """The values that were last said of each service's slots, by either side, in one dialogue."""

    values: dict[Place, str] = field(default_factory=dict[Place, str])

    def note(self, service: str, values: Mapping[str, str]) -> None:
        for slot, value in values.items():
            self.values.pop((service, slot), None)
            self.values[service, slot] = value

    def elsewhere(self, service: Service, slot: SchemaSlot) -> dict[Place, str]:
        """What was said of other services that may be a value of this slot."""
        return {
            place: value
            for place, value in self.values.items()
            if place[0] != service.name and (not slot.categorical or value in slot.values)
        }


@dataclass(frozen=True, slots=True)
class CarryModel:
    """Which values of other services a task that begins takes over: "I need a hotel there"."""

    model: LinearModel
    words: Words

    @classmethod
    def learn(
        cls, services: Mapping[str, Service], dialogues: Sequence[Dialogue], words: Words
    ) -> CarryModel:
        rows: list[Features] = []
        labels: list[str] = []
        for dialogue in dialogues:
            heard, before = Heard(), dict[str, Frame]()
            for turn in dialogue.turns:
                for frame in turn.frames:
                    service = services.get(frame.service)
                    if service is None:
                        continue
                    if frame.state is None:
                        given = {
                            act.slot: act.values[0] for act in frame.acts if act.name in _GIVEN and act.values
                        }
                        heard.note(service.name, given)
                        continue
                    if _begins(frame, before.get(service.name)):
                        for row, carried in _carried(
                            service, turn, frame, before.get(service.name), heard, words
                        ):
                            rows.append(row)
                            labels.append(_CARRIED if carried else NOTHING)
                    before[service.name] = frame
                for frame in turn.frames:
                    if frame.state is not None:
                        heard.note(
                            frame.service, {s: values[0] for s, values in frame.state.slot_values.items()}
                        )
        return cls(fit(Examples(rows, labels, importance=[1.0] * len(rows)), _STRENGTH), words)

    def carry(self, service: Service, text: str, heard: Heard, state: Mapping[str, str]) -> dict[str, str]:
        """Values for slots that have none, from what was said of other services."""
        found: dict[str, str] = {}
        said = self.words.features(text)
        for slot in service.tracked:
            if slot.name in state:
                continue
            best = _SURE
            for place, value in heard.elsewhere(service, slot).items():
                scores = score(self.model, _carry_features(service, slot.name, place, said))
                powers = {label: exp(self.model.sharpness * one) for label, one in scores.items()}
                share = powers.get(_CARRIED, 0.0) / sum(powers.values())
                if share > best:
                    found[slot.name], best = value, share
        return found


def _begins(frame: Frame, before: Frame | None) -> bool:
    if frame.state is None or frame.state.active_intent == NO_INTENT:
        return False
    return before is None or before.state is None or before.state.active_intent != frame.state.active_intent


def _carried(
    service: Service, turn: Turn, frame: Frame, before: Frame | None, heard: Heard, words: Words
) -> Iterator[tuple[Features, bool]]:
    """Each value that might be taken over, and whether it is."""
    assert frame.state is not None
    known = before.state.slot_values if before is not None and before.state is not None else {}
    named = {act.slot for act in frame.acts if act.name == "INFORM"}
    said = words.features(turn.text)
    for slot in service.tracked:
        if slot.name in known or slot.name in named:
            continue
        wanted = {fold(value) for value in frame.state.slot_values.get(slot.name, ())}
        for place, value in heard.elsewhere(service, slot).items():
            yield _carry_features(service, slot.name, place, said), fold(value) in wanted


def _carry_features(service: Service, slot: str, place: Place, said: Features) -> dict[str, float]:
    features = {
        f"to:{service.name} {slot}": 1.0,
        f"to:{slot}": 1.0,
        f"pair:{service.name} {slot} {place[0]} {place[1]}": 1.0,
        f"pair:{slot} {place[1]}": 1.0,
        f"from:{place[1]}": 1.0,
        "same name": float(slot == place[1]),
        "common": float(len(set(slot.split("_")) & set(place[1].split("_")))),
    }
    features |= {f"{name} {slot}": _TOLD * weight for name, weight in said.items() if name.startswith("w:")}
    return features | {name: _TOLD * weight for name, weight in said.items() if name.startswith("w:")}
