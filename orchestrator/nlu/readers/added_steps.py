"""Requests that add a step to the running plan: “also add a bag to the outbound flight” (PL-8)."""

import re

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.specification import NO_STEPS, FlowSpec
from orchestrator.dialogue.understanding import (
    FlowScore,
    MessageKind,
    PlanAction,
    PlanChange,
    Source,
    Understanding,
)
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reader, Reading
from orchestrator.nlu.readers.plan_changes import find_step
from orchestrator.nlu.readers.setup import ReaderSetup
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


class AddedSteps:
    """NLU component for requests that name an existing plan step and use its results."""

    def __init__(self, setup: ReaderSetup) -> None:
        self._setup = setup
        self._verbs = frozenset(request_verbs(setup.system1.flows.values()))

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        text, plan = message.english, context.plan
        if plan is None or len(text) > _LONGEST:
            return None
        request = _TAIL.sub("", _LEAD.sub("", text))
        if request.partition(" ")[0].casefold() not in self._verbs:
            return None
        for cut in _OF_STEP.finditer(request):
            said, named = request[: cut.start()], request[cut.end() :]
            rated = self._setup.system1.opinion(said, context)
            flow = self._setup.system1.flows[max(rated, key=rated.__getitem__)]
            slots = self._setup.system1.slots_for(said, flow, context)
            step = self._find_giver(plan, named, flow)
            if step is None or rated[flow.dact] < self._setup.system1.likely:
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
        if flow.family in NO_STEPS:
            return None
        flows = self._setup.domain.flows
        givers = [
            step
            for step in plan.steps
            if (step.is_done or not step.is_finished)
            and {*flow.inputs} & {*flows[Dact(step.dact)].spec.outputs}
        ]
        return find_step(plan, givers, named)


def make(setup: ReaderSetup) -> Reader:
    return AddedSteps(setup).read
