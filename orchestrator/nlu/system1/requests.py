"""Analysis of requests: split requests, find their verbs, and find things that no flow knows (IR-6)."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention, MessageKind, Understanding
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.misspelling import SHORTEST_MISSPELT, spell
from orchestrator.nlu.system1.training.examples import kind_texts
from orchestrator.nlu.text import Utterance, tokenize, word_set
from orchestrator.saying import Saying, say

_PARTS = re.compile(
    r",? and then |,? then |; ?|\. |,? and (?:also|after that|afterwards) |,? (?:after that|afterwards),? ",
    re.IGNORECASE,
)
_JOINED = re.compile(r",? and (?:please )?|, (?:please )?", re.IGNORECASE)
"""Separators of values. If the first word of a request follows, they separate two requests."""
_BEFORE_THINGS = word_set("a an the my our your with without some another extra any")
"""Words before a noun that names a thing."""
_ARTICLES = word_set("a an the some another")
_BEING = word_set("'s am is are was were i'm you're we're they're")
POLITE_WORDS = word_set("""
    please plz pls thx thanks thank hi hello hey dear well great nice lovely quick quickly today now soon asap really
    just maybe perhaps possible possibly kindly love like want need look looking trip time moment favour favor bit
    different other new lot friend wife husband partner girlfriend boyfriend kid kids child children family colleague
    colleagues mother father sister brother son daughter friends people persons person place thing week weekend day
    night morning evening afternoon boss client customer team
""")


def split_request(text: str, flows: Iterable[FlowSpec]) -> tuple[str, str, bool] | None:
    """Split a message into its first request and the rest, or return None for a single request.

    The third item is True if the words between the two parts can only separate requests. `flows`: flows that
    users can request.
    """
    verbs = request_verbs(flows)
    for parting, is_certain in ((_PARTS, True), (_JOINED, False)):
        for found in parting.finditer(text):
            first, rest = text[: found.start()].strip(), text[found.end() :].strip()
            asks = rest.partition(" ")[0].lower() in verbs and not verbs.isdisjoint(tokenize(first).words)
            if first and rest and (is_certain or asks):
                return first, rest, is_certain
    return None


def are_two_requests(
    begun: Understanding, other: Understanding, context: NluContext, *, is_certain: bool
) -> bool:
    """Return whether two parts of a message are requests to run one after the other.

    A part about the running task can precede another task: "stop, then show my bookings".
    """
    if other.kind is MessageKind.CANCELLATION:
        return (
            is_certain and begun.kind is MessageKind.TASK
        )  # "… and then cancel it": the assistant asks about the cancellation later
    if other.kind is not MessageKind.TASK:
        return False
    if begun.kind in {MessageKind.CORRECTION, MessageKind.CANCELLATION}:
        return is_certain and (context.active is None or other.flows[0].dact != context.active.dact)
    same = begun.kind is MessageKind.TASK and begun.flows[0].dact == other.flows[0].dact
    return begun.kind is MessageKind.TASK and (
        is_certain or not (other.unexplained or (same and not other.slots))
    )


def request_verbs(flows: Iterable[FlowSpec]) -> set[str]:
    """Return the first words of requests for these flows."""
    return {word for flow in flows for word in _first_words(flow.examples)}


@lru_cache(maxsize=256)
def _first_words(examples: tuple[str, ...]) -> frozenset[str]:
    begun = {example.split()[0].lower() for example in examples if example}
    return frozenset(word for word in begun if word.isalpha()) - STOP_WORDS - POLITE_WORDS


def unexplained(utterance: Utterance, mentions: Iterable[Mention], flow: FlowSpec) -> list[str]:
    """List the things in a request that are unknown to the flow and not part of its values."""
    said = frozenset(tokenize(" ".join(mention.text for mention in mentions)).words)
    known = _general() | slot_words(flow) | words_of(flow.dact, flow.examples, flow.description) | said
    found: list[str] = []
    for place, word in enumerate(utterance.words):
        before = utterance.words[place - 1] if place else ""
        is_joined = bool(found) and before in {"and", "or", ",", found[-1]}
        names_thing = before in _BEFORE_THINGS or before.isdecimal() or is_joined
        if names_thing and not _is_known(word, known) and not _is_misspelt(word, known):
            found.append(word)
    return found


def find_things(utterance: Utterance) -> set[str]:
    """Return the nouns after articles, except after forms of “be”, such as “you're the best”."""
    words = utterance.words
    begins = [
        place + 1
        for place, word in enumerate(words[:-1])
        if word in _ARTICLES and words[place - 1 if place else 0] not in _BEING
    ]
    return {words[_end_of_thing(words, first)] for first in begins} - POLITE_WORDS


def _end_of_thing(words: Sequence[str], first: int) -> int:
    """Return the index of the noun after an article, such as “note” in “a new note about work”."""
    places = range(first + 1, len(words))
    stops = (place for place in places if words[place] in STOP_WORDS or not words[place].isalpha())
    return next(stops, len(words)) - 1


def _is_known(word: str, known: frozenset[str]) -> bool:
    """Return whether a word is too short to matter, or known in its singular or plural form."""
    forms = (word, word.removesuffix("s"), f"{word}s")
    return len(word) < 3 or not word.isalpha() or not known.isdisjoint(forms)


def _is_misspelt(word: str, known: frozenset[str]) -> bool:
    return len(word) >= SHORTEST_MISSPELT and bool(spell(word, known))


def find_strange(utterance: Utterance, examples: Sequence[str]) -> list[str]:
    """List the words that are neither general nor in the examples."""
    known = _general() | words_of(tuple(examples))
    return [word for word in utterance.words if not _is_known(word, known)]


@lru_cache(maxsize=256)
def words_of(*texts: str | tuple[str, ...]) -> frozenset[str]:
    joined = " ".join(text if isinstance(text, str) else " ".join(text) for text in texts)
    return frozenset(re.findall(r"[^\W\d_]+", joined.lower()))


def slot_words(flow: FlowSpec) -> frozenset[str]:
    """Return the words in slot names, descriptions and values of a flow."""
    slots = flow.slots.items()
    texts = [
        text
        for name, slot in slots
        for text in (name, slot.description, slot.prompt, slot.entity or "", *slot.values, *slot.synonyms)
    ]
    return words_of(*texts)


@lru_cache(maxsize=1)
def _general() -> frozenset[str]:
    return STOP_WORDS | POLITE_WORDS | words_of(tuple(text for _kind, text in kind_texts()))


def name_untaken(words: Iterable[str]) -> Saying:
    """Return a message to the user about ignored words."""
    return say("not_taken_into_account", words=list(words))


def name_unknown(words: Iterable[str]) -> Saying:
    """Return a message to the user about words that Parley can't help with."""
    return say("not_helped_with", words=list(words))
