"""Search for faults that break a domain's conversations: first single faults, then combinations."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from random import Random

from lab.faults.judge import Finding, judge
from lab.faults.nonsense import list_nonsense
from lab.faults.ports import BY_ITS_KEY, EVERY, HELP, Fault
from lab.faults.running import NEVER_MIND, Heard, Workers
from lab.faults.sound import Sound, Sounds
from orchestrator.domain.evaluations import ConversationEntry, FaultKind
from orchestrator.domain.model import Domain
from parley.output import progress

AS_IT_IS = "as it is"
_OWN = frozenset({"journal", "commit"})
"""Places inside the runtime. The only fault injected there is the death of a worker."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    conversation: ConversationEntry
    faults: tuple[Fault, ...]

    @property
    def needs_model(self) -> bool:
        return any(fault.kind is FaultKind.NONSENSE for fault in self.faults)


@dataclass(slots=True)
class Found:
    """A finding with its shortest case. `times`: number of similar findings, including this one."""

    finding: Finding
    case: Case
    transcript: list[str]
    times: int = 1

    @property
    def likeness(self) -> tuple[str, ...]:
        """The key that similar findings share: breach, first word of the description, and kinds of faults."""
        about = self.finding.why.split(" ")[0]
        return (
            self.finding.breach,
            "" if about.startswith("“") else about,
            *sorted(one.kind for one in self.case.faults),
        )


@dataclass(slots=True)
class Share:
    """The results of one process. `taken`: number of cases run. `by_kind`: number of injected faults by kind."""

    taken: int = 0
    by_kind: dict[str, int] = field(default_factory=dict[str, int])
    found: dict[tuple[str, ...], Found] = field(default_factory=dict[tuple[str, ...], Found])

    def add(self, found: Found) -> None:
        """Add a finding. Among similar findings, only the shortest case is kept."""
        known = self.found.get(found.likeness)
        if known is None:
            self.found[found.likeness] = found
            return
        known.times += found.times
        if len(found.case.conversation.turns) < len(known.case.conversation.turns):
            known.finding, known.case, known.transcript = found.finding, found.case, found.transcript

    def join(self, other: Share) -> None:
        self.taken += other.taken
        for kind, count in other.by_kind.items():
            self.by_kind[kind] = self.by_kind.get(kind, 0) + count
        for found in other.found.values():
            self.add(found)


async def try_case(sounds: Sounds, case: Case) -> tuple[list[Finding], list[Heard]]:
    sound = await sounds.of(case.conversation, with_model=case.needs_model)
    talk = await sounds.workers.take(
        case.conversation,
        case.faults,
        with_model=case.needs_model,
        goes_on=lambda course: sound.is_as_planned(course, case.faults),
    )
    findings = await judge(talk, sounds, sound, case.faults)
    return findings, talk.course.heard


def list_faults(sound: Sound, domain: Domain, others: Sequence[str], chance: Random) -> Iterator[Fault]:
    """Yield the faults to inject into a conversation.

    `sound`: the conversation's outcome without faults. `others`: unrelated messages to insert.
    """
    script = sound.course.script
    for heard in script:
        turn = heard.at
        for place in sound.course.places.get(turn, ()):
            yield from _list_at(place, turn, domain)
        yield Fault(FaultKind.OTHER_WORKER, turn, "")
        yield Fault(FaultKind.DOUBLED, turn, BY_ITS_KEY)
        before = script[turn - 2] if turn > 1 else None
        if before is not None and (before.is_open or heard.said.startswith("[")):
            yield Fault(FaultKind.DOUBLED, turn, AS_IT_IS)
        if before is not None:
            for words in (NEVER_MIND, *others):
                yield Fault(FaultKind.ASIDE, turn, words)
        for earlier in script[: turn - 1]:
            yield from _list_stale(earlier, heard)
        if not heard.said.startswith("["):
            for nonsense in list_nonsense(heard.tasks, before.tasks if before else {}, domain, chance):
                yield Fault(FaultKind.NONSENSE, turn, nonsense)


def _list_at(place: str, turn: int, domain: Domain) -> Iterator[Fault]:
    name = place.split(" ", maxsplit=1)[0]
    yield Fault(FaultKind.WORKER_DEATH, turn, f"after {place}")
    if name in domain.tools or name == "commit":
        yield Fault(FaultKind.WORKER_DEATH, turn, f"before {place}")
    if name in _OWN:
        return
    yield Fault(FaultKind.TIME_OUT, turn, place)
    yield Fault(FaultKind.LOST_ANSWER, turn, place)
    if place == name:
        yield Fault(FaultKind.TIME_OUT, turn, EVERY + place)
    if name in domain.tools:
        for moment in (f"before {place}", f"after {place}"):
            yield Fault(FaultKind.INTERRUPTED, turn, moment)
            for words in (NEVER_MIND, HELP):
                yield Fault(FaultKind.INTERJECTED, turn, f"{moment}: {words}")


