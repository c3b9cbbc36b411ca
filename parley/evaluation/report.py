"""The table of an evaluation, next to what is published for the dataset's own baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass

from orchestrator.types import JsonObject
from parley.evaluation.metrics import Tally
from parley.evaluation.runner import Report

SOURCE = (
    "Baseline: figures on the development set in the README of the dataset's baseline "
    "(google-research/schema_guided_dst), a BERT model fine-tuned on the dataset's training set."
)


@dataclass(frozen=True, slots=True)
class Published:
    """Figures of the baseline, as published."""

    name: str
    intent: float
    requested: float
    average: float
    joint: float


BASELINE = (
    Published("baseline, SGD-Single", 0.966, 0.965, 0.776, 0.486),
    Published("baseline, SGD-All", 0.885, 0.972, 0.694, 0.383),
)
COLUMNS = ("service", "frames", "intent acc.", "requested F1", "slot F1", "avg. goal acc.", "joint goal acc.")


def rows(report: Report) -> list[tuple[str, ...]]:
    """The cells of the table: one row per service, all together, and the published figures."""
    lines = [_row(name, tally) for name, tally in sorted(report.services.items())]
    lines.append(_row("all services", report.overall))
    lines += [
        (one.name, "", _show(one.intent), _show(one.requested), "", _show(one.average), _show(one.joint))
        for one in BASELINE
    ]
    return lines


def as_json(report: Report) -> JsonObject:
    """The same as data; a measure that does not apply is null."""
    return {
        "dialogues": report.dialogues,
        "folds": report.folds,
        "overall": _figures(report.overall),
        "services": {name: _figures(tally) for name, tally in sorted(report.services.items())},
        "baseline": {
            one.name: {
                "active_intent_accuracy": one.intent,
                "requested_slots_f1": one.requested,
                "average_goal_accuracy": one.average,
                "joint_goal_accuracy": one.joint,
            }
            for one in BASELINE
        },
    }


def _row(name: str, tally: Tally) -> tuple[str, ...]:
    return (
        name,
        str(tally.frames),
        _show(tally.intent_accuracy),
        _show(tally.requested_f1),
        _show(tally.slot_f1),
        _show(tally.average_goal),
        _show(tally.joint_goal),
    )


def _figures(tally: Tally) -> JsonObject:
    return {
        "frames": tally.frames,
        "active_intent_accuracy": _number(tally.intent_accuracy),
        "requested_slots_f1": _number(tally.requested_f1),
        "requested_slots_f1_where_asked": _number(tally.asked_f1),
        "slot_f1": _number(tally.slot_f1),
        "average_goal_accuracy": _number(tally.average_goal),
        "joint_goal_accuracy": _number(tally.joint_goal),
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)


def _show(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
