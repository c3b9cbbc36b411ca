"""Requests that add a step to the running plan: “also add a bag to the outbound flight” (PL-8)."""

import re

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.understanding import (
    FlowScore,
    MessageKind,
    PlanAction,
    PlanChange,
    Source,
    Understanding,
)
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reader, ReaderSetup, Reading
from orchestrator.nlu.step_words import find_words, list_step_words
from orchestrator.nlu.system1.requests import request_verbs
from orchestrator.types import Dact

_LEAD = re.compile(
    r"^(?:(?:and|also|then|please|oh|ok(?:ay)?|could you|can you|i(?:'d| would) (?:also )?like to)[, ]+)+",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:,? (?:too|as well|also|please))*[.!?]*$", re.IGNORECASE)
_OF_STEP = re.compile(r" (?:to|for|on|with|in|of) (?=(?:the|my|our) )", re.IGNORECASE)
_LONGEST = 160
"""Maximum length of a request, in characters."""
_NO_STEPS = frozenset({Family.PLAN, Family.INTERNAL, Family.CONVERSE})


class AddedSteps:
    """NLU component for requests that name an existing plan step and use its results."""

    def __init__(self, setup: ReaderSetup) -> None:
        self._setup = setup
        self._verbs = frozenset(request_verbs(setup.flows.values()))

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        text, plan = message.english, context.plan
        if plan is None or len(text) > _LONGEST:
            return None
        request = _TAIL.sub("", _LEAD.sub("", text))
        if request.partition(" ")[0].casefold() not in self._verbs:
            return None
        for cut in _OF_STEP.finditer(request):
            said, named = request[: cut.start()], request[cut.end() :]
            rated = self._setup.rate(said, context)
            flow = self._setup.flows[max(rated, key=rated.__getitem__)]
            slots = self._setup.find_slots(said, flow, context)
            step = self._find_giver(plan, named, flow)
            if step is None or rated[flow.dact] < self._setup.likely:
                continue
            understood = Understanding(
                *(MessageKind.PLAN_CHANGE, Source.COMMAND, text, flow.intent),
                flows=(FlowScore(flow.dact, 1.0),),
                slots=slots,
                target=request,
                plan_change=PlanChange(PlanAction.ADD, step.name),
            )
            return Reading(understood)
        return None

    def _find_giver(self, plan: PlanFlow, named: str, flow: FlowSpec) -> PlanStep | None:
        """Return the step that matches `named` best and whose results the flow takes.

        Return None if no step or several steps match.
        """
        if flow.family in _NO_STEPS:
            return None
        flows, mentioned = self._setup.domain.flows, find_words(named)
        givers = [
            step
            for step in plan.steps
            if (step.is_done or not step.is_finished)
            and {*flow.inputs} & {*flows[Dact(step.dact)].spec.outputs}
        ]
        shared = [(len(mentioned & list_step_words(plan, step)), step) for step in givers]
        best = max((count for count, _ in shared), default=0)
        fitting = [step for count, step in shared if count == best > 0]
        return fitting[0] if len(fitting) == 1 else None


def make(setup: ReaderSetup) -> Reader:
    return AddedSteps(setup).read
