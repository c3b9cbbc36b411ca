"""Unexplained parts of a request: not its flow, its values, or filler words (IR-6, NL-2).

Without a model, a component is only sure of what is explained; the rest is left to a model, or reported.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention, MessageKind, Understanding
from orchestrator.domain.model import Answer
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.extractor import is_free_text
from orchestrator.nlu.system1.extract.found import Candidate
from orchestrator.nlu.system1.extract.gazetteer import choose_nearest
from orchestrator.nlu.system1.message_kind import Evidence, kind_of_label
from orchestrator.nlu.system1.training.examples import flow_label, kind_texts
from orchestrator.nlu.text import Utterance, tokenize, word_set
from orchestrator.saying import Saying, say

_PARTS = re.compile(
    r",? and then |,? then |; ?|\. |,? and (?:also|after that|afterwards) |,? (?:after that|afterwards),? ",
    re.IGNORECASE,
)
_JOINED = re.compile(r",? and (?:please )?|, (?:please )?", re.IGNORECASE)
"""Separators of values, or of two requests if a word that begins requests follows."""
_BETWEEN = (",", ";", ". ", " and ", " then ", " after that", " afterwards")
"""Beginnings of separators between parts."""
_BEFORE_THINGS = word_set("a an the my our your with without near by via no another some extra any")
"""Behind these a word names a thing: one that is not known was asked for and is not had."""
SURE_OF_VALUES = 0.8
"""Confidence that fitting values answer or correct, if nothing contradicts it."""
_SURE_OF_SENTENCE = 0.4
_SAYING = word_set(
    "i i'm i'd i'll i've we we'd we'll we're you it it's is are am was that that's what how do does done need want "
    "some would could can will thank thanks also pick"
)
"""Words of sentences, which a requested name seldom has."""
_OF_VALUES = frozenset({MessageKind.UNKNOWN, MessageKind.CORRECTION, MessageKind.SLOT_VALUE})
"""Kinds that only indicate values, whether found or not."""
_ABOUT_TASK = frozenset({MessageKind.CORRECTION, MessageKind.CANCELLATION})
_SHORTEST_MISSPELT = 5
POLITE_WORDS = word_set("""
    please plz pls thx thanks thank hi hello hey dear well great nice lovely quick quickly today now soon asap really
    just maybe perhaps possible possibly kindly love like want need look looking trip time moment favour favor bit
    different other new lot friend wife husband partner girlfriend boyfriend kid kids child children family colleague
    colleagues mother father sister brother son daughter friends people persons person place thing week weekend day
    night morning evening afternoon boss client customer team
