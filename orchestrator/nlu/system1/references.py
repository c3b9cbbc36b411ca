"""References to displayed rows: "the second one", "number 2", "the cheapest", "the TAP one" (IR-5).

The manifest lists the fields that distinguish rows. The row goes to the active flow if that flow takes it. Otherwise,
it goes to a follow-up flow of the displayed table or, with a verb such as "cancel", to a flow for this verb.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from orchestrator.dialogue.records import Shown
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.domain.tool_schema import RowsSpec
from orchestrator.nlu.cues import asks_for_another
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.found import DATE, Candidate
from orchestrator.nlu.system1.extract.gazetteer import LISTED
from orchestrator.nlu.system1.extract.numbers import ORDINALS, find_numbers, small_number
from orchestrator.nlu.system1.extract.times import find_times
from orchestrator.nlu.system1.requests import request_verbs
from orchestrator.nlu.text import Utterance, find_phrase, is_excepted, key_of, word_at, word_set
from orchestrator.saying import Told, say
from orchestrator.types import Dact, Json, JsonObject, ToolId

_COUNTED = word_set("option number no row choice nr item entry")
_NOUNS = word_set("one ones option row choice item entry result")
_FILLER = word_set(
    "a an the i i'd i'll i've we we'd like want take choose pick go with for let's let us please no not yes ok okay "
    "rather actually instead prefer give me make it that this is on at of in to by from and then just s 's do have "
    "would could can you show what about how there any too much anything something which whichever sorry"
)
_BARE = word_set("please the i take want choose pick ok okay yes no rather")
"""Words that often surround the number of a row."""
_REQUESTS = word_set("book reserve buy get order select")
_DEEDS = word_set("cancel delete remove drop undo refund change modify move add rename forget")
"""Verbs that request one specific action."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Rows that a reference may mean. `places`: positions of the reference's words. `why`: why no row fits, or None."""

    rows: list[JsonObject]
    places: frozenset[int]
    why: Told | None = None


@dataclass(frozen=True)
class Message:
    """Inputs for resolving references.

    `current`: the key of the active flow's row, or None if the flow has no row. `candidates`: values
    found in the message. `flows`: flows that may take a row.
    """

    utterance: Utterance
    shown: Shown
    spec: RowsSpec
    current: Json
    candidates: Sequence[Candidate] = ()
    flows: Iterable[FlowSpec] = ()

    @cached_property
    def named(self) -> list[tuple[Json, set[int]]]:
        """Return the values in the message, each with the positions of its words."""
        found = (*find_times(self.utterance), *find_numbers(self.utterance))
        spans = [(one.reading.value, self.utterance.token_span(one.start, one.end)) for one in found]
        return [(value, set(range(*span))) for value, span in spans] + [
            (value, set(one.places))
            for one in self.candidates
            for reading in one.readings.values()
            for value in reading.values
        ]

    @cached_property
    def nouns(self) -> frozenset[str]:
        """Return nouns for the displayed rows, from their flow's name: "the TAP flight"."""
        words = frozenset(self.shown.dact.split("_"))
        return _NOUNS | _COUNTED | words | {word.removesuffix("s") for word in words}

    @cached_property
    def requests(self) -> frozenset[str]:
        """Return the words that users say to request a task for a row."""
        takers = [flow for flow in self.flows if takes(flow, self.shown.key)]
        said = [word for flow in takers for word in flow.dact.split("_")]
        return _REQUESTS.union(said, request_verbs(takers)) - _DEEDS

    def besides(self, places: Iterable[int]) -> list[str]:
        """Return the words outside `places`, a reference's positions, that do more than request a row."""
        known, inside = _FILLER | self.nouns | self.requests, set(places)
        words = enumerate(self.utterance.words)
        return [word for at, word in words if at not in inside and word.isalnum() and word not in known]


def find_reference(message: Message) -> Reference | None:
    """Return the rows that a message may refer to, or None if the message is long or contains no reference."""
    if len(message.utterance.words) > 12 or not message.shown.rows:
        return None
    return next((found for find in _WAYS if (found := find(message)) is not None), None)


def _by_place(message: Message) -> Reference | None:
    words, count = message.utterance.words, len(message.shown.rows)
    for place, word in enumerate(words):
        before, after = word_at(words, place - 1), word_at(words, place + 1)
        if is_excepted(words, place):
            continue  # "not the first one"
        if word in ORDINALS and after != "of" and (before == "the" or after in _NOUNS or len(words) <= 2):
            index = ORDINALS[word]
            if after.isalpha() and after not in _FILLER | message.nouns:
                continue
            days = [one for one in message.candidates if one.kind == DATE and one.first <= place < one.last]
            if days and ("on" in words[:place] or index >= count):
                continue  # "on the 7th"
            return _at(message, index if index >= 0 else count - 1, {place, place + 1})
        number = small_number(word)
        if number is not None and (before in _COUNTED or before == "#"):
            return _at(message, number - 1, {place - 1, place})
        others = (other for at, other in enumerate(words) if at != place and other.isalnum())
        if number is not None and word != "one" and _BARE.issuperset(others):
            return _at(message, number - 1, {place})
    return None


def _at(message: Message, index: int, places: set[int]) -> Reference:
    rows = message.shown.rows
    if 0 <= index < len(rows):
        return Reference([rows[index]], frozenset(places))
    return Reference([], frozenset(places), say("too_few_rows", count=len(rows)))


