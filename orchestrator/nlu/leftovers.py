"""What of a request nothing explains: neither its flow, nor its values, nor words that say nothing (IR-6, NL-2).

Whoever reads a message without a model is sure only of what is explained; the rest is for a model, or is named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.extract.found import NAME, NUMBER, QUOTE, RANGE, Candidate
from orchestrator.nlu.text import Utterance, tokenize, word_set
from orchestrator.nlu.training.examples import kind_texts
from orchestrator.types import Json

_PARTS = re.compile(
    r",? and then |,? then |; ?|\. |,? and (?:also|after that|afterwards) |,? (?:after that|afterwards),? ",
    re.IGNORECASE,
)
_JOINED = re.compile(r",? and (?:please )?|, (?:please )?", re.IGNORECASE)
"""What may as well join two values; two requests where a word with which requests begin comes next."""
_INSTEAD = re.compile(
    r"\b(?:no|not|sorry|wait|actually|rather|instead|i mean|make (?:it|that))\b", re.IGNORECASE
)
_BEFORE_THINGS = word_set("a an the my our your with without near by via no another some extra any")
"""Behind these a word names a thing: one that is not known was asked for and is not had."""
_POLITE = word_set("""
    please thanks thank hi hello hey dear well great nice lovely quick quickly today now soon asap really just
    maybe perhaps possible possibly kindly love like want need look looking trip time moment favour favor way bit
    lot friend wife husband partner girlfriend boyfriend kid kids child children family colleague colleagues
    mother father sister brother son daughter friends people persons person place thing week weekend day night
    morning evening afternoon
""")


def split_request(text: str, verbs: Collection[str]) -> tuple[str, str, bool] | None:
    """Cut the first request off a message that may hold several; None when it holds but one.

    Returns it, the rest, and whether the words between them join nothing but requests. `verbs`: with which
    requests begin.
    """
    for parting, is_certain in ((_PARTS, True), (_JOINED, False)):
        for found in parting.finditer(text):
            first, rest = text[: found.start()].strip(), text[found.end() :].strip()
            if first and rest and (is_certain or rest.split()[0].lower() in verbs):
                return first, rest, is_certain
    return None


def request_verbs(flows: Iterable[FlowSpec]) -> set[str]:
    """List the words with which requests for these flows begin."""
    begun = {example.split()[0].lower() for flow in flows for example in flow.examples if example}
    return {word for word in begun if word.isalpha()} - STOP_WORDS - _POLITE


def find_rivals(
    utterance: Utterance,
    candidates: Sequence[Candidate],
    mentions: Mapping[str, Mention],
    kinds: Mapping[str, Sequence[str]],
) -> dict[str, Mention]:
    """Find slots for which a request gives several values: the user is asked which of them is meant.

    A value that got no slot belongs to that of its neighbour of the same kind: the one it is joined to, else the
    one before. `kinds`: that slots take, by slot.
    """
    if _INSTEAD.search(utterance.text):
        return {}
    owners = {mention.text: name for name, mention in mentions.items()}
    found = [
        one
        for one in candidates
        if one.kind not in _LOOSE and one.kind in one.readings and one.readings[one.kind].value is not None
    ]
    values: dict[str, list[Json]] = {}
    for place, candidate in enumerate(found):
        alike = [one for one in found if one.kind == candidate.kind and one.text in owners]
        after = next((one for one in found[place + 1 :] if one in alike), None)
        before = next((one for one in reversed(found[:place]) if one in alike), None)
        joined = after is not None and utterance.words[candidate.last : after.first] in _JOINING
        neighbour = after if joined or before is None else before
        name = owners.get(candidate.text, None if neighbour is None else owners[neighbour.text])
        if name is not None and candidate.kind in kinds[name]:
            values.setdefault(name, []).append(candidate.readings[candidate.kind].value)
    several = {name: tuple(dict.fromkeys(map(str, said))) for name, said in values.items()}
    return {
        name: Mention(None, mentions[name].text, said)
        for name, said in several.items()
        if len(said) > 1 and mentions[name].value in said
    }


_JOINING = [["and"], ["or"], [","], [",", "and"], [",", "or"]]
_LOOSE = frozenset({NAME, QUOTE, NUMBER, RANGE})
"""Kinds of values that are found where there are none."""


def unexplained(utterance: Utterance, mentions: Iterable[Mention], flow: FlowSpec) -> list[str]:
    """List the things that a request names and that neither the flow nor its values explain."""
    said = set(tokenize(" ".join(mention.text for mention in mentions)).words)
    known = _words_of(flow.dact, flow.examples, flow.description) | _slot_words(flow) | _general()
    found: list[str] = []
    for place, word in enumerate(utterance.words):
        if word in said or not word.isalpha() or len(word) < 3 or _is_known(word, known):
            continue
        if word.endswith(("er", "est")) and utterance.words[place + 1 : place + 2] in (["one"], ["ones"]):
            continue  # "the cheapest one" is one of several things, and none itself
        before = utterance.words[place - 1] if place else ""
        joined = before in _JOINTS and bool({*found, *_OF_LISTS}.intersection(utterance.words[:place]))
        if before in _BEFORE_THINGS or before in found or joined or before.isdecimal() or before in _COUNTS:
            found.append(word)
    return found


_JOINTS = word_set("and or , plus")
_OF_LISTS = word_set("with without")
_COUNTS = word_set("two three four five six seven eight nine ten")


def _is_known(word: str, known: frozenset[str]) -> bool:
    return word in known or word.removesuffix("s") in known or f"{word}s" in known


@lru_cache(maxsize=256)
def _words_of(*texts: str | tuple[str, ...]) -> frozenset[str]:
    joined = " ".join(text if isinstance(text, str) else " ".join(text) for text in texts)
    return frozenset(re.findall(r"[^\W\d_]+", joined.lower()))


def _slot_words(flow: FlowSpec) -> frozenset[str]:
    texts = (
        part
        for name, slot in flow.slots.items()
        for part in (name, slot.description, slot.prompt, slot.entity or "", *slot.values, *slot.synonyms)
    )
    return _words_of(*texts)


@lru_cache(maxsize=1)
def _general() -> frozenset[str]:
    return STOP_WORDS | _POLITE | _words_of(tuple(text for _kind, text in kind_texts()))


def name_untaken(words: Iterable[str]) -> str:
    """Tell the user what was not taken into account."""
    return f"I have not taken this into account: {', '.join(f'“{word}”' for word in words)}."


def name_later(text: str) -> str:
    """Tell the user which of two requests is still to come."""
    return f"After that I see to “{text}”."


def name_next(text: str) -> str:
    """Tell the user that the second of two requests is begun."""
    return f"Now to “{text}”."