""")


def split_request(text: str, flows: Iterable[FlowSpec]) -> tuple[str, str, bool] | None:
    """Cut the first request off a message that may hold several; None when it holds but one.

    Returns it, the rest, and whether the words between them join nothing but requests. `flows`: what is asked for.
    """
    if not any(map(text.lower().__contains__, _BETWEEN)):
        return None
    verbs: set[str] | None = None
    for parting, is_certain in ((_PARTS, True), (_JOINED, False)):
        for found in parting.finditer(text):
            first, rest = text[: found.start()].strip(), text[found.end() :].strip()
            if not is_certain and verbs is None:
                verbs = request_verbs(flows)
            if first and rest and (is_certain or rest.split()[0].lower() in (verbs or ())):
                return first, rest, is_certain
    return None


def are_two_requests(
    begun: Understanding, other: Understanding, context: NluContext, *, is_certain: bool
) -> bool:
    """Return whether two parts of a message are requests to run one after the other.

    A part about the running task can precede another task: "stop, then show my bookings".
    """
    if other.kind is MessageKind.CANCELLATION:
        return is_certain and begun.kind is MessageKind.TASK  # "… and then cancel it": it is asked about then
    if other.kind is not MessageKind.TASK:
        return False
    if begun.kind in _ABOUT_TASK:
        return is_certain and (context.active is None or other.flows[0].dact != context.active.dact)
    same = begun.kind is MessageKind.TASK and begun.flows[0].dact == other.flows[0].dact
    return begun.kind is MessageKind.TASK and (
        is_certain or not (other.unexplained or (same and not other.slots))
    )


def request_verbs(flows: Iterable[FlowSpec]) -> set[str]:
    """List the words with which requests for these flows begin."""
    return {word for flow in flows for word in _first_words(flow.examples)}


@lru_cache(maxsize=256)
def _first_words(examples: tuple[str, ...]) -> frozenset[str]:
    begun = {example.split()[0].lower() for example in examples if example}
    return frozenset(word for word in begun if word.isalpha()) - STOP_WORDS - POLITE_WORDS


def unexplained(utterance: Utterance, mentions: Iterable[Mention], flow: FlowSpec) -> list[str]:
    """List the things that a request names and that neither the flow nor its values explain."""
    own = _words_of(flow.dact, flow.examples, flow.description)
    unknown = [word for word in utterance.words if _is_telling(word) and not _is_known(word, own)]
    if not unknown:
        return []
    said = set(tokenize(" ".join(mention.text for mention in mentions)).words)
    if said.issuperset(unknown):
        return []
    known = own | slot_words(flow) | _general()
    found: list[str] = []
    for place, word in enumerate(utterance.words):
        if word in said or not _is_telling(word) or _is_known(word, known):
            continue
        if len(word) >= _SHORTEST_MISSPELT and choose_nearest(word, known) is not None:
            continue
        if word.endswith(("er", "est")) and utterance.words[place + 1 : place + 2] in (["one"], ["ones"]):
            continue  # "the cheapest one" is one of several things, and none itself
        before = utterance.words[place - 1] if place else ""
        joined = before in _JOINTS and bool({*found, *_OF_LISTS}.intersection(utterance.words[:place]))
        if before in _BEFORE_THINGS or before in found or joined or before.isdecimal() or before in _COUNTS:
            found.append(word)
    return found


def find_owner(
    words: Iterable[str], flows: Iterable[FlowSpec], shares: Mapping[str, float]
) -> FlowSpec | None:
    """Return the likeliest of the flows whose own words explain all of these, or None if none does.

    `shares`: by label of the classifier.
    """
    wanted = [*words]
    owners = [
        flow
        for flow in flows
        if flow.examples
        and all(_is_known(word, _words_of(flow.dact, flow.examples, flow.description)) for word in wanted)
    ]
    return max(owners, key=lambda flow: shares.get(flow_label(flow.dact), 0.0), default=None)


def sure_of_answer(kind: MessageKind, evidence: Evidence, context: NluContext) -> float:
    """Return the confidence that a message answers or corrects, by its values and the open question.

    The classifier's alternatives reduce it by their probability: "never mind the gap" may or may not be the
    requested text. A whole sentence is seldom the requested name.
    """
    if _is_sentence(evidence, context):
        return _SURE_OF_SENTENCE
    weighed, active = evidence.weighed, context.active
    taken_for = kind_of_label(weighed.label)
    if taken_for is kind:
        return max(weighed.share, SURE_OF_VALUES) if evidence.mentions else weighed.share
    against = 0.0 if taken_for in _OF_VALUES else weighed.share
    if taken_for is MessageKind.TASK:
        best = weighed.flows[0]
        against = 0.0 if active is not None and best.dact == active.dact else best.score
    odds = SURE_OF_VALUES * (1.0 - against)
    return min(SURE_OF_VALUES, odds / (odds + (1.0 - SURE_OF_VALUES) * against))


def _is_sentence(evidence: Evidence, context: NluContext) -> bool:
    """Return whether the answer is a sentence instead of a value, such as "I also need a hotel" for a city."""
    asked = evidence.mentions.get(context.question.slot or "")
    slot = context.active.slots.get(context.question.slot or "") if context.active is not None else None
    if asked is None or slot is None or asked.value != asked.text or is_free_text(slot):
        return False
    words = tokenize(asked.text).words
    is_found = any(asked.text == candidate.text for candidate in evidence.candidates)
    return not is_found and len(words) > 2 and (words[0].endswith("ing") or not _SAYING.isdisjoint(words))


def is_explained(utterance: Utterance, answer: Answer | None) -> bool:
    """Return whether every word is filler, or occurs in an answer's examples."""
    known = _words_of(answer.examples if answer is not None else ())
    return all(not _is_telling(word) or _is_known(word, known) for word in utterance.words)


