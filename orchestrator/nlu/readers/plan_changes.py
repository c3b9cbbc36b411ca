"""Messages about a running plan: skip, move or add a step, show the status, or drop the plan (PL-2, PL-4)."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.understanding import (
    Digression,
    MessageKind,
    PlanAction,
    PlanChange,
    Source,
    Understanding,
)
from orchestrator.nlu.clauses import Mood, find_moods
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reader, Reading
from orchestrator.nlu.readers.setup import ReaderSetup
from orchestrator.nlu.system1.requests import request_verbs
from orchestrator.nlu.text import tokenize, word_set
from orchestrator.types import Dact

LONGEST_READ = 160

_POLITE = r"^(?:ok(?:ay)?,? |no,? |actually,? |please |could you |can you |let's |let us )*"
_END = r"(?:,? please)?[.!?]*$"
_SKIP = re.compile(
    _POLITE
    + r"(?:skip|leave out|drop|omit|forget(?: about)?|(?:do not|don't) bother with|remove|without|no need for)"
    r"(?: (?P<step>.+?))?" + _END,
    re.IGNORECASE,
)
_NOT_NEEDED = re.compile(
    _POLITE + r"(?:I|we) (?:do not|don['’]?t|no longer) (?:need|want)(?: to book)? (?P<step>.+?)"
    r"(?:,? (?:after all|any ?more|any longer|now))?" + _END,
    re.IGNORECASE,
)
_FIRST = re.compile(_POLITE + r"(?P<step>.+?) first" + _END, re.IGNORECASE)
_BEFORE = re.compile(_POLITE + r"(?P<step>.+?) before (?P<other>.+?)" + _END, re.IGNORECASE)
_STATUS = re.compile(
    _POLITE + r"(?:(?:what is|what's|show(?: me)?|tell me) the plan"
    r"|how far (?:are you|are we|is it|along)\b.*|what(?: is|'s) (?:left|next)(?: to do)?|where are we)"
    + _END,
    re.IGNORECASE,
)
_ABANDON = re.compile(
    _POLITE + r"(?:forget|drop|abandon|cancel|stop|scrap|call off) (?:the |this |my )?(?:whole |entire )?"
    r"(?P<what>\w+)" + _END,
    re.IGNORECASE,
)
_WHEN_DONE = (
    r"(?:after (?:that|this|it)|afterwards?|at the end|(?:when|once|as soon as|after) (?:that|this|it|they|both|all"
    r"|everything|the (?:trip|plan|flights?|bookings?))(?: (?:of them|of it))? (?:is|are|has been|have been)"
    r"(?: all)? (?:done|booked|finished|over))"
)
_AFTERWARDS = re.compile(
    _POLITE
    + rf"(?:and |also |then )*{_WHEN_DONE},? (?:please |also |then |can you |could you )*(?P<request>.+)$",
    re.IGNORECASE,
)
_AT_THE_END = re.compile(
    _POLITE + rf"(?:and |also |then |please )*(?P<request>.+?),? {_WHEN_DONE}{_END}", re.IGNORECASE
)
_COURTESIES = word_set("please so ok okay no and but i we you actually thanks there is it")
_ANYTHING = word_set("anything any nothing everything all")
_LONGEST_STEP = 3
"""Maximum length of an unknown step's name, in words."""
_THIS = frozenset({"this", "that", "it", "this step", "that step", "this one", "that one", "this part"})


_WORD = re.compile(r"\w+")
_COMMON = frozenset({"a", "an", "the", "my", "your", "our", "of", "for", "to", "and", "step", "part"})
_ALIKE = 2
"""Minimum number of values that two steps for the same part of the plan have in common."""


@dataclass(frozen=True, slots=True)
class PlanReader:
    """NLU component for messages about plans.

    `verbs`: first words of the domain's requests. `verbs_of`: first words of requests by flow. `is_known`:
    returns whether a text is a request in this domain.
    """

    verbs: frozenset[str]
    is_known: Callable[[str, NluContext], bool]
    verbs_of: Mapping[Dact, Collection[str]] = field(default_factory=dict[Dact, Collection[str]])

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        """Interpret a message about the running plan, or return None for other messages.

        If neither a plan nor a flow is active, interpret only questions about the status.
        """
        text, plan = message.english, context.plan
        if len(text) > LONGEST_READ:
            return None
        if plan is None or not plan.steps:
            idle = context.active is None
            return Reading(read) if idle and (read := _read_status(text)) is not None else None
        understood = (
            _read_status(text)
            or _read_abandon(text, plan)
            or _read_change(text, plan)
            or self._read_forbidden(text, plan)
            or self._read_added(text, context)
        )
        return None if understood is None else Reading(understood)

    def _read_forbidden(self, text: str, plan: PlanFlow) -> Understanding | None:
        """Interpret “don't book the return” as skipping a step.

        “Don't book anything” skips all remaining steps that the verb fits.
        """
        words = tokenize(text).words
        moods = find_moods(words, self.verbs)
        forbidden = {word for at, word in enumerate(words) if moods.get(at) is Mood.FORBIDDEN}
        if not forbidden or not _COURTESIES.issuperset(
            word for at, word in enumerate(words) if at not in moods and word.isalnum()
        ):
            return None
        deeds = forbidden.intersection(self.verbs)
        waiting = [step for step in plan.steps if not step.is_finished]
        own = {
            step.name: list_step_words(plan, step).union(self.verbs_of.get(Dact(step.dact), ()))
            for step in waiting
        }
        fitting = [step for step in waiting if deeds <= own[step.name]]
        if deeds and not _ANYTHING.isdisjoint(forbidden) and fitting:
            first, *others = [step.name for step in fitting]
            change = PlanChange(PlanAction.SKIP, first, others=tuple(others))
            return Understanding(MessageKind.PLAN_CHANGE, Source.COMMAND, text, plan_change=change)
        step = find_step(plan, waiting, " ".join(forbidden))
        is_named = step is not None and len(own[step.name] & forbidden) > (1 if deeds else 0)
        return _change(text, PlanAction.SKIP, step) if is_named and step in fitting else None

    def _read_added(self, text: str, context: NluContext) -> Understanding | None:
        """Interpret “after that, add a bag” as a request to run after the plan."""
        for form in (_AFTERWARDS, _AT_THE_END):
            found = form.match(text)
            request = "" if found is None else found["request"].strip(" ,.!")
            if request.partition(" ")[0].casefold() in self.verbs and self.is_known(request, context):
                change = PlanChange(PlanAction.ADD, None)
                return Understanding(
                    MessageKind.PLAN_CHANGE, Source.COMMAND, text, plan_change=change, later=request
                )
        return None