def _by_comparison(message: Message) -> Reference | None:
    words = message.utterance.words
    if message.spec.cues.isdisjoint(words):
        return None
    for name, field in message.spec.fields.items():
        for said in (field.less, field.more):
            for phrase in said:
                places = set(find_phrase(words, phrase.split()))
                if places and not is_excepted(words, min(places)) and not message.besides(places):
                    return _compare(message, name, phrase, places, is_less=said is field.less)
    return None


def _compare(message: Message, name: str, said: str, places: set[int], *, is_less: bool) -> Reference:
    """Resolve “cheaper” to the next row that is cheaper than the current row, and “cheapest” to the cheapest row.

    Without a current row, “cheaper” means the cheapest row, too.
    """
    rows = sorted((row for row in message.shown.rows if row.get(name) is not None), key=lambda row: row[name])
    ordered = rows if is_less else rows[::-1]
    now = next((row for row in rows if row.get(message.shown.key) == message.current), None)
    if said.rsplit(" ", maxsplit=1)[-1].endswith("est") or said.startswith("most ") or now is None:
        return Reference(ordered[:1], frozenset(places))
    beyond = [row for row in ordered if (row[name] < now[name] if is_less else row[name] > now[name])]
    return Reference(beyond[-1:], frozenset(places), None if beyond else say("no_row_is", what=said))


def _by_value(message: Message) -> Reference | None:
    """Return the rows with a value that the message contains, such as an airline, a time or a price."""
    words = message.utterance.words
    for name in message.spec.fields:
        hits = [(row, found) for row in message.shown.rows if (found := _places_of(message, row.get(name)))]
        places = {place for _, found in hits for place in found}
        if hits and not is_excepted(words, min(places)) and _DEEDS.issuperset(message.besides(places)):
            return Reference([row for row, _ in hits], frozenset(places))
    return None


def _places_of(message: Message, value: Json) -> set[int]:
    """Return the positions of a field's value: all its words, a word before a noun, or an equal parsed value."""
    words, key = message.utterance.words, key_of(value).split(" ") if isinstance(value, str) else []
    if places := set(find_phrase(words, key)):
        return places
    for place, word in enumerate(words[:-1]):
        if word in key and len(word) > 2 and words[place + 1] in message.nouns:
            return {place}  # “the ITA one” for ITA Airways
    for known, places in message.named:
        if value is not None and known == value:
            return places
    return set()


def _by_missing_name(message: Message) -> Reference | None:
    """Return a reference without rows for a name that no row has: "the SAS one".

    Slot values, as in "the morning one", are not names.
    """
    words = message.utterance.words
    end = words.index("one") if "one" in words else 0
    named = [one for one in message.candidates if one.last == end and words[one.first - 1] == "the"]
    if (
        not named
        or is_excepted(words, end, within=end)
        or any(kind.startswith(LISTED) for kind in named[0].readings)
    ):
        return None
    places = frozenset(range(named[0].first, end + 1))
    what = say("no_row_named", what=named[0].text)
    return None if message.besides(places) else Reference([], places, what)


_WAYS: tuple[Callable[[Message], Reference | None], ...] = (
    _by_place,
    _by_comparison,
    _by_value,
    _by_missing_name,
)


def list_others(
    utterance: Utterance,
    context: NluContext,
    flows: Mapping[Dact, FlowSpec],
    rows: Mapping[ToolId, RowsSpec],
) -> Understanding | None:
    """Interpret "is there a cheaper one?" about a single offer as a request to look up the alternatives."""
    active = context.active
    for flow in flows.values():
        spec = next((rows[use.tool_id] for use in flow.tools if use.tool_id in rows), None)
        if flow.family is not Family.READ or active is None or spec is None or spec.key not in active.slots:
            continue
        message = Message(utterance, Shown(flow.tools[0].tool_id, flow.dact, spec.key, [{}]), spec, None)
        asks_for_all = "all" in utterance.words and not message.nouns.isdisjoint(utterance.words)
        if asks_for_all or asks_for_another(utterance.text) or _by_comparison(message) is not None:
            slots = {name: Mention(context.values[name]) for name in flow.slots if name in context.values}
            return Understanding.of_task(flow, Source.SYSTEM1, utterance.text, slots)
    return None


def understand_reference(
    found: Reference,
    message: Message,
    context: NluContext,
    flows: Mapping[Dact, FlowSpec],
    likely: Sequence[FlowScore],
) -> Understanding | None:
    """Fill the row into the active flow or, if that flow doesn't take the row, into another flow.

    `likely`: the flows that the message probably requests. Return None if no flow takes the row.
    """
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
    deeds = _DEEDS.intersection(message.besides(found.places))
    if deeds:  # "cancel the first one" only fits a flow that cancels
        target = next((dact for dact in (*named, *next_ones) if deeds & request_verbs((flows[dact],))), None)
    else:
        target = next(iter((*(dact for dact in named if dact in next_ones), *next_ones)), None)
    if target is None:
        return None
    return Understanding.of_task(flows[target], Source.SYSTEM1, text, {key: mention})


def takes(flow: FlowSpec, key: str) -> bool:
    return key in flow.slots or key in flow.inputs
