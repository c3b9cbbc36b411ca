"""Score conversations: flows, slots, goals, tools and answers.

Scores are from 0 to 1, or None without data. Most cover only turns or conversations with a matching expectation.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from lab.evaluation.conversations import Outcome, TurnOutcome
from orchestrator.types import Json

NOTHING = "(no flow)"


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a run.

    `figures`: scores by name, in the order of the report. `confusion`: number of turns by expected and actual flow.
    `neighbors`: pairs of confused flows, one of which lists the other in its `edge_flows`.
    """

    figures: dict[str, float | None]
    confusion: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    neighbors: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def measure(outcomes: Sequence[Outcome], edges: Mapping[str, Iterable[str]]) -> Scores:
    """Score conversations. `edges`: the `edge_flows` of each flow."""
    turns = [turn for outcome in outcomes for turn in outcome.turns]
    pairs = [pair for turn in turns if (pair := _flow_pair(turn)) is not None]
    confusion = Counter(pairs)
    wrong = [pair for pair in confusion if pair[0] != pair[1]]
    right, predicted, expected = (sum(counts) for counts in zip(*map(_count_slots, turns), strict=True))
    return Scores(
        {
            "turns_as_expected": _mean([not turn.faults for turn in turns]),
            "flow_accuracy": _mean([wanted == taken for wanted, taken in pairs]),
            "kind_accuracy": _mean(_matches(turns, "kind")),
            "slot_precision": right / predicted if predicted else None,
            "slot_recall": right / expected if expected else None,
            "slot_f1": 2 * right / (predicted + expected) if predicted + expected else None,
            "joint_goal": _mean(
                [_slots_right(turn) == len(turn.expect.slots) for turn in turns if turn.expect.slots]
            ),
            "tools": _mean(_matches(turns, "tools")),
            "tool_arguments": _mean([_arguments_right(turn) for turn in turns if turn.expect.arguments]),
            "answers": _mean([not _has_fault(turn, "the answer") for turn in turns if _expects_answer(turn)]),
            "rubric": _mean([one.met for turn in turns for one in turn.verdicts if one.met is not None]),
            "full_workflow": _mean([outcome.is_right for outcome in outcomes]),
        },
        confusion,
        [pair for pair in wrong if pair[1] in edges.get(pair[0], ()) or pair[0] in edges.get(pair[1], ())],
    )


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _matches(turns: Sequence[TurnOutcome], name: str) -> list[bool]:
    """Return, for each turn with the expectation `name`, True if the turn met the expectation."""
    wanted: list[tuple[Json, Json]] = [(getattr(turn.expect, name), turn.observed[name]) for turn in turns]
    return [
        (list(expected) if isinstance(expected, tuple) else expected) == observed
        for expected, observed in wanted
        if expected is not None
    ]


def _flow_pair(turn: TurnOutcome) -> tuple[str, str] | None:
    """Return a turn's expected and actual flow, or None if the turn has no expected flow."""
    expect, observed = turn.expect, turn.observed
    if expect.flow is not None:
        return expect.flow, str(observed["flow"] or NOTHING)
    if expect.completed:
        return expect.completed[-1], str((observed["completed"] or [observed["flow"] or NOTHING])[-1])
    return (expect.flows[-1], str((observed["flows"] or [NOTHING])[-1])) if expect.flows else None


def _slots_right(turn: TurnOutcome) -> int:
    slots = turn.observed["slots"]
    return sum(slots.get(name) == value for name, value in turn.expect.slots.items())


def _count_slots(turn: TurnOutcome) -> tuple[int, int, int]:
    """Return the counts of correct, found and expected values for a turn's expected slots."""
    found = sum(turn.observed["slots"].get(name) is not None for name in turn.expect.slots)
    expected = sum(value is not None for value in turn.expect.slots.values())
    right = sum(
        value is not None and turn.observed["slots"].get(name) == value
        for name, value in turn.expect.slots.items()
    )
    return right, found, expected


def _arguments_right(turn: TurnOutcome) -> bool:
    return not any(_has_fault(turn, f"{tool} was called") for tool in turn.expect.arguments)


def _expects_answer(turn: TurnOutcome) -> bool:
    return turn.expect.answer is not None or turn.expect.not_answer is not None


def _has_fault(turn: TurnOutcome, beginning: str) -> bool:
    return any(fault.startswith(beginning) for fault in turn.faults)
