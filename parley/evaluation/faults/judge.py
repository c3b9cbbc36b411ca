"""Judge a conversation in which something went wrong by the same one without: effects, endings, and what was told.

Nothing is known here of flows, slots or states: only calls that came out, documents in the store, and words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import orjson

from orchestrator.domain.evaluations import ConversationEntry, FaultKind
from orchestrator.turns.turn import TurnInput
from orchestrator.types import Json, JsonObject, is_list, is_object
from parley.evaluation.faults.ports import Call, Fault
from parley.evaluation.faults.running import NEVER_MIND, Course, Heard, Store, Talk, Workers

_WORD = re.compile(r"\w+")
_CHANGING = "…"
_IN_PIECES = re.compile(r"-*…(?:[-.]+…)*-*")
"""A token whose signs differ from run to run, and with them how many words it seems to be."""
_UNSURE = re.compile(r"cannot tell|may have been done|\bI had\b|I have already")
"""Words that leave open what was done, or tell of a part of it."""


class Breach(StrEnum):
    """What must not come of a fault, worst first."""

    TWICE = "done twice"
    UNASKED = "done without having been asked for"
    UNTRUE = "told as done, and not done"
    UNTOLD = "done, and never told"
    UNANSWERED = "a message that is not answered"
    OTHER_WORDS = "another answer"
    ASTRAY = "other documents than were asked for"
    DEAD_END = "cannot be brought to its end any more"


@dataclass(frozen=True, slots=True)
class Finding:
    """`turn`: of the script; 0 where it is about the whole."""

    breach: Breach
    why: str
    turn: int = 0


class Sound:
    """What comes of a conversation when nothing goes wrong: taken several times, since identifiers and times differ."""

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
        """Write a text without the words that are others in each run."""
        masked = _WORD.sub(lambda found: found[0] if found[0] in self._stable else _CHANGING, text)
        return _IN_PIECES.sub(_CHANGING, masked)

    def done_now(self, course: Course, turn: int) -> set[str]:
        """Name what a turn did; what is to write and has not written was not done."""
        return {
            self.name(call)
            for call in course.done
            if call.turn == turn and (call.wrote or self.name(call) in self._outside)
        }

    def done_in(self, turn: int) -> set[str]:
        """Name what the turn of the script does that lasts."""
        return {self.name(call) for call in self.course.done if call.lasting and call.turn == turn}

    def missing(self, course: Course) -> set[str]:
        """Name what is asked for and not done: of what writes nothing here, else until the documents are there."""
        store = self.count(course.store)
        wanted = self._outside if store == self.stores[-1] else self.effects
        return wanted - {
            self.name(call)
            for call in course.done
            if call.is_whole or (0 < call.turn <= len(self.stores) and store == self.stores[call.turn - 1])
        }

    def is_as_planned(self, course: Course, faults: Sequence[Fault]) -> bool:
        """Say whether a user who reads goes on: not past another offer than was to come, nor a stopped turn, nor
        when something else was done than they said.
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

    def has_offered(self, heard: Heard) -> bool:
        """Say whether an answer makes an offer that was to be made, in the words in which it was to come."""
        return any(self.mask(heard.reply).endswith(reply) for reply in self.replies)

    def turns_down(self, reply: str) -> bool:
        """Say whether an answer makes an offer that the user goes past without a yes."""
        return any(offer in self.mask(reply) for offer in self._turned_down)

    def name(self, call: Call) -> str:
        """Name a call by its tool and arguments."""
        return f"{call.tool} {self._write(call.arguments)}"

    def count(self, store: Store) -> Counter[str]:
        """Count the documents of a store that are alike."""
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
    """What comes of conversations in which nothing goes wrong; each is looked at once."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._known: dict[str, Sound] = {}

    async def of(self, conversation: ConversationEntry, *, with_model: bool = False) -> Sound:
        """Take a conversation several times: what is alike in two of them may be so by chance."""
        key = f"{with_model} {conversation.model_dump_json()}"
        if key not in self._known:
            taken = [
                await self.workers.take(conversation, with_model=with_model, is_later=is_later)
                for is_later in (False, True, True, False)
            ]
            self._known[key] = Sound(*(talk.course for talk in taken))
        return self._known[key]


async def judge(talk: Talk, sound: Sound, faults: Sequence[Fault]) -> list[Finding]:
    """Say what is wrong with a conversation; its user says again what did not come to its end."""
    course = talk.course
    found = [*_judge_store(course, sound), *_judge_words(course, sound, faults)]
    found += [*_judge_answers(course, faults)]
    if not found:
        found += await _bring_to_its_end(talk, sound, faults)
    return sorted(found, key=lambda one: list(Breach).index(one.breach))


def _judge_answers(course: Course, faults: Sequence[Fault]) -> Iterable[Finding]:
    turns = {fault.turn for fault in faults if fault.kind in {FaultKind.INTERRUPTED, FaultKind.INTERJECTED}}
    stopped = {one.said for one in course.script if one.at in turns}
    for one in course.heard:
        if one.status != "done" and not (one.said in stopped and one.status == "cancelled"):
            yield Finding(Breach.UNANSWERED, f"the turn “{one.said}” is {one.status}", one.at)


def _judge_words(course: Course, sound: Sound, faults: Sequence[Fault]) -> Iterable[Finding]:
    """Hold what was told against what was done, turn by turn."""
    invisible = all(fault.is_invisible for fault in faults)
    as_told = True
    for heard, reply, store in zip(course.script, sound.replies, sound.stores, strict=False):
        was_told, is_same = as_told, sound.mask(heard.reply) == reply
        as_told = as_told and is_same
        wanted = sound.done_in(heard.at)
        done = {sound.name(call) for call in course.done if 0 < call.turn <= heard.at}
        now = sound.effects & sound.done_now(course, heard.at)
        if invisible and not is_same:
            yield Finding(Breach.OTHER_WORDS, f"“{heard.reply}” instead of “{reply}”", heard.at)
        lacking = sorted(wanted - done) or sorted((store - sound.count(heard.store)).elements())
        if wanted and as_told and lacking:
            yield Finding(Breach.UNTRUE, f"“{heard.reply}”, and there is no {lacking[0]}", heard.at)
        if now and was_told and not is_same and not _is_told(course, sound, heard, reply):
            yield Finding(Breach.UNTOLD, f"{min(now)}, and what is told is “{heard.reply}”", heard.at)


def _is_told(course: Course, sound: Sound, heard: Heard, reply: str) -> bool:
    since = course.heard[course.heard.index(heard) :]
    return any(_UNSURE.search(one.reply) for one in since) or any(
        reply in sound.mask(one.reply) for one in since
    )


def _judge_store(course: Course, sound: Sound) -> Iterable[Finding]:
    """Hold what is in the store, and what was called, against what was asked for."""
    store = sound.count(course.store)
    done = {sound.name(call) for call in course.done if call.lasting and call.is_whole}
    unasked = sorted({sound.name(call) for call in course.done if call.has_effect} - sound.lasting)
    yield from (Finding(Breach.UNASKED, deed) for deed in unasked)
    is_else = any(call.lasting and sound.name(call) not in sound.lasting for call in course.done)
    for document, count in store.items():
        if 0 < sound.most[document] < count:
            yield Finding(Breach.TWICE, f"{count} times {document}")
            return
    final = sound.stores[-1]
    if not is_else and done == sound.lasting and store != final:
        more = sorted((store - final).elements()) or sorted((final - store).elements())
        breach = Breach.TWICE if sum(store.values()) > sum(final.values()) else Breach.ASTRAY
        yield Finding(breach, f"there is {more[0]}")


async def _bring_to_its_end(talk: Talk, sound: Sound, faults: Sequence[Fault]) -> list[Finding]:
    """Answer what is asked, then say again what was not done: it must come to what was asked for, once."""
    course = talk.course
    if not sound.missing(course):
        return []
    is_misheard = any(fault.kind is FaultKind.NONSENSE for fault in faults)
    await _answer_what_is_asked(talk, sound, is_misheard=is_misheard)
    missing = sound.missing(course)
    first = _first_to_say(course, sound, missing)
    gave_up = any(one.said in {"[deny]", NEVER_MIND} for one in course.heard)
    is_half = any(call.wrote and not call.is_whole and sound.name(call) in missing for call in course.done)
    if missing and (first is None or (is_half and gave_up)):
        return []  # a part of a task was done: to say it again would ask for that part twice
    if first is not None:
        await talk.say_again(first)
        await _answer_what_is_asked(talk, sound)
    missing = sound.missing(course)
    if missing:
        return [Finding(Breach.DEAD_END, f"{min(missing)}; told last: “{course.heard[-1].reply}”")]
    return [*_judge_store(course, sound)]


async def _answer_what_is_asked(talk: Talk, sound: Sound, *, is_misheard: bool = False) -> None:
    """Answer an offer by looking at what is there: a yes only where something is missing, and to no other offer."""
    for _ in range(3):
        last = talk.course.heard[-1]
        is_other = sound.turns_down(last.reply) or (is_misheard and not sound.has_offered(last))
        wanted = "confirm" if sound.missing(talk.course) and not is_other else "deny"
        action = next((one for one in last.actions if one["name"] == wanted), None)
        if action is None:
            return
        await talk.submit(TurnInput(action={"name": wanted, "payload": action["payload"]}))


def _first_to_say(course: Course, sound: Sound, missing: set[str]) -> int | None:
    """Find the task from which everything is to be said again: the first that did not go as without the fault.

    None where a part of what comes then is done already.
    """
    told = {
        one.at
        for one, reply in zip(course.script, sound.replies, strict=False)
        if sound.mask(one.reply) == reply
    }
    begun = 1
    for heard in sound.course.script:
        if heard.at not in told or sound.done_in(heard.at) & missing:
            break
        if not heard.is_open:
            begun = heard.at + 1
    later = {
        name for at in range(begun, len(sound.replies) + 1) for name in sound.done_in(at)
    } & sound.effects
    return begun if missing and later <= missing else None
