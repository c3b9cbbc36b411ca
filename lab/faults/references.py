"""Check references: “them”, “it” and “that” must refer to the last display.

Therefore, a turn must have the same effects in a conversation without the earlier displays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lab.faults.ports import Fault
from lab.faults.running import Course, Heard, Talk
from lab.faults.sound import Sound, Sounds
from orchestrator.domain.evaluations import ConversationEntry, FaultKind, TurnEntry


def find_strayed(course: Course, sound: Sound, faults: Sequence[Fault]) -> Iterable[Heard]:
    """Yield turns that had effects after a different display than in `sound`, and did not answer a question."""
    misheard = {fault.turn for fault in faults if fault.kind is FaultKind.NONSENSE}
    for one in course.script:
        before = course.heard[course.heard.index(one) - 1]
        answers = one.at > 1 and before.is_open and sound.course.script[one.at - 2].is_open
        seen = course.seen_before(one)
        did = one.at not in misheard and course.effects_in(one.at)
        if seen and did and not answers and not sound.is_seen(seen, one.at):
            yield one


async def find_unmeant(
    talk: Talk, sounds: Sounds, sound: Sound, line: Heard, faults: Sequence[Fault]
) -> list[str]:
    """Return the effects that the turn `line` doesn't have in a conversation without some earlier displays.

    If it has no effects in any such conversation, return its effects that the script doesn't request.
    """
    course, with_model = talk.course, any(fault.kind is FaultKind.NONSENSE for fault in faults)
    seen, did = course.seen_before(line), course.effects_in(line.at)
    assert seen is not None
    unasked = set[str]()
    for conversation, misheard, place in _list_shorter(talk.conversation, course, line, faults):
        shorter = await sounds.of(conversation, misheard, with_model=with_model)
        if shorter.mask(seen.reply) != shorter.replies[place - 1]:
            continue
        if meant := {shorter.name(call) for call in shorter.course.effects_in(len(conversation.turns))}:
            return sorted({shorter.name(call) for call in did} - meant)
        unasked = {sound.name(call) for call in did} - sound.lasting
    return sorted(unasked)


def _list_shorter(
    conversation: ConversationEntry, course: Course, line: Heard, faults: Sequence[Fault]
) -> Iterator[tuple[ConversationEntry, list[Fault], int]]:
    """Yield conversations that end with `line` and lack some earlier turns, the shortest first.

    Each conversation comes with the faults of its misinterpreted turns, and the number of the turn with the last
    display. Turns are kept if they are open, answer an open turn, or changed the store.
    """
    heard = [one for one in course.heard[: course.heard.index(line) + 1] if one.status == "done"]
    seen = course.seen_before(line)
    if (
        seen not in heard
        or line not in heard
        or any(one.said.startswith("[") and not one.at for one in heard)
    ):
        return
    kept = {
        at
        for at, one in enumerate(heard)
        if one in (seen, line)
        or one.is_open
        or (at and (heard[at - 1].is_open or one.store != heard[at - 1].store))
    }
    dropped = [at for at in range(heard.index(seen)) if at not in kept]
    while dropped:
        chosen = [heard[at] for at in sorted(kept)]
        turns = [conversation.turns[one.at - 1] if one.at else TurnEntry(user=one.said) for one in chosen]
        misheard = [
            Fault(fault.kind, turn, fault.at)
            for turn, one in enumerate(chosen, start=1)
            for fault in faults
            if fault.kind is FaultKind.NONSENSE and fault.turn == one.at
        ]
        yield (
            conversation.model_copy(update={"turns": tuple(turns)}),
            misheard,
            1 + chosen.index(seen),
        )
        kept.add(dropped.pop())
