"""The measures that the Schema-Guided Dialogue dataset defines, per frame of a user's turn.

Active intent accuracy, requested slots F1, average and joint goal accuracy as in the dataset's own
evaluation; besides, F1 over the slot values that a turn adds to or changes in the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rapidfuzz import fuzz, utils

from parley.evaluation.dataset import Service

SAME = 0.9
"""From this similarity on, two open values count as the same in the F1 of updates."""


@dataclass(slots=True)
class Tally:
    """Sums over frames, from which the means come."""

    frames: int = 0
    intents: float = 0.0
    requested: float = 0.0
    asked: float = 0.0
    asked_frames: int = 0
    joint: float = 0.0
    average: float = 0.0
    average_frames: int = 0
    true: int = 0
    predicted: int = 0
    actual: int = 0

    def add(self, other: Tally) -> None:
        for name in Tally.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def intent_accuracy(self) -> float:
        return _mean(self.intents, self.frames)

    @property
    def requested_f1(self) -> float:
        return _mean(self.requested, self.frames)

    @property
    def asked_f1(self) -> float:
        """F1 of requested slots over those frames alone in which one was asked for or found."""
        return _mean(self.asked, self.asked_frames)

    @property
    def average_goal(self) -> float:
        return _mean(self.average, self.average_frames)

    @property
    def joint_goal(self) -> float:
        return _mean(self.joint, self.frames)

    @property
    def slot_f1(self) -> float:
        return _mean(2.0 * self.true, self.predicted + self.actual)


def _mean(total: float, count: int) -> float:
    return total / count if count else float("nan")


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is said about one frame: the state after the user's turn."""

    intent: str
    state: Mapping[str, str]
    requested: frozenset[str] = field(default_factory=frozenset[str])


def similarity(references: Iterable[str], value: str) -> float:
    """How near an open value is to the nearest reference (token sort ratio, 0 … 1)."""
    return max(
        (fuzz.token_sort_ratio(ref, value, processor=utils.default_process) / 100.0 for ref in references),
        default=0.0,
    )


def match(service: Service, slot: str, references: tuple[str, ...], value: str) -> float:
    """Whether a value is right: exactly for categorical slots, by similarity for others."""
    known = service.slots.get(slot)
    if known is not None and known.categorical:
        return float(references[0] == value)
    return similarity(references, value)


def score_frame(
    service: Service,
    intent: str | None,
    reference: Mapping[str, tuple[str, ...]],
    before: Mapping[str, tuple[str, ...]],
    requested: Iterable[str],
    prediction: Prediction,
    prediction_before: Mapping[str, str],
) -> Tally:
    """Measure one frame. `before`: the reference state of the service's previous frame."""
    tally = Tally(frames=1)
    tally.intents = float(intent is None or intent == prediction.intent)
    _score_goal(tally, service, reference, prediction.state)
    _score_requests(tally, frozenset(requested), prediction.requested)
    new = {slot: values for slot, values in reference.items() if before.get(slot) != values}
    said = {slot: value for slot, value in prediction.state.items() if prediction_before.get(slot) != value}
    tally.actual, tally.predicted = len(new), len(said)
    right = (slot in new and match(service, slot, new[slot], value) >= SAME for slot, value in said.items())
    tally.true = sum(right)
    return tally


def _score_requests(tally: Tally, wanted: frozenset[str], found: frozenset[str]) -> None:
    """F1 of one frame; nothing asked and nothing found counts as 1, as in the dataset's own script."""
    if wanted or found:
        tally.asked_frames = 1
        tally.asked = 2.0 * len(wanted & found) / (len(wanted) + len(found))
        tally.requested = tally.asked
    else:
        tally.requested = 1.0


def _score_goal(
    tally: Tally, service: Service, reference: Mapping[str, tuple[str, ...]], state: Mapping[str, str]
) -> None:
    joint = 1.0
    active: list[float] = []
    for slot in service.slots:
        if slot in reference:
            right = match(service, slot, reference[slot], state[slot]) if slot in state else 0.0
            active.append(right)
            joint *= right
        elif slot in state:
            joint = 0.0
    tally.joint = joint
    if active:
        tally.average_frames = 1
        tally.average = sum(active) / len(active)
