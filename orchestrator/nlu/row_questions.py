"""Questions about fields of displayed rows or of an offer: "what is the address?".

A field matches by the words of its name, or by common words for its content. Values in the rows are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from orchestrator.dialogue.records import PRICE_WORDS, Shown
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import RowQuestion
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.text import key_of, tokenize, word_at, word_set
from orchestrator.types import JsonObject

_ASKS = re.compile(
    r"\?|\b(?:tell|give|get|send|show) me\b|\bfind out\b|(?:^|[.,!] *|\band )(?:what|which|where|when|who|whose|how)\b"
    r"|^(?:is|are|does|do|did|can|could|may)\b"
)
_ASKS_FOR_WAY = re.compile(r"\bhow (?:do|can|could|would|should|may|must|to)\b(?! (?:it|they|that|this)\b)")
"""Questions about how to do something, such as “how do I get a refund”, which don't ask for a field."""
_LANDING = word_set("land lands landing arrive arrives arrival")
_LEAVING = word_set("depart departs leave leaves takeoff departure")
_MEANT_BY: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    (
        PRICE_WORDS,
        word_set("cost costs price prices charge expensive pay rate fare fares rent much"),
    ),
    (word_set("address location station street"), word_set("where located address street location")),
    (word_set("phone contact"), word_set("phone number telephone contact call reach")),
    (word_set("arrives"), _LANDING),
    (word_set("departs departure leaving"), _LEAVING),
    (word_set("minutes duration"), word_set("long duration")),
    (
        word_set("time departs arrives leaving departure arrival"),
        word_set("when time times start starts"),
    ),
    (word_set("rating aggregate"), word_set("rating rated stars score")),
    (word_set("wifi internet"), word_set("wifi wi-fi internet")),
    (word_set("starring actors"), word_set("stars starring actors actor acts cast")),
    (word_set("director"), word_set("directs directed director")),
)
"""Pairs of word sets: words in field names, and words in questions about these fields."""
_EMPTY = word_set("of the a an is has are per name in on at to from number for and")
_AUXILIARIES = word_set("do does did")
_CLAUSES = re.compile(r"(?<=[.!?;,])")
_SAYING_LITTLE = STOP_WORDS | word_set(
    "ok okay yes yeah sure great good perfect well thanks thank please tell give send show find see know like need "
    "want exactly exact again take takes last lasts 's 'd 'm i'd it's what's where's when's who's that's got one"
)
_FORMS = re.compile(r"(?:ing|ed|es|s)$")
_EACH = re.compile(r"\b(?:they|them|these|those|all|each|every)\b")
_NOUNS = re.compile(r"\b(?:what|which)(?: are| were)?(?: the| your| their)?(?: [a-z]+){0,2} ([a-z]{3,})s\W*$")
"""Endings of questions about several things: "what are the outbound fares", "which airlines"."""
_NO_NOUNS = word_set("cost leave land arrive depart take start begin doe i thi include")


_OF_WHOLE = word_set("altogether together total both trip")


def read_row_question(text: str, row: JsonObject, state: DialogueState) -> RowQuestion:
    """Return the displayed row that a message names, and the requested fields of displayed rows or of the offer.

    `row`: the current row or offer. Return no fields if the message is about another step in the plan.
    """
    named = None if state.shown is None else _find_named(text, state.shown)
    if _is_about_other_step(text, state):
        return RowQuestion(named=named)
    flow = state.stack.active or state.find_completed()
    words = () if flow is None else flow.dact.split("_")
    nouns = {one for word in words for one in (word, word.removesuffix("s"))}
    fields = find_asked_fields(text, [name for name, value in row.items() if value is not None], nouns)
    listed = state.find_current_rows() if fields else None
    return RowQuestion(tuple(fields), listed is not None and _is_about_all(text, listed, state), named)


def _find_named(text: str, listed: Shown) -> int | None:
    said = f" {key_of(text)} "
    named = {at for at, row in enumerate(listed.rows) if f" {key_of(str(row.get(listed.key)))} " in said}
    return named.pop() if len(named) == 1 else None


