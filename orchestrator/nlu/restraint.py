"""Remove tasks that a message only forbids, reports, supposes or places in the past (NL-8).

Interpretations from commands, actions and language models are not checked. The reply explains how the message was
understood.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import MessageKind, Source, Understanding
from orchestrator.nlu.clauses import FIRST_PERSON, Mood, find_moods, find_spans
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.requests import request_verbs
from orchestrator.nlu.text import LONGEST_CHECKED, Utterance, tokenize, word_set
from orchestrator.saying import Saying, say
from orchestrator.types import Dact

_WISHING = word_set("want need like wish please can could")
_CLOSED = frozenset({Source.COMMAND, Source.ACTION, Source.SYSTEM2})
"""Sources that skip this check: models understand negation (NL-9), and commands and actions are unambiguous."""
_VAGUE = frozenset({MessageKind.UNKNOWN, MessageKind.CONFIRMATION, MessageKind.CANCELLATION})
_BESIDES = frozenset({MessageKind.CORRECTION, MessageKind.TASK})


class Restraint:
    def __init__(self, flows: Mapping[Dact, FlowSpec]) -> None:
        self._flows = flows
        self._verbs = frozenset(request_verbs(flows.values()))
        self._own = {dact: _deeds_of(flow) for dact, flow in flows.items()}

    def judge(
        self,
        understood: Understanding,
        text: str,
        context: NluContext,
        read: Callable[[str], Understanding],
    ) -> Understanding:
        """Return the interpretation without tasks that the message does not request.

        `text`: the message, with known words translated into English. `read`: interprets the rest of a message.
        """
        if understood.source in _CLOSED or understood.plain or understood.is_click:
            return understood
        utterance = tokenize(text)
        if len(utterance.words) > LONGEST_CHECKED:
            return understood
        moods = find_moods(utterance.words, self._verbs)
        if not moods:
            return understood
        dact = understood.flows[0].dact if understood.flows else None
        if understood.kind is not MessageKind.TASK or dact is None or dact not in self._own:
            return self._refuse(understood, utterance, moods, context)
        mood = self._find_mood(dact, utterance.words, moods)
        if mood is None:
            is_other = context.active is not None and context.active.dact != dact
            understood = self._refuse(understood, utterance, moods, context) if is_other else understood
            return self._name_exclusions(understood, utterance, moods)
        rest, words = _without(utterance, moods), utterance.words
        if self._verbs.intersection(tokenize(rest).words):
            other = read(rest)
            if other.kind is MessageKind.TASK and other.flows and other.flows[0].dact != dact:
                told = self._tell(mood, self._find_named(understood, words), words)
                return replace(other, assumed=(told, *other.assumed))
        return self._hold(understood, mood, dact, context, words)

    def _find_mood(self, dact: Dact, words: Sequence[str], moods: Mapping[int, Mood]) -> Mood | None:
        """Return the mood in which a message mentions a task, or None if the message requests the task."""
        own = [place for place, word in enumerate(words) if _stems(word) & self._own[dact]]
        if not own:
            own = [place for place, word in enumerate(words) if _stems(word) & self._verbs]
        if not own:
            own = [place for place, word in enumerate(words) if word in dact.split("_")]
        if not own and (whole := _mood_of_all(words, moods)) in {Mood.PAST, Mood.REPORTED}:
            return whole
        telling = [moods.get(place) for place in own]
        if not telling or None in telling or Mood.EXCLUDED in telling:
            return None
        mood = telling[0]
        outside = {word for place, word in enumerate(words) if place not in moods}
        is_asked = not outside.isdisjoint(self._verbs | _WISHING)
        if mood in {Mood.PAST, Mood.REPORTED} and is_asked:
            return None
        if mood is Mood.SUPPOSED:
            inside = {words[place] for place, one in moods.items() if one is Mood.SUPPOSED}
            return None if inside.isdisjoint(FIRST_PERSON) else mood
        return mood

    def _hold(
        self, understood: Understanding, mood: Mood, dact: Dact, context: NluContext, words: Collection[str]
    ) -> Understanding:
        is_open = any(flow.dact == dact for flow in context.tasks)
        plain = Understanding(MessageKind.UNKNOWN, understood.source, understood.text)
        if mood is Mood.FORBIDDEN and is_open:
            is_offered = context.active is not None and context.active.dact == dact
            if is_offered and context.question.confirming:
                return replace(plain, kind=MessageKind.DENIAL, intent=context.intent)
            return replace(plain, kind=MessageKind.CANCELLATION, target=dact)
        return replace(plain, assumed=(self._tell(mood, self._find_named(understood, words), words),))

    def _find_named(self, understood: Understanding, words: Collection[str]) -> Dact:
        """Return the most likely flow with a verb in the message, or the most likely flow if there is none."""
        likely = [one.dact for one in understood.flows if one.dact in self._own]
        named = (one for one in likely if any(_stems(word) & self._own[one] for word in words))
        return next(named, likely[0])

    def _refuse(
        self,
        understood: Understanding,
        utterance: Utterance,
        moods: Mapping[int, Mood],
        context: NluContext,
    ) -> Understanding:
        """Interpret “don't book it” as a “no” to the pending call.

        A message with another clear meaning keeps it. Corrections and new tasks also decline the call, unless the
        prohibition contains one of their values.
        """
        active = context.active
        if active is None or not context.question.confirming:
            return understood
        own = self._own.get(active.dact, frozenset[str]())
        forbidden = {utterance.words[place] for place, mood in moods.items() if mood is Mood.FORBIDDEN}
        if not any(_stems(word) & own for word in forbidden):
            return understood
        if understood.kind not in _VAGUE:
            said = {word for one in understood.slots.values() for word in tokenize(one.text).words}
            return replace(understood, declines=understood.kind in _BESIDES and said.isdisjoint(forbidden))
        return Understanding(MessageKind.DENIAL, understood.source, understood.text, context.intent)

    def _name_exclusions(
        self, understood: Understanding, utterance: Utterance, moods: Mapping[int, Mood]
    ) -> Understanding:
        """Add to the assumptions the exclusions, conditions and prohibitions that the interpretation ignores."""
        untaken = {Mood.EXCLUDED, Mood.SUPPOSED}
        if not understood.declines:
            untaken.add(Mood.FORBIDDEN)
        phrases = [utterance.surface(one.start, one.stop) for one in find_spans(moods, untaken)]
        if not phrases:
            return understood
        return replace(
            understood, assumed=(*understood.assumed, say("not_taken_into_account", words=phrases))
        )

    def _tell(self, mood: Mood, dact: Dact, words: Collection[str]) -> Saying:
        title = self._flows[dact].description or dact.replace("_", " ")
        is_named = any(_stems(word) & self._own[dact] for word in words)
        what = f"{title[:1].lower()}{title[1:]}"
        match mood:
            case Mood.FORBIDDEN:
                return say("forbidden", task=what, named=is_named)
            case Mood.PAST:
                return say("already_done", task=what)
            case Mood.REPORTED:
                return say("reported", task=what)
            case _:
                return say("supposed", task=what)


def _mood_of_all(words: Sequence[str], moods: Mapping[int, Mood]) -> Mood | None:
    """Return the mood that all words in the message share, or None if they have no common mood."""
    found = {moods.get(place) for place, word in enumerate(words) if word.isalnum()}
    return found.pop() if len(found) == 1 else None


def _deeds_of(flow: FlowSpec) -> frozenset[str]:
    return frozenset({*request_verbs((flow,)), flow.dact.split("_")[0]})


def _stems(word: str) -> set[str]:
    """Return a verb and its likely base forms, such as “cancel” for “cancelled”."""
    forms = {word, word.removesuffix("s")}
    for ending in ("ed", "ing"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word.removesuffix(ending)
            forms |= {stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem}
    return forms


def _without(utterance: Utterance, moods: Mapping[int, Mood]) -> str:
    kept = [utterance.surface(at, at + 1) for at in range(len(utterance.words)) if at not in moods]
    return " ".join(kept).strip(" ,.;!")
