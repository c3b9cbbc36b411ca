"""References to displayed rows: "the second one", "the TAP one", "the one at 6:20", "later" (IR-5).

The manifest lists the fields that distinguish rows. The row goes to the active flow if this flow takes rows.
Otherwise, it goes to a flow that the message names or that follows the displayed table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from orchestrator.dialogue.records import Shown
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.domain.tool_schema import RowsSpec
from orchestrator.nlu.cues import asks_for_another
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.found import DATE, Candidate, Found
from orchestrator.nlu.system1.extract.numbers import NUMBERS, ORDINALS, find_money, find_numbers
from orchestrator.nlu.system1.extract.times import find_times
from orchestrator.nlu.text import Utterance, is_excepted, key_of, word_set
from orchestrator.saying import Told, say
from orchestrator.types import Dact, Json, JsonObject, ToolId, is_object

_COUNTED = word_set("option number no row choice nr item entry")
_NOUNS = word_set("one ones option row choice item entry result")
_FILLER = word_set(
    "a an the i i'd i'll we we'd like want take choose pick go with for let's let us please no not yes ok okay yeah "
    "rather actually instead prefer give me make it that this is on at of in to by from and then then just s 's do "
    "have would could can you show what about how there any too much expensive leaving departing which whichever sorry "
    "hmm well any anything something got"
)
_BARE = word_set("please the i take want choose pick ok okay yes no rather")
"""Words that often surround the number of a row."""
_FEW_WORDS = 12
_MOST_OF_NAME = 3
_SHORT = 3
LESS, MORE = 0, 1


@dataclass(frozen=True, slots=True)
class Reference:
    """Rows that a reference may mean. `places`: positions of its words. `why`: reason why no row fits."""

    rows: list[JsonObject]
    places: frozenset[int]
    why: Told | None = None


@dataclass(frozen=True)
class Message:
    """Inputs for resolving references.

    `current`: the key of the current row. `candidates`: values found in the message. `flows`: tasks that can
    take a row.
    """

    utterance: Utterance
    shown: Shown
    spec: RowsSpec
    current: Json
    candidates: Sequence[Candidate] = ()
    flows: Iterable[FlowSpec] = ()

    @cached_property
    def named(self) -> list[tuple[Json, set[int]]]:
        """List times and other values in the message, spelled as in rows, with the positions of their words."""
        return [(time.reading.value, self.places_of(time)) for time in self.times] + [
            (value, set(range(one.first, one.last)))
            for one in self.candidates
            for reading in one.readings.values()
            for value in (reading.value, *reading.candidates)
        ]

    @cached_property
    def requests(self) -> frozenset[str]:
        """Return the words that users use to request tasks with a row."""
        takers = [flow for flow in self.flows if takes(flow, self.shown.key)]
        said = [word for flow in takers for word in flow.dact.split("_")]
        begun = [example.casefold().partition(" ")[0] for flow in takers for example in flow.examples]
        return _REQUESTS.union(said, begun) - _DEEDS

    @cached_property
    def times(self) -> list[Found]:
        return find_times(self.utterance)

    @cached_property
    def amounts(self) -> list[tuple[Json, set[int]]]:
        """List the numbers and amounts of money in the message, with the positions of their words."""
        named = (*find_money(self.utterance), *find_numbers(self.utterance))
        return [
            (read["amount"] if is_object(read := found.reading.value) else read, self.places_of(found))
            for found in named
        ]

    def places_of(self, found: Found) -> set[int]:
        return set(range(*self.utterance.token_span(found.start, found.end)))


def find_reference(message: Message) -> Reference | None:
    """Return the row that a message refers to, or None."""
    if len(message.utterance.words) > _FEW_WORDS or not message.shown.rows:
        return None
    return next((found for find in _WAYS if (found := find(message)) is not None), None)


def list_others(
    utterance: Utterance,
    context: NluContext,
    flows: Mapping[Dact, FlowSpec],
    rows: Mapping[ToolId, RowsSpec],
) -> Understanding | None:
    """Interpret "is there a cheaper one?" about a single offer as a request for alternatives."""
    active, question = context.active, context.question
    if active is None or question.slot is not None or not question.is_open:
        return None
    for flow in flows.values():
        if flow.family is not Family.READ:
            continue
        spec = next((rows[use.tool_id] for use in flow.tools if use.tool_id in rows), None)
        if spec is None or spec.key not in active.slots:
            continue
        shown = Shown(flow.tools[0].tool_id, flow.dact, spec.key, [{}])
        message = Message(utterance, shown, spec, None)
        asks_for_all = "all" in utterance.words and not _nouns(message).isdisjoint(utterance.words)
        if asks_for_all or asks_for_another(utterance.text) or _by_comparison(message) is not None:
            slots = {name: Mention(context.values[name]) for name in flow.slots if name in context.values}
            scores = (FlowScore(flow.dact, 1.0),)
            return Understanding(MessageKind.TASK, Source.SYSTEM1, utterance.text, flow.intent, scores, slots)
    return None


def _by_place(message: Message) -> Reference | None:
    words, count = message.utterance.words, len(message.shown.rows)
    for place, word in enumerate(words):
        before, after = words[place - 1] if place else "", words[place + 1] if place + 1 < len(words) else ""
        if is_excepted(words, place):
            continue  # "not the first one"
        if word in ORDINALS and after != "of" and (before == "the" or after in _NOUNS or len(words) <= 2):
            index = ORDINALS[word]
            if after and after.isalpha() and after not in _NOUNS | _FILLER and after not in _nouns(message):
                continue
            if _is_day(message, place) and ("on" in words[:place] or index >= count):
                continue  # "on the 7th"
            return _at(message, index if index >= 0 else count - 1, {place, place + 1})
        number = int(word) - 1 if word.isdecimal() and len(word) < 3 else NUMBERS.get(word)
        if number is not None and (before in _COUNTED or before == "#"):
            return _at(message, number, {place - 1, place})
        if number is not None and word != "one" and all(other in _BARE for other in _others(message, place)):
            return _at(message, number, {place})
    return None


def _is_day(message: Message, place: int) -> bool:
    return any(one.kind == DATE and one.first <= place < one.last for one in message.candidates)


def _others(message: Message, place: int) -> list[str]:
    return [word for other, word in enumerate(message.utterance.words) if other != place and word.isalnum()]


def _at(message: Message, index: int, places: set[int]) -> Reference:
    rows = message.shown.rows
    if 0 <= index < len(rows):
        return Reference([rows[index]], frozenset(places))
    return Reference([], frozenset(places), say("too_few_rows", count=len(rows)))


def _by_comparison(message: Message) -> Reference | None:
    words = message.utterance.words
    if message.spec.cues.isdisjoint(words):
        return None
    text = f" {' '.join(words)} "
    for name, field in message.spec.fields.items():
        for direction, said in enumerate((field.less, field.more)):
            found = next((word for word in said if f" {word} " in text), None)
            if found is not None:
                first = next(i for i in range(len(words)) if " ".join(words[i:]).startswith(found))
                nth = ORDINALS.get(words[first - 1], 0) if first and found.endswith("est") else 0
                places = set(range(first - bool(nth), first + len(found.split())))
                if is_excepted(words, first) or _telling(message, places):
                    continue
                return _compare(message, name, direction, found, frozenset(places), max(nth, 0))
    return None


def _compare(
    message: Message, name: str, direction: int, said: str, places: frozenset[int], nth: int
) -> Reference:
    """Resolve “cheaper” to the next cheaper row, and “cheapest” to the row at `nth` from the cheapest."""
    rows = sorted((row for row in message.shown.rows if row.get(name) is not None), key=lambda row: row[name])
    ordered = rows if direction == LESS else rows[::-1]
    now = next((row for row in rows if row.get(message.shown.key) == message.current), None)
    if said.rsplit(" ", maxsplit=1)[-1].endswith("est") or said.startswith("most ") or now is None:
        why = None if nth < len(ordered) else say("too_few_rows", count=len(ordered))
        return Reference(ordered[nth : nth + 1], places, why)
    beyond = [
        row for row in ordered if (row[name] < now[name] if direction == LESS else row[name] > now[name])
    ]
    return Reference(beyond[-1:], places, None if beyond else say("no_row_is", what=said))


def _by_value(message: Message) -> Reference | None:
    """Return the rows with a value in the message, such as an airline, a time or a price."""
    words = message.utterance.words
    for name in message.spec.fields if _may_name_value(message) else ():
        hits = [(row, found) for row in message.shown.rows if (found := _places_of(message, row.get(name)))]
        places = {place for _, found in hits for place in found}
        if hits and not is_excepted(words, min(places)) and _DEEDS.issuperset(_telling(message, places)):
            return Reference([row for row, _ in hits], frozenset(places))
    if "one" not in words or is_excepted(words, len(words), within=len(words)):
        return None
    return _by_missing_time(message) or _by_missing_name(message)


def _may_name_value(message: Message) -> bool:
    """Return whether a message names a time, a number or a known value, or shares a word with a row."""
    if message.named or message.amounts:
        return True
    values = [row.get(name) for row in message.shown.rows for name in message.spec.fields]
    words = [word for value in values if isinstance(value, str) for word in _words_of(value)]
    return not set(words).isdisjoint(message.utterance.words)


def _places_of(message: Message, value: Json) -> set[int]:
    """Return the positions of a field's value in the message."""
    words = message.utterance.words
    if isinstance(value, str):
        key = _words_of(value)
        is_short = key[0].isalpha() and len(key[0]) > 2  # "the ITA one" for ITA Airways
        for said in (key, key[:1] if is_short else key) if key[0] in words else ():
            for first in range(len(words) - len(said) + 1):
                if words[first : first + len(said)] == said:
                    return set(range(first, first + len(said)))
        for known, places in message.named:
            if known == value:
                return places
        return {place for place, word in enumerate(words) if word in key and _is_pointed_at(words, place)}
    for amount, places in message.amounts:
        if amount is not None and amount == value:
            return places
    return set()