def _is_about_other_step(text: str, state: DialogueState) -> bool:
    """Return whether a message names the plan, or a step that isn't running: "the return fares"."""
    active = state.stack.active
    plan = None if active is None else state.stack.plan_of(active)
    if plan is None or active is None:
        return False
    running = plan.step_of(active.flow_id)
    others = {word for step in plan.steps if step is not running for word in step.label.casefold().split()}
    own = frozenset[str]() if running is None else word_set(running.label.casefold())
    return not (others - own | _OF_WHOLE).isdisjoint(tokenize(text).words)


def _is_about_all(text: str, listed: Shown, state: DialogueState) -> bool:
    """Return whether a question is about all rows. "They" means all rows until the user selects one of them."""
    flow = state.stack.active
    is_open = not listed.place and (flow is None or flow.value(listed.key) is None)
    return len(listed.rows) > 1 and (asks_about_all(text) or (is_open and may_mean_all(text)))


def asks_about_all(text: str) -> bool:
    """Return whether a message asks about all rows with a plural noun: "which airlines"."""
    found = _NOUNS.search(text.casefold())
    return found is not None and found[1] not in _NO_NOUNS


def may_mean_all(text: str) -> bool:
    """Return whether a message may ask about several rows: "how much are they?"."""
    return asks_about_all(text) or _EACH.search(text.casefold()) is not None


def find_asked_fields(text: str, fields: Iterable[str], nouns: Collection[str] = ()) -> list[str]:
    """Return the fields that a message asks for, by name or by meaning.

    "What is the phone number?" asks for `phone_number`, not for `number_of_rooms`. "How much is a bag?" does
    not ask for a field, because a bag is not a field (IR-7). `nouns`: words for the rows.
    """
    said = text.casefold().replace("’", "'")
    if _ASKS.search(said) is None or _ASKS_FOR_WAY.search(said) is not None:
        return []
    words = {*tokenize(said).words}
    words |= {form for word in words for form in (_FORMS.sub("", word), word.removesuffix("s"))}
    parts = {name: [part for part in name.casefold().split("_") if part not in _EMPTY] for name in fields}
    asked = {name for name, own in parts.items() if own and all(_is_said(part, words) for part in own)}
    for held, meant in _MEANT_BY:
        if "time" in held and not words.isdisjoint(_LANDING | _LEAVING):
            continue  # "when does it land" asks only for the arrival
        near = {name: own for name, own in parts.items() if not held.isdisjoint(own)}
        if held is PRICE_WORDS and not meant.isdisjoint(words):
            asked |= near.keys()  # both unit price and total
        elif not meant.isdisjoint(words) and near and asked.isdisjoint(near):
            shares = {
                name: sum(_is_said(part, words) for part in own) / len(own) for name, own in near.items()
            }
            asked |= {name for name, share in shares.items() if share == max(shares.values())}
    if len(asked) > 1 and "number" not in words:  # "how long is the flight" doesn't ask for `flight_number`
        asked = {name for name in asked if not name.endswith("_number")}
    own = {part for name in asked for part in parts[name]}
    near = [meant for held, meant in _MEANT_BY if not held.isdisjoint(own)]
    known = _SAYING_LITTLE.union(own, nouns, *near)
    return [] if _names_something_else(said, known) else [name for name in parts if name in asked]


def _names_something_else(said: str, known: Collection[str]) -> bool:
    for clause in filter(_ASKS.search, _CLAUSES.split(said)):
        words = tokenize(clause).words
        known_at = [not word.isalnum() or _is_known(word, known) for word in words]
        for place in (at for at, is_known in enumerate(known_at) if not is_known):
            behind = word_at(words, place + 1)
            names_field = behind.isalnum() and known_at[place + 1] and behind not in _SAYING_LITTLE
            if not names_field or not _AUXILIARIES.isdisjoint(words[:place]):
                return True  # “user rating” is a rating, and “what does lunch cost” asks about lunch
    return False


def _is_known(word: str, known: Collection[str]) -> bool:
    return bool({word, word.removesuffix("s"), _FORMS.sub("", word)}.intersection(known))


def _is_said(part: str, words: set[str]) -> bool:
    return part in words or _FORMS.sub("", part) in words
