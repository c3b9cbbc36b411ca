"""Withdrawals, recognized before requests: "I don't want …", "cancel it" (IR-1).

Users withdraw a value, a task in progress, or a completed task. For a completed task, the message means the flow
that undoes it.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import (
    Digression,
    FlowScore,
    Mention,
    MessageKind,
    Source,
    Understanding,
)
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.dates import WEEKDAYS
from orchestrator.nlu.system1.extract.found import Candidate
from orchestrator.nlu.system1.extract.numbers import ORDINALS, is_pronoun
from orchestrator.nlu.system1.message_kind import Evidence
from orchestrator.nlu.system1.slot_assignment import is_negated
from orchestrator.nlu.system1.training.examples import flow_label
from orchestrator.nlu.text import Utterance, word_set
from orchestrator.types import Dact, Json

_REFUSAL = re.compile(
    r"\b(?:do(?:es)? not|don['’]?t|no longer|never|not)\s+(?:really |actually |even )?"
    r"(?:want|need|wish|feel like|care to|plan|intend|like)\b(?: to\b)?|\b(?:any ?more|any longer)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|no longer|never|(?:do|does|did|wo|ca|is|would|should|could)n['’]?t)\b", re.IGNORECASE
)
_NEGATING = word_set(
    "not longer never don't don’t dont doesn't doesn’t doesnt didn't didn’t didnt won't won’t wont can't can’t cant "
    "isn't isn’t isnt wouldn't wouldn’t wouldnt shouldn't shouldn’t shouldnt couldn't couldn’t couldnt"
)
"""The words of which one is in all that is negated."""
_ELSE = re.compile(
    r"\b(?:but|rather|instead|want .* want|else|change|only|anything|nothing)\b|\?", re.IGNORECASE
)
_UNDO = re.compile(r"\b(cancel|undo|revoke|annul|delete|refund|call off|give back)\b", re.IGNORECASE)


_STOP = re.compile(
    r"^(?:(?:no|sorry|actually|ok(?:ay)?|well|wait|please|oh|hm+|i|we|just)[,. ]+|i['’](?:d|ll|ve) |have )*"
    r"(?:(?:(?:want|would like|like|need|wish) to )?(?:cancel|stop|quit|abort)|let(?:['’]s| us) (?:not|stop)"
    r"|(?:let(?:['’]s| us) )?(?:call (?:it|this|that) off|(?:leave|drop|forget(?: about)?) (?:it|this|that))"
    r"|decided against(?: it)?|changed my mind)"
    r"(?: (?:now|please|here|this|that|it|all|do|doing))*[.! ]*$",
    re.IGNORECASE,
)
_HALT = re.compile(
    r"^(?:(?:no|sorry|actually|ok(?:ay)?|well|oh|hey|hm+|please|and|but|wait|stop)[,. !]+)*"
    r"(?:no|wait|hold on|hang on|hold it|stop(?: right)? there|not (?:yet|now|so fast)"
    r"|(?:one|just a|wait a) (?:moment|minute|second|sec)"
    r"|(?:please )?(?:do not|don['’]?t)(?: (?:do|send|book|make|start) (?:it|that|this|them))?"
    r"|undo(?: (?:it|that|this))?|take (?:it|that|this) back)"
    r"(?:[, ]+(?:please|yet|now|wait|a (?:moment|minute|second|sec)))*[.! ]*$",
    re.IGNORECASE,
)
"""Calls to stop a running task that asks nothing."""
_EVERYTHING = re.compile(r"\b(?:everything|all|both)\b", re.IGNORECASE)
_ANOTHER = re.compile(r"\b(?:a different|another|some other|something else|a new one)\b", re.IGNORECASE)


_BEGINNING = (
    r"(?:^|[.!?,;](?=[^.!?,;]*[.!? ]*$)(?=[^.!?,;]*\b(?:i|me|we|us)\b))\W*"
    r"(?:(?:ok|okay|no|hi|hello|hey|sorry|please|actually|then|so|but|why|can|can['’]?t|could|may|would|will|is|it|"
    r"possible|there|a|any|way|i|i['’]d|we|you|let|me|us|really|just|rather|like|want|need|wish|have|to)\W+)*"
)
_FOR_PERSON = re.compile(
    rf"{_BEGINNING}(?:talk|speak|chat|write|get through|(?:put|connect|pass|transfer|hand) (?:me|this)(?: over)?|get me"
    r"|give me|want|need|call)"
    r"\s*(?:to|with|for)?\s*(?:an?|the|some|your)?\s*(?:real|live|actual|other)?\s*"
    r"(?:human|person|people|agent|operator|somebody|someone|representative|employee|colleague|staff|support|manager|supervisor|boss)"
    r"(?: (?:being|please|now|instead|about this|there|team))*[.!? ]*$"
    r"|^(?:a |an )?(?:human|operator|representative|real person)(?: please)?[.! ]*$",
    re.IGNORECASE,
)
"""Requests to talk to a person, also after a complaint; "remind me to talk to someone" is not one."""
PERSONS = word_set(
    "human person people agent operator somebody someone representative employee colleague staff support manager "
    "supervisor boss"
)


def wish_for_person(text: str) -> Understanding | None:
    """Parse the wish to talk to a person, or return None if none of the `PERSONS` is named."""
    if _FOR_PERSON.search(text) is None:
        return None
    return Understanding(MessageKind.DIGRESSION, Source.SYSTEM1, text, digression=Digression.PERSON)


def stop_now(text: str, context: NluContext) -> Understanding | None:
    """Read "actually, I want to cancel" and "hold on" while a task is running, and "a different one" at an offer."""
    if context.active is not None and _STOP.match(text):
        return Understanding(MessageKind.CANCELLATION, Source.SYSTEM1, text)
    halts = _HALT.match(text) and not context.question.is_open
    if context.active is not None and (halts or (context.question.confirming and _ANOTHER.search(text))):
        return Understanding(MessageKind.DENIAL, Source.SYSTEM1, text, context.intent)
    return None


def refused_part(utterance: Utterance) -> str | None:
    """Cut "I do not want to" out of a message; None when it refuses nothing, or wants something else instead."""
    text = utterance.text
    if _NEGATING.isdisjoint(utterance.words):
        return None
    if _REFUSAL.search(text) is None or _NEGATED.search(text) is None or _ELSE.search(text) is not None:
        return None
    return _REFUSAL.sub(" ", text)


def withdraw(
    text: str, candidates: Sequence[Candidate], likely: Sequence[FlowScore], context: NluContext
) -> Understanding | None:
    """Read a refusal of a value or of a task; `likely`: the flows that the rest of the message requests."""
    said = {value for one in candidates for value in _values_of(one)}
    weekdays = {WEEKDAYS.get(one.text.casefold()) for one in candidates}
    held = [
        name for name, value in context.values.items() if str(value) in said or _weekday_of(value) in weekdays
    ]
    if context.active is not None and len(held) == 1:
        slots = {held[0]: Mention(None, text)}
        return Understanding(MessageKind.CORRECTION, Source.SYSTEM1, text, context.intent, slots=slots)
    open_tasks = {flow.dact for flow in context.tasks}
    best = likely[0].dact if likely else None
    if best is not None and (best in open_tasks or not open_tasks):
        return Understanding(MessageKind.CANCELLATION, Source.SYSTEM1, text, target=best)
    return None


def undo_done(
    utterance: Utterance,
    candidates: Sequence[Candidate],
    shares: Mapping[str, float],
    flows: Mapping[Dact, FlowSpec],
    context: NluContext,
) -> Understanding | None:
    """Read "cancel it" after an action, with nothing in progress, as the flow that undoes it.

    A value that did not belong to the action is about something else. `candidates`: values found; `shares`:
    the classifier's shares by label.
    """
    text = utterance.text
    found = _UNDO.search(text)
    if found is None or _EVERYTHING.search(text):
        return None
    held = {str(value) for past in context.completed for value in past.values.values()}
    if not all(is_pronoun(utterance, one) or held & _values_of(one) for one in candidates):
        return None
    given = {name for past in context.completed for name in past.outputs}
    verb = found[1].lower()
    fitting = [
        flow
        for flow in flows.values()
        if given.intersection(flow.inputs) and verb in "\n".join(flow.examples).lower()
    ]
    if not fitting:
        return None
    best = max(fitting, key=lambda flow: shares.get(flow_label(flow.dact), 0.0))
    slots = _which_of_done(utterance, best, context)
    return Understanding(
        MessageKind.TASK, Source.SYSTEM1, text, best.intent, (FlowScore(best.dact, 1.0),), slots
    )


def _which_of_done(utterance: Utterance, flow: FlowSpec, context: NluContext) -> dict[str, Mention]:
    """Resolve "the first one" among several completed actions, in their order."""
    place = next((ORDINALS[word] for word in utterance.words if word in ORDINALS), None)
    for name in flow.inputs:
        values = (past.outputs[name] for past in reversed(context.completed) if name in past.outputs)
        done = list(dict.fromkeys(values))
        if place is not None and len(done) > max(place, 1):
            return {name: Mention(done[place], utterance.text)}
    return {}


def _weekday_of(value: Json) -> int:
    """Return a day's weekday number, or -1 for an invalid day."""
    try:
        return date.fromisoformat(str(value)).weekday()
    except ValueError:
        return -1


def _values_of(candidate: Candidate) -> set[str]:
    return {str(reading.value) for reading in candidate.readings.values() if reading.value is not None}


def target_of(utterance: Utterance) -> str | None:
    """Return the words that say which task to resume or cancel."""
    words = [word for word in utterance.words if word.isalnum() and word not in _GENERAL]
    return " ".join(words) or None


_GENERAL = word_set(
    "a an the to back go let's let us me my i i'd want like would please can could we you return "
    "continue with resume cancel stop forget about that this it never mind nevermind carry on pick up "
    "where left off were was now okay ok again get of in do don't need any more anymore drop quit abort "
    "thing other one previous earlier first last task request and for what doing"
)


def replace_old(
    evidence: Evidence, values: Mapping[str, object], mentions: dict[str, Mention]
) -> dict[str, Mention]:
    """Apply "not Madrid but Porto": the new value goes where the old one stands."""
    old = {
        name
        for candidate in evidence.candidates
        if is_negated(evidence.utterance, candidate)
        for name, value in values.items()
        if any(reading.value == value for reading in candidate.readings.values())
    }
    if len(old) == 1 and len(mentions) == 1 and not old & mentions.keys():
        return {old.pop(): next(iter(mentions.values()))}
    return mentions