def _is_pointed_at(words: Sequence[str], place: int) -> bool:
    """Return whether a word refers to a row by a part of its name: "the Lund one" for Dr Lund."""
    return len(words[place]) > _SHORT and (
        words[max(0, place - 1)] == "the" or words[place + 1 : place + 2] == ["one"]
    )


@lru_cache(maxsize=4096)
def _words_of(name: str) -> list[str]:
    return key_of(name).split(" ")


def _by_missing_time(message: Message) -> Reference | None:
    found = next(iter(message.times), None)
    if found is None or not any(char.isdigit() for char in message.utterance.text[found.start : found.end]):
        return None
    places = message.places_of(found)
    why = say("no_row_at_time", time=found.reading.value)
    return None if _telling(message, places) else Reference([], frozenset(places), why)


def _by_missing_name(message: Message) -> Reference | None:
    """Report a name without a matching row: "the SAS one". Slot values, as in "the morning one", are not names."""
    words = message.utterance.words
    end = words.index("one")
    first = next((place + 1 for place in range(end - 1, -1, -1) if words[place] == "the"), end)
    places = frozenset(range(first, end + 1))
    telling = _telling(message, set(places))
    if not 0 < end - first <= _MOST_OF_NAME or not message.requests.union(_NOUNS).issuperset(telling):
        return None
    named = [one for one in message.candidates if one.first < end and first < one.last]
    if not named or any(kind.startswith("value:") for one in named for kind in one.readings):
        return None
    return Reference([], places, say("no_row_named", what=message.utterance.surface(first, end)))


