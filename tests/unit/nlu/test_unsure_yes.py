"""What is no sure yes: another task where it is likely one, else nothing that is acted on."""

from __future__ import annotations

from datetime import date

import pytest

from orchestrator.dialogue.understanding import FlowScore, MessageKind
from orchestrator.nlu.message_kind import Evidence, Weighed
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.text import tokenize
from orchestrator.types import Dact
from tests.unit.analytics.asking import trained


@pytest.mark.parametrize(
    ("share", "flow", "score", "kind"),
    [
        (0.9, "export", 0.05, MessageKind.CONFIRMATION),
        (0.5, "export", 0.4, MessageKind.TASK),
        (0.5, "export", 0.2, MessageKind.UNKNOWN),
        (0.5, "preview", 0.4, MessageKind.UNKNOWN),
    ],
)
def test_an_unsure_yes_is_another_task_or_nothing(
    share: float, flow: str, score: float, kind: MessageKind
) -> None:
    _, system1 = trained()
    weighed = Weighed("kind:confirmation", share, (FlowScore(Dact(flow), score),))
    evidence = Evidence(tokenize("export that"), [], weighed, 1.0, {})
    context = NluContext(date(2026, 11, 20), active=system1.flows[Dact("preview")])

    assert system1.decider.decide(evidence, context) is kind
