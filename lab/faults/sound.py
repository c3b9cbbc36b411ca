"""Determine the expected outcome and replies of a conversation from several runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import orjson

from lab.faults.ports import Call, Fault
from lab.faults.running import Course, Heard, Store, Workers
from orchestrator.domain.evaluations import ConversationEntry, FaultKind
from orchestrator.types import Json, JsonObject, is_list, is_object

_WORD = re.compile(r"[\w-]{16,}|\w+")
"""Pattern for a word, or a random token of at least 16 characters with hyphens, which counts as one word."""
_CHANGING = "…"
_IN_PIECES = re.compile(r"-*…(?:[-.]+…)*-*")
"""Pattern for a masked token whose number of parts varies, with hyphens or dots between them."""


class Sound:
    """The expected outcome of a conversation. `course`: the first run.

    `others`: further runs of the conversation. Words that differ between runs, such as IDs and times, are masked.
    """

    def __init__(self, course: Course, *others: Course) -> None:
        self.course = course
        self._stable = frozenset(_words_of(course)).intersection(*map(_words_of, others))
        self.replies = [self.mask(one.reply) for one in course.script]
        self.stores = [self.count(one.store) for one in course.script]
        self.lasting = {self.name(call) for call in course.done if call.lasting}
        self.effects = {self.name(call) for call in course.done if call.has_effect}
        self._outside = {self.name(call) for call in course.done if call.has_effect and not call.wrote}
        self._turned_down = [
            self.mask(one.reply)
            for one in course.script
            if any(action["name"] == "confirm" for action in one.actions) and not self.done_in(one.at + 1)
        ]
        self.most = Counter[str]()
        for store in self.stores:
            self.most |= store

    def mask(self, text: str) -> str:
        masked = _WORD.sub(lambda found: found[0] if found[0] in self._stable else _CHANGING, text)
        return _IN_PIECES.sub(_CHANGING, masked)

    def done_now(self, course: Course, turn: int) -> set[str]:
        """Return the turn's calls that took effect: they wrote records, or write none in a run without faults."""
        return {
            self.name(call)
            for call in course.done
            if call.turn == turn and (call.wrote or self.name(call) in self._outside)
        }

    def done_in(self, turn: int) -> set[str]:
        return {self.name(call) for call in self.course.done if call.lasting and call.turn == turn}

    def missing(self, course: Course) -> set[str]:
        """Return the requested calls with side effects that the course lacks."""
        store = self.count(course.store)
        wanted = self._outside if store == self.stores[-1] else self.effects
        return wanted - {
            self.name(call)
            for call in course.done
            if call.is_whole or (0 < call.turn <= len(self.stores) and store == self.stores[call.turn - 1])
        }

    def is_as_planned(self, course: Course, faults: Sequence[Fault]) -> bool:
        """Return True if an attentive user would continue the script.

        The user stops after an unexpected offer, an unanswered turn, or a misinterpreted message.
        """
        offers = _offers_of(course.heard[-1])
        if not course.script:
            return not offers
        last = course.script[-1]
        is_as_told = self.mask(last.reply) == self.replies[last.at - 1]
        is_misheard = any((one.kind, one.turn) == (FaultKind.NONSENSE, last.at) for one in faults)
        if last.status != "done" or (is_misheard and not is_as_told and not last.is_open):
            return False
        return not offers or (is_as_told and offers == _offers_of(last))

    def is_seen(self, seen: Heard | None, turn: int) -> bool:
        """Return True if `seen` shows the same data as the last display before `turn` in the run without faults."""
        wanted = self.course.seen_before(self.course.script[turn - 1])
        known = [None if one is None else self.mask(one.reply) for one in (seen, wanted)]
        return known[0] == known[1]

    def has_offered(self, heard: Heard) -> bool:
        """Return True if the reply ends with a reply from the run without faults."""
        return any(self.mask(heard.reply).endswith(reply) for reply in self.replies)

    def turns_down(self, reply: str) -> bool:
        """Return True if the reply contains an offer that the script's user declines."""
        return any(offer in self.mask(reply) for offer in self._turned_down)

    def name(self, call: Call) -> str:
        """Return a call's tool and arguments as text, with changing values masked."""
        return f"{call.tool} {self._write(call.arguments)}"

    def count(self, store: Store) -> Counter[str]:
        """Count identical documents in a store, with changing values masked."""
        return Counter(
            f"{collection} {self._write(document)}"
            for collection, documents in store.items()
            for document in documents.values()
        )

    def _write(self, value: Json) -> str:
        return orjson.dumps(self._mask_value(value)).decode()

    def _mask_value(self, value: Json) -> Json:
        if is_object(value):
            return sorted(
                ([self._mask_value(name), self._mask_value(part)] for name, part in value.items()), key=str
            )
        if is_list(value):
            return [self._mask_value(part) for part in value]
        words = _WORD.findall(str(value))
        return value if all(word in self._stable for word in words) else _CHANGING


def _offers_of(heard: Heard) -> list[JsonObject]:
    return [action for action in heard.actions if action["name"] in {"confirm", "approve"}]


def _words_of(course: Course) -> Iterable[str]:
    for one in course.heard:
        yield from _WORD.findall(one.reply)
    for value in (*(call.arguments for call in course.done), *(one.store for one in course.heard)):
        yield from _words_in(value)


def _words_in(value: Json) -> Iterable[str]:
    if is_object(value):
        for name, part in value.items():
            yield from _WORD.findall(name)
            yield from _words_in(part)
    elif is_list(value):
        for part in value:
            yield from _words_in(part)
    else:
        yield from _WORD.findall(str(value))


class Sounds:
    """The expected outcomes of conversations, each computed once."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._known: dict[str, Sound] = {}

    async def of(
        self, conversation: ConversationEntry, faults: Sequence[Fault] = (), *, with_model: bool = False
    ) -> Sound:
        """Return a conversation's outcome from four runs at two paces, because two runs can be equal by chance.

        `faults`: faults to inject in each run. `with_model`: True to interpret messages with a `NonsensePool`.
        """
        key = f"{with_model} {faults} {conversation.model_dump_json()}"
        if key not in self._known:
            taken = [
                await self.workers.take(conversation, faults, with_model=with_model, is_later=is_later)
                for is_later in (False, True, True, False)
            ]
            self._known[key] = Sound(*(talk.course for talk in taken))
        return self._known[key]
