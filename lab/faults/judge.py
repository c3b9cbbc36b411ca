"""Grade a conversation with faults by comparing it with the same conversation without faults.

The judge compares calls, stored documents and replies, but not flows, slots or states.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lab.faults.ports import Fault
from lab.faults.references import find_strayed, find_unmeant
from lab.faults.running import NEVER_MIND, Course, Heard, Talk
from lab.faults.sound import Sound, Sounds
from orchestrator.domain.evaluations import FaultKind
from orchestrator.turns.turn import TurnInput

_UNSURE = re.compile(r"can't tell|may have been done|\bI had\b|I sent this request|I've already")
"""Pattern for replies that leave the outcome open or report a partial outcome."""


class Breach(StrEnum):
    """Ways that a fault can break a conversation, worst first."""

    TWICE = "done twice"
    UNASKED = "done without a request"
    UNTRUE = "reported as done, but not done"
    UNTOLD = "done, but never reported"
    UNANSWERED = "message not answered"
    OTHER_WORDS = "different answer"
    ASTRAY = "documents differ from the request"
    DEAD_END = "cannot be completed"


@dataclass(frozen=True, slots=True)
class Finding:
    """A breach in a conversation. `turn`: number of the script's turn, or 0 for the whole conversation."""

    breach: Breach
    why: str
    turn: int = 0


async def judge(talk: Talk, sounds: Sounds, sound: Sound, faults: Sequence[Fault]) -> list[Finding]:
    """Grade the conversation `talk`. Then repeat unfinished requests.

    `sound`: the outcome of the same conversation without faults. `sounds`: computes outcomes of shorter conversations.
    """
    course = talk.course
    strayed = [*find_strayed(course, sound, faults)]
    turns = {one.at for one in strayed}
    found = [*_grade_store(course, sound, turns), *_grade_words(course, sound, faults)]
    found += [*_grade_answers(course, faults)]
    did_else = any(sound.name(call) not in sound.lasting for at in turns for call in course.effects_in(at))
    if (
        not found and not did_else
    ):  # if the user did something else, those effects have replaced the requested ones
        found += await _bring_to_its_end(talk, sound, faults)
    for line in strayed:
        seen = course.seen_before(line)
        for deed in await find_unmeant(talk, sounds, sound, line, faults):
            found.append(
                Finding(Breach.UNASKED, f"{deed}, although the reply was “{seen and seen.reply}”", line.at)
            )
    return sorted(found, key=lambda one: list(Breach).index(one.breach))


def _grade_answers(course: Course, faults: Sequence[Fault]) -> Iterable[Finding]:
    turns = {fault.turn for fault in faults if fault.kind in {FaultKind.INTERRUPTED, FaultKind.INTERJECTED}}
    stopped = {one.said for one in course.script if one.at in turns}
    for one in course.heard:
        if one.status != "done" and not (one.said in stopped and one.status == "cancelled"):
            yield Finding(Breach.UNANSWERED, f"the turn “{one.said}” is {one.status}", one.at)


def _grade_words(course: Course, sound: Sound, faults: Sequence[Fault]) -> Iterable[Finding]:
    """Yield findings about replies that contradict the effects or, with invisible faults, differ from `sound`."""
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
            yield Finding(Breach.UNTRUE, f"“{heard.reply}”, but {lacking[0]} is missing", heard.at)
        if now and was_told and not is_same and not _is_told(course, sound, heard, reply):
            yield Finding(Breach.UNTOLD, f"{min(now)}, but the reply is “{heard.reply}”", heard.at)


def _is_told(course: Course, sound: Sound, heard: Heard, reply: str) -> bool:
    since = course.heard[course.heard.index(heard) :]
    return any(_UNSURE.search(one.reply) for one in since) or any(
        reply in sound.mask(one.reply) for one in since
    )


def _grade_store(course: Course, sound: Sound, strayed: Collection[int] = ()) -> Iterable[Finding]:
    """Yield findings about documents and calls that differ from the requests.

    `strayed`: turns that are graded separately, because they refer to a different display.
    """
    store = sound.count(course.store)
    done = {sound.name(call) for call in course.done if call.lasting and call.is_whole}
    called = {sound.name(call) for call in course.done if call.has_effect and call.turn not in strayed}
    unasked = sorted(called - sound.lasting)
    yield from (Finding(Breach.UNASKED, deed) for deed in unasked)
    is_else = any(call.lasting and sound.name(call) not in sound.lasting for call in course.done)
    for document, count in store.items():
        if 0 < sound.most[document] < count:
            yield Finding(Breach.TWICE, f"{document}: {count} times")
            return
    final = sound.stores[-1]
    if not is_else and done == sound.lasting and store != final:
        more = sorted((store - final).elements()) or sorted((final - store).elements())
        breach = Breach.TWICE if sum(store.values()) > sum(final.values()) else Breach.ASTRAY
        yield Finding(breach, f"unexpected: {more[0]}")


async def _bring_to_its_end(talk: Talk, sound: Sound, faults: Sequence[Fault]) -> list[Finding]:
    """Answer open questions, then repeat unfinished requests if that is safe.

    Return findings if a repeated request has no side effect, or more than one.
    """
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
        return []  # repeating a partly completed task would repeat its completed part
    if first is not None:
        await talk.say_again(first)
        await _answer_what_is_asked(talk, sound)
    missing = sound.missing(course)
    if missing:
        return [Finding(Breach.DEAD_END, f"{min(missing)}; last reply: “{course.heard[-1].reply}”")]
    return [*_grade_store(course, sound)]


async def _answer_what_is_asked(talk: Talk, sound: Sound, *, is_misheard: bool = False) -> None:
    """Answer up to three offers: confirm requested ones while effects are missing, and decline all others.

    `is_misheard`: True to treat offers that the script doesn't contain as not requested.
    """
    for _ in range(3):
        last = talk.course.heard[-1]
        is_other = sound.turns_down(last.reply) or (is_misheard and not sound.has_offered(last))
        wanted = "confirm" if sound.missing(talk.course) and not is_other else "deny"
        action = next((one for one in last.actions if one["name"] == wanted), None)
        if action is None:
            return
        await talk.submit(TurnInput(action={"name": wanted, "payload": action["payload"]}))


def _first_to_say(course: Course, sound: Sound, missing: set[str]) -> int | None:
    """Return the number of the script's first turn to repeat.

    This turn starts the first task that differs from the run without faults. Return None if nothing is missing, or if
    some effects from this turn on are already done.
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
    last = course.seen_before()
    while begun > 1 and not sound.is_seen(last, begun) and not sound.done_in(begun - 1) & sound.effects:
        begun -= 1  # repeat the turn whose display this turn refers to
    later = {
        name for at in range(begun, len(sound.replies) + 1) for name in sound.done_in(at)
    } & sound.effects
    return begun if missing and later <= missing else None
