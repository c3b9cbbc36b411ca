"""Which kind of message it is: the classifier's opinion, weighed by the context (NL-4).

The weights are prior odds, as data; what a kind does to the stack is the Agent's business.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.dialogue.understanding import FlowScore, MessageKind
from orchestrator.nlu.situation import Situation
from orchestrator.types import Dact

_WEIGHTS: dict[str, tuple[float, float, float]] = {
    # label: (an open yes-or-no question, another open question, none)
    "kind:confirmation": (3.0, 0.8, 0.5),
    "kind:denial": (3.0, 0.8, 0.5),
    "kind:slot_value": (0.6, 2.0, 0.25),
    "kind:clarification": (1.2, 1.3, 0.6),
}
_CORRECTABLE = 1.3
_NOTHING_TO_CORRECT = 0.15
_CANCELLABLE = 1.3
_NOTHING_TO_CANCEL = 0.4
_RESUMABLE = 1.6
_NOTHING_TO_RESUME = 0.4
BEST = 3


def weigh(probabilities: Mapping[str, float], situation: Situation) -> dict[str, float]:
    """The classifier's probabilities under the context; they sum to one again."""
    column = 0 if situation.confirming else 1 if situation.open else 2
    weighed = dict(probabilities)
    for label, weights in _WEIGHTS.items():
        if label in weighed:
            weighed[label] *= weights[column]
    held = bool(situation.values) or any(flow.values for flow in situation.completed)
    _scale(weighed, "kind:correction", _CORRECTABLE if held else _NOTHING_TO_CORRECT)
    cancellable = situation.active is not None or bool(situation.interrupted)
    _scale(weighed, "kind:cancellation", _CANCELLABLE if cancellable else _NOTHING_TO_CANCEL)
    _scale(weighed, "kind:resumption", _RESUMABLE if situation.interrupted else _NOTHING_TO_RESUME)
    total = sum(weighed.values())
    return {label: value / total for label, value in weighed.items()}


def _scale(weighed: dict[str, float], label: str, weight: float) -> None:
    if label in weighed:
        weighed[label] *= weight


def best_flows(weighed: Mapping[str, float]) -> tuple[FlowScore, ...]:
    """The three best flows with their shares, best first."""
    flows = [(share, label) for label, share in weighed.items() if label.startswith("flow:")]
    flows.sort(key=lambda item: (-item[0], item[1]))
    return tuple(FlowScore(Dact(label[5:]), round(share, 4)) for share, label in flows[:BEST])


def best_label(weighed: Mapping[str, float]) -> tuple[str, float]:
    """The likeliest label that is no flow, or the likeliest flow, whichever has more.

    Flows compete as one: their shares are added, since which of them it is comes second.
    """
    tasks = sum(share for label, share in weighed.items() if label.startswith("flow:"))
    others = [(share, label) for label, share in weighed.items() if not label.startswith("flow:")]
    share, label = max(others, key=lambda item: (item[0], item[1]), default=(0.0, ""))
    if tasks >= share:
        flows = best_flows(weighed)
        return (f"flow:{flows[0].dact}", tasks) if flows else (label, share)
    return label, share


def kind_of_label(label: str) -> MessageKind:
    """The kind of message that a label of the classifier means."""
    if label.startswith("flow:"):
        return MessageKind.TASK
    if label.startswith("answer:"):
        return MessageKind.DIGRESSION
    name = label.removeprefix("kind:")
    if name in {"question", "clarification", "help", "status"}:
        return MessageKind.DIGRESSION
    return MessageKind(name) if name else MessageKind.UNKNOWN