def is_about_another_thing(utterance: Utterance, left: Sequence[str]) -> bool:
    """Return whether a request names only things outside the domain, such as "book a hotel" without hotels."""
    things = name_things(utterance)
    return bool(things) and things <= set(left)


def name_things(utterance: Utterance) -> set[str]:
    """Return the nouns after articles that name something to be had, unlike “you're the best”."""
    words = utterance.words
    begins = [
        place
        for place, word in enumerate(words, start=1)
        if word in _ARTICLES and place < len(words) and not _describes(words, place - 1)
    ]
    return {words[_end_of_thing(words, first)] for first in begins} - POLITE_WORDS


def find_strange(
    utterance: Utterance,
    candidates: Iterable[Candidate],
    knows: Callable[[str], bool],
    context: NluContext,
) -> tuple[str, ...]:
    """List the things, besides values, that nothing in the domain speaks of: "I need a taxi" asks for no wheelchair.

    Slots of the running task, or else of the last one, may be called by their names.
    """
    about = [context.active] if context.active else [past.spec for past in context.completed[:1]]
    own = frozenset[str]().union(*map(slot_words, about))
    found = {place for one in candidates for place in range(one.first, one.last)}
    free = {word for place, word in enumerate(utterance.words) if place not in found and len(word) > 2}
    return tuple(sorted(word for word in name_things(utterance) & free - own if not knows(word)))


def _describes(words: Sequence[str], article: int) -> bool:
    """Return whether an article follows a pronoun and a form of “be”: “you're the …”, “that's a …”."""
    before = " ".join(words[max(0, article - 2) : article]).replace("’", "'")
    return _IT_IS.search(before) is not None


def _end_of_thing(words: Sequence[str], first: int) -> int:
    """Find the noun behind an article: "a new note about work" is about a note."""
    stops = (
        place
        for place in range(first + 1, len(words))
        if words[place] in STOP_WORDS or not words[place].isalpha()
    )
    return next(stops, len(words)) - 1


_ARTICLES = word_set("a an the some another")
_IT_IS = re.compile(
    r"\b(?:i'm|(?:you|we|they)'re|(?:i|you|he|she|it|we|they|this|that) (?:'s|am|is|are|was|were))$"
)
_JOINTS = word_set("and or , plus")
_OF_LISTS = word_set("with without")
_COUNTS = word_set("two three four five six seven eight nine ten")


def _is_telling(word: str) -> bool:
    return len(word) > 2 and word.isalpha()


def _is_known(word: str, own: frozenset[str]) -> bool:
    """Return whether a word is one of these or a general one, in singular or plural."""
    forms = (word, word.removesuffix("s"), f"{word}s")
    return not (own.isdisjoint(forms) and _general().isdisjoint(forms))


@lru_cache(maxsize=256)
def _words_of(*texts: str | tuple[str, ...]) -> frozenset[str]:
    joined = " ".join(text if isinstance(text, str) else " ".join(text) for text in texts)
    return frozenset(re.findall(r"[^\W\d_]+", joined.lower()))


def slot_words(flow: FlowSpec) -> frozenset[str]:
    texts = (
        part
        for name, slot in flow.slots.items()
        for part in (name, slot.description, slot.prompt, slot.entity or "", *slot.values, *slot.synonyms)
    )
    return _words_of(*texts)


@lru_cache(maxsize=1)
def _general() -> frozenset[str]:
    return STOP_WORDS | POLITE_WORDS | _words_of(tuple(text for _kind, text in kind_texts()))


def name_untaken(words: Iterable[str]) -> Saying:
    """Report to the user which words were not used."""
    return say("not_taken_into_account", words=list(words))


def name_unknown(words: Iterable[str]) -> Saying:
    """Explain to the user why nothing was done."""
    return say("not_helped_with", words=list(words))