_WAYS: tuple[Callable[[Message], Reference | None], ...] = (_by_place, _by_comparison, _by_value)


def _nouns(message: Message) -> frozenset[str]:
    """Return nouns for the displayed rows, from their flow's name: "the TAP flight"."""
    words = frozenset(message.shown.dact.split("_"))
    return words | {word.removesuffix("s") for word in words}


def _telling(message: Message, places: set[int]) -> list[str]:
    """Return the distinctive words outside a reference, which do more than request a row."""
    nouns = _nouns(message) | _NOUNS | _COUNTED | message.requests
    return [
        word
        for place, word in enumerate(message.utterance.words)
        if place not in places and word.isalnum() and word not in _FILLER and word not in nouns
    ]


_REQUESTS = word_set("book reserve buy get order select")


def understand_reference(
    found: Reference,
    message: Message,
    context: NluContext,
    flows: Mapping[Dact, FlowSpec],
    likely: Sequence[FlowScore],
) -> Understanding | None:
    """Fill the row into the active flow if this flow takes the row, or else into another flow that does."""
    key, active, text = message.shown.key, context.active, message.utterance.text
    rows = [row[key] for row in found.rows]
    mention = Mention(rows[0], text) if len(rows) == 1 else Mention(None, text, tuple(rows), found.why)
    if active is not None and takes(active, key):
        kind = MessageKind.CORRECTION if key in context.values or mention.invalid else MessageKind.SLOT_VALUE
        return Understanding(kind, Source.SYSTEM1, text, active.intent, slots={key: mention})
    shown = flows.get(message.shown.dact)
    named = [score.dact for score in likely if takes(flows[score.dact], key)]
    next_ones = [
        dact for dact in (shown.edge_flows if shown else ()) if dact in flows and takes(flows[dact], key)
    ]
    deeds = _DEEDS.intersection(_telling(message, set(found.places)))
    if deeds:  # "cancel the first one" only fits a flow that cancels
        target = next((dact for dact in (*named, *next_ones) if _explains(flows[dact], deeds)), None)
    else:
        target = next(iter((*(dact for dact in named if dact in next_ones), *next_ones)), None)
    if target is None:
        return None
    spec = flows[target]
    return Understanding(
        MessageKind.TASK, Source.SYSTEM1, text, spec.intent, (FlowScore(target, 1.0),), {key: mention}
    )


_DEEDS = word_set("cancel delete remove drop undo refund change modify move add rename forget")
"""Verbs that request one specific action."""


def _explains(flow: FlowSpec, deeds: frozenset[str]) -> bool:
    """Return whether an example of the flow contains any of these verbs."""
    return any(not deeds.isdisjoint(example.casefold().split()) for example in flow.examples)


def takes(flow: FlowSpec, key: str) -> bool:
    return key in flow.slots or key in flow.inputs