def make(setup: ReaderSetup) -> Reader:
    def is_known(request: str, context: NluContext) -> bool:
        return max(setup.system1.opinion(request, context).values(), default=0.0) >= setup.system1.likely

    verbs = frozenset(request_verbs(setup.system1.flows.values()))
    verbs_of = {dact: frozenset(request_verbs([flow])) for dact, flow in setup.system1.flows.items()}
    return PlanReader(verbs, is_known, verbs_of).read


def _read_status(text: str) -> Understanding | None:
    if _STATUS.match(text) is None:
        return None
    return Understanding(MessageKind.DIGRESSION, Source.COMMAND, text, digression=Digression.STATUS)


def _read_abandon(text: str, plan: PlanFlow) -> Understanding | None:
    found = _ABANDON.match(text)
    if found is None:
        return None
    if found["what"].lower() not in find_words(plan.dact) | {"plan"}:
        return None
    return Understanding(MessageKind.CANCELLATION, Source.COMMAND, text, target=plan.flow_id)


def _read_change(text: str, plan: PlanFlow) -> Understanding | None:
    waiting = [step for step in plan.steps if not step.is_finished]
    find = partial(find_step, plan, waiting)
    if (found := _BEFORE.match(text)) is not None:
        step, other = find(found["step"]), find(found["other"])
        if step is not None and other is not None and step is not other:
            return _change(text, PlanAction.BEFORE, step, other)
    if (found := _FIRST.match(text)) is not None and (step := find(found["step"])) is not None:
        return _change(text, PlanAction.FIRST, step)
    if (found := _NOT_NEEDED.match(text)) is not None and (step := find(found["step"])) is not None:
        return _change(text, PlanAction.SKIP, step)
    if (found := _SKIP.match(text)) is not None:
        said = (found["step"] or "this").lower()
        step = next(iter(waiting), None) if said in _THIS else find(said)
        if step is not None or len(said.split()) <= _LONGEST_STEP:
            return _change(text, PlanAction.SKIP, step)
    return None


def _change(
    text: str, action: PlanAction, step: PlanStep | None, other: PlanStep | None = None
) -> Understanding:
    change = PlanChange(action, step.name if step else None, other.name if other else None)
    return Understanding(MessageKind.PLAN_CHANGE, Source.COMMAND, text, plan_change=change)


def find_words(text: str) -> frozenset[str]:
    """Return a text's distinctive words, in lowercase."""
    return frozenset(_WORD.findall(text.replace("_", " ").casefold())) - _COMMON


def list_step_words(plan: PlanFlow, step: PlanStep) -> frozenset[str]:
    """Return the words that identify a step: its own words, and names of steps for the same part of the plan.

    “Back” identifies the return booking, because the step “back” looks for flights with the same values.
    """
    alike = (other.name for other in plan.steps if other is not step and _is_alike(step, other))
    return find_words(f"{step.name} {step.purpose} {step.dact}").union(*map(find_words, alike))


def find_step(plan: PlanFlow, steps: Iterable[PlanStep], said: str) -> PlanStep | None:
    """Return the one of `steps` that shares the most words with `said`, or None if there is no match or a tie."""
    mentioned = find_words(said)
    shared = [(len(mentioned & list_step_words(plan, step)), step) for step in steps]
    best = max((count for count, _ in shared), default=0)
    fitting = [step for count, step in shared if count == best > 0]
    return fitting[0] if len(fitting) == 1 else None


def _is_alike(step: PlanStep, other: PlanStep) -> bool:
    shared = step.slots.keys() & other.slots.keys()
    return len(shared) >= _ALIKE and all(step.slots[name] == other.slots[name] for name in shared)
