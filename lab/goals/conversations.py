"""Run conversations between simulated users and the real Agent, and judge each turn.

After each turn, the judge compares the changes to the store with the answer and the user's wishes. The judge does
not see the Agent's state.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any

from lab.goals.goal import Move, Store, Wish, World
from lab.goals.grammar import Grammar, Half
from lab.goals.readers import Listener, Reader, simulate
from lab.goals.user import User
from lab.goals.worlds import open_world
from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.dialogue.understanding import MessageKind, Source
from orchestrator.nlu.system1 import System1
from orchestrator.telemetry import Signal, SignalType
from orchestrator.types import JsonObject, SessionId, TenantId
from parley.simulator import START, Conversation, Simulator
from parley.testing.store import MemoryStore


class Fault(StrEnum):
    """Ways that a conversation can fail, worst first."""

    WRONG_DEED = "wrong action"
    UNTRUE = "false report"
    BROKEN = "broken turn"
    DEAD_END = "dead end"
    LOST = "lost request"


@dataclass
class Verdict:
    """The result of a conversation. `faults`: faults with reasons. `label`: the kind of the last wish."""

    seed: int
    faults: list[tuple[Fault, str]] = field(default_factory=list)
    transcript: list[str] = field(default_factory=list)
    turns: int = 0
    label: str = ""
    asked: int = 0
    """Number of NLU requests to a model."""
    misread: int = 0
    """Number of messages that the local classifier misinterpreted without asking a model."""

    @classmethod
    def read(cls, record: JsonObject) -> Verdict:
        fields: dict[str, Any] = {
            **record,
            "faults": [(Fault(fault), why) for fault, why in record["faults"]],
        }
        return cls(**fields)

    @property
    def worst(self) -> Fault | None:
        return min((fault for fault, _ in self.faults), key=list(Fault).index, default=None)


@dataclass
class Figures:
    verdicts: list[Verdict]

    def count(self, fault: Fault) -> int:
        return sum(any(one is fault for one, _ in verdict.faults) for verdict in self.verdicts)

    @property
    def reached(self) -> int:
        return sum(not verdict.faults for verdict in self.verdicts)

    def shortest(self, fault: Fault, most: int = 1) -> list[Verdict]:
        """Return up to `most` of the shortest conversations whose worst fault is `fault`, one per reason."""
        worst = sorted((one for one in self.verdicts if one.worst is fault), key=lambda one: one.turns)
        by_reason = {(one.label, _reason(one)): one for one in reversed(worst)}
        return sorted(by_reason.values(), key=lambda one: one.turns)[:most]

    def reasons(self, fault: Fault) -> list[tuple[str, int]]:
        return Counter(_reason(one) for one in self.verdicts if one.worst is fault).most_common()


def _reason(verdict: Verdict) -> str:
    worst = verdict.worst
    text = next(text for fault, text in verdict.faults if fault is worst)
    return re.sub(r"[{:].*", "…", mask_references(text))[:70]


def mask_references(text: str) -> str:
    # A booking reference is derived from the call's idempotency key, which differs between runs.
    return re.sub(r"\b(?=\w*\d)[A-Z0-9]{6}\b", "…", text, flags=re.IGNORECASE)


async def take(talk: Conversation, move: Move) -> JsonObject:
    if move.action is None:
        return await talk.say(move.text)
    return await talk.act(move.action["name"], move.action["payload"])


async def converse(simulator: Simulator, listener: Listener | None, world: World, seed: int) -> Verdict:
    """Run the conversation that the seed determines, on an empty store. Stop early at a wrong action or broken turn.

    `listener`: the scripted model, or None for only the local classifier.
    """
    chance = Random(seed)
    wishes = await world.invent_goal(chance)
    user = User(world, wishes, chance)
    simulator.now, simulator.store = START.timestamp(), MemoryStore(clock=simulator.store.clock)
    tenant = TenantId(f"tenant_{seed}")
    talk = Conversation(simulator, SessionId(f"session_{seed}"), tenant_id=tenant)
    verdict = Verdict(seed, transcript=[_describe(wish) for wish in wishes], label=wishes[-1].kind)
    if listener is not None:
        listener.chance = Random(seed)
    store: Store = {}
    move: Move | None = user.begin()
    while move is not None:
        if listener is not None:
            listener.expect(move)
        doing = user.current
        simulator.signals.clear()
        turn = await take(talk, move)
        verdict.turns += 1
        _judge_reading(verdict, move, simulator.signals)
        verdict.transcript += [
            f"> {move.text or _show_click(move)}",
            *(f"    {line}" for line in turn["reply"].split("\n")),
        ]
        after = await world.look(simulator.records.get(tenant))
        _judge_turn(verdict, world, turn, move, doing, (store, after), wishes)
        store = after
        if any(fault in {Fault.WRONG_DEED, Fault.BROKEN} for fault, _ in verdict.faults):
            break
        move = user.answer(turn)
    else:
        _judge_end(verdict, world, user, store)
    simulator.records.pop(tenant, None)
    return verdict


def _judge_reading(verdict: Verdict, move: Move, signals: Sequence[Signal]) -> None:
    """Count an NLU request to a model, or a misinterpretation by the local classifier."""
    read = next((one.payload for one in signals if one.type is SignalType.PREDICTION), None)
    if read is None or move.meaning is None:
        return
    kind, tasks = move.meaning["kind"], [flow["dact"] for flow in move.meaning["flows"]]
    taken = [flow["dact"] for flow in read["flows"][:1]]
    is_right = read["kind"] == kind and (kind != MessageKind.TASK or taken == tasks)
    verdict.asked += read["source"] == Source.SYSTEM2
    verdict.misread += read["source"] == Source.SYSTEM1 and not is_right


def _judge_turn(
    verdict: Verdict, world: World, turn: JsonObject, move: Move, doing: Wish | None,
    stores: tuple[Store, Store], wishes: Sequence[Wish],
) -> None:  # fmt: skip
    if turn["status"] != "done":
        verdict.faults.append((Fault.BROKEN, f"the turn is {turn['status']}"))
    effects = world.effects(*stores)
    for effect in effects:
        if not world.permits(effect, move.agreement, doing):
            verdict.faults.append((Fault.WRONG_DEED, f"{effect.kind} after “{move.purpose}”: {effect}"))
    seen = world.read(turn["reply"], turn["actions"])
    verdict.faults += [(Fault.UNTRUE, why) for why in world.untruths(seen, stores[1], wishes, effects)]


def _judge_end(verdict: Verdict, world: World, user: User, store: Store) -> None:
    if user.dead_end:
        verdict.faults.append((Fault.DEAD_END, user.dead_end))
    else:
        verdict.faults += [(Fault.LOST, why) for why in world.missing(user.wishes, store)]


async def hold(domain: str, reader: Reader, seeds: Iterable[int], half: Half = Half.SEEN) -> Figures:
    """Run one conversation per seed in a domain's world. Each process loads the domain only once."""
    world, loaded, system1 = open_world(domain, Grammar(domain, half))
    return await converse_all(world, loaded, system1, reader, seeds)


async def converse_all(
    world: World, loaded: LoadedDomain, system1: System1, reader: Reader, seeds: Iterable[int]
) -> Figures:
    async with simulate(loaded, system1, reader, world) as (simulator, listener):
        return Figures([await converse(simulator, listener, world, seed) for seed in seeds])


def _describe(wish: Wish) -> str:
    twists = ", ".join(f"{what} at {stage}" for stage, what in wish.twists)
    return f"# wants: {wish.kind} {wish.values}{' twists: ' + twists if twists else ''}"


def _show_click(move: Move) -> str:
    action = move.action or {}
    return f"[{move.purpose}: {action.get('label', action.get('name'))}]"