def _list_stale(earlier: Heard, heard: Heard) -> Iterator[Fault]:
    """Yield clicks on actions that the turn `earlier` offers and the turn `heard` doesn't."""
    for action in earlier.actions:
        if "flow_id" in action["payload"] and action not in heard.actions:
            yield Fault(FaultKind.STALE_CLICK, heard.at, f"{action['name']} of turn {earlier.at}")


def list_cases(
    conversations: Mapping[str, ConversationEntry],
    sounds: Mapping[str, Sound],
    domain: Domain,
    *,
    seed: int,
    budget: int,
    kinds: Collection[FaultKind],
) -> list[Case]:
    """Return up to `budget` cases: single faults in random order, then combinations of two or three faults."""
    chance = Random(seed)
    questions = [
        conversation.turns[0].user
        for name, conversation in conversations.items()
        if conversation.turns
        and conversation.turns[0].user
        and not (sounds[name].course.script[0].is_open or sounds[name].effects & sounds[name].done_in(1))
    ]
    by_name = {
        name: [
            fault
            for fault in list_faults(sound, domain, chance.sample(questions, min(1, len(questions))), chance)
            if fault.kind in kinds
        ]
        for name, sound in sounds.items()
    }
    cases = [
        Case(name, conversations[name], (fault,)) for name, faults in by_name.items() for fault in faults
    ]
    chance.shuffle(cases)
    names = [name for name, faults in by_name.items() if len(faults) > 1]
    while names and len(cases) < budget:
        name = chance.choice(names)
        faults = chance.sample(by_name[name], chance.choice((2, 2, 3)))
        if len({(fault.kind, fault.turn) for fault in faults}) == len(faults):
            cases.append(Case(name, conversations[name], tuple(sorted(faults, key=lambda one: one.turn))))
    return cases[:budget]


@dataclass(frozen=True, slots=True)
class Search:
    """A search for faults that break conversations. It runs at most `budget` cases.

    `conversations`: conversations by name. `seed`: determines the cases and their order. `kinds`: kinds of faults
    to inject.
    """

    workers: Workers
    conversations: Mapping[str, ConversationEntry]
    seed: int = 0
    budget: int = 1500
    kinds: Collection[FaultKind] = tuple(FaultKind)

    async def look(self, part: slice = slice(None)) -> Share:
        with progress("faults") as counted:
            return await self._look(part, counted)

    async def _look(self, part: slice, counted: Callable[[int, int], None]) -> Share:
        sounds, share = Sounds(self.workers), Share()
        cases = list_cases(
            self.conversations,
            {name: await sounds.of(one) for name, one in self.conversations.items()},
            self.workers.loaded.domain,
            seed=self.seed,
            budget=self.budget,
            kinds=self.kinds,
        )[part]
        for case in cases:
            findings, heard = await try_case(sounds, case)
            share.taken += 1
            for fault in case.faults:
                share.by_kind[fault.kind.value] = share.by_kind.get(fault.kind.value, 0) + 1
            if findings:
                _keep(share, case, findings[0], heard)
            counted(share.taken, len(cases))
        await self.workers.close()
        return share


def _keep(share: Share, case: Case, finding: Finding, heard: list[Heard]) -> None:
    share.add(Found(finding, case, [line for one in heard for line in (f"> {one.said}", one.reply)]))


_given: list[Search] = []
"""The search of a child process, empty in the parent process."""


def look_everywhere(search: Search, processes: int | None = None) -> Share:
    """Run all cases in child processes, which inherit the trained classifier. `processes`: None for one per core."""
    count = processes or os.cpu_count() or 1
    parts = [slice(first, None, count) for first in range(count)]
    whole = Share()
    with ProcessPoolExecutor(
        count, multiprocessing.get_context("fork"), initializer=_given.append, initargs=(search,)
    ) as pool:
        for share in pool.map(_look_at, parts):
            whole.join(share)
    return whole


def _look_at(part: slice) -> Share:
    logging.disable()  # failures are expected here
    return asyncio.run(_given[0].look(part))
