"""The measures that the Schema-Guided Dialogue dataset defines, per frame of a user's turn.

Active intent accuracy, requested slots F1, average and joint goal accuracy as in the dataset's own
evaluation; besides, F1 over the slot values that a turn adds to or changes in the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from rapidfuzz import fuzz, utils

from parley.evaluation.dialogues.dataset import Service, State

# From this similarity on, two open values count as the same in the F1 of updates.
SAME = 0.9
_BINS = 10


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction for one frame: the state after the user's turn. `sure`: how likely the intent is held to be."""

    intent: str
    state: Mapping[str, str]
    requested: frozenset[str] = field(default_factory=frozenset[str])
    sure: float = 1.0


@dataclass(frozen=True, slots=True)
class FrameScore:
    """The measures of one frame; None where one does not apply.

    `updates`: values that are right, predicted and annotated among those that the turn adds or changes.
    `sure`: how likely the predicted intent was held to be.
    """

    intent: float
    asked: float | None
    joint: float
    average: float | None
    updates: tuple[int, int, int]
    sure: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Frames whose intent was held to be about as likely: how many, how likely on average, how often right."""

    frames: int
    sure: float
    right: float


def reliability(scores: Sequence[FrameScore]) -> list[Bin]:
    """Sort frames into tenths by how likely their intent was held to be; a tenth without frames is left out."""
    tenths: dict[int, list[FrameScore]] = {}
    for score in scores:
        tenths.setdefault(min(_BINS - 1, int(score.sure * _BINS)), []).append(score)
    return [
        Bin(len(inside), fmean(one.sure for one in inside), fmean(one.intent for one in inside))
        for _, inside in sorted(tenths.items())
    ]


def expected_calibration_error(scores: Sequence[FrameScore]) -> float | None:
    """The mean distance of what was held likely from what came true, over the frames."""
    bins = reliability(scores)
    frames = sum(one.frames for one in bins)
    return round(sum(one.frames * abs(one.sure - one.right) for one in bins) / frames, 4) if frames else None


def summarize(scores: Sequence[FrameScore]) -> dict[str, float | None]:
    """The measures over frames, to four digits, by their names in reports."""
    asked = [score.asked for score in scores if score.asked is not None]
    average = [score.average for score in scores if score.average is not None]
    right, predicted, actual = (sum(score.updates[place] for score in scores) for place in range(3))
    return {
        "frames": len(scores),
        "active_intent_accuracy": _mean([score.intent for score in scores]),
        # Nothing asked and nothing found counts as 1, as in the dataset's own script.
        "requested_slots_f1": _mean([1.0 if score.asked is None else score.asked for score in scores]),
        "requested_slots_f1_where_asked": _mean(asked),
        "slot_f1": round(2.0 * right / (predicted + actual), 4) if predicted + actual else None,
        "average_goal_accuracy": _mean(average),
        "joint_goal_accuracy": _mean([score.joint for score in scores]),
        "expected_calibration_error": expected_calibration_error(scores),
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), 4) if values else None


def score_frame(
    service: Service,
    reference: State,
    before: Mapping[str, tuple[str, ...]],
    prediction: Prediction,
    prediction_before: Mapping[str, str],
) -> FrameScore:
    """Measure one frame. `before`: the reference values of the service's previous frame."""
    values, wanted, found = reference.slot_values, set(reference.requested_slots), prediction.requested
    new = {slot: texts for slot, texts in values.items() if before.get(slot) != texts}
    said = {slot: value for slot, value in prediction.state.items() if prediction_before.get(slot) != value}
    right = sum(slot in new and _match(service, slot, new[slot], text) >= SAME for slot, text in said.items())
    joint, average = _score_goal(service, values, prediction.state)
    return FrameScore(
        intent=float(reference.active_intent in {"", prediction.intent}),
        asked=2.0 * len(wanted & found) / (len(wanted) + len(found)) if wanted or found else None,
        joint=joint,
        average=average,
        updates=(right, len(said), len(new)),
        sure=prediction.sure,
    )


def _score_goal(
    service: Service, reference: Mapping[str, tuple[str, ...]], state: Mapping[str, str]
) -> tuple[float, float | None]:
    """All slots at once, and the mean over those of the reference."""
    joint = 1.0
    active: list[float] = []
    for slot in service.slots:
        if slot in reference:
            active.append(_match(service, slot, reference[slot], state[slot]) if slot in state else 0.0)
            joint *= active[-1]
        elif slot in state:
            joint = 0.0
    return joint, fmean(active) if active else None


def _match(service: Service, slot: str, references: tuple[str, ...], value: str) -> float:
    """How right a value is: wholly or not at all for categorical slots, by similarity for others."""
    known = service.slots.get(slot)
    if known is not None and known.categorical:
        return float(references[0] == value)
    return _similarity(references, value)


def _similarity(references: Iterable[str], value: str) -> float:
    """How near an open value is to the nearest reference (token sort ratio, 0 … 1)."""
    return max(
        (fuzz.token_sort_ratio(ref, value, processor=utils.default_process) / 100.0 for ref in references),
        default=0.0,
    )
