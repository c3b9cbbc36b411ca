from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random

from lab.evaluation.conversations import Evaluated, Outcome, TurnOutcome, observe
from lab.simulation.goals import Goal, Stock, Twist
from lab.simulation.judge import Judge, Records
from lab.simulation.model_user import ModelUser
from lab.simulation.user import GrammarUser, Move, Purpose, User
from orchestrator.errors import InvalidInput
from orchestrator.res.markup import to_plain
from orchestrator.telemetry import SignalType
from orchestrator.types import DEFAULT_TENANT, JsonObject
from parley.simulator import START, Simulator

FILE = "simulated"
MOST_TURNS = 16
"""Maximum number of turns per goal, after which the user abandons the goal."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """The number of conversations to simulate, and their random seed."""

    count: int
    seed: int = 0


async def simulate(
    evaluated: Evaluated,
    simulated: Simulated,
    notice: Callable[[str], None] = lambda _line: None,
    counted: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Outcome]:
    """Run simulated conversations, whose goals cycle through the domain's flows.

    If the assistant has a model, the model also plays the user. `notice`: called with each message for the author.
    `counted`: called with the number of finished conversations and the total. Raises InvalidInput if no flow can be
    a goal.
    """
    domain, models = evaluated.loaded.domain, evaluated.models
    stock = Stock(domain, START.date(), has_model=models is not None)
    for sentence in stock.without:
        notice(sentence)
    if not stock.flows:
        raise InvalidInput(
            f"No goals can be drawn from {domain.name!r}: its flows need `examples`, and sample values for"
            " required slots.",
            field="target",
        )
    engineer = models.engineer(domain.config) if models is not None else None
    outcomes: list[Outcome] = []
    given_up = Counter[str]()
    for number in range(simulated.count):
        chance = Random(f"{simulated.seed} {number}")
        goals = stock.draw(stock.flows[number % len(stock.flows)], chance)
        name = f"{number + 1}. {', then '.join(map(str, goals))}"
        user = ModelUser(engineer, domain.config) if engineer is not None else GrammarUser(domain, chance)
        turns = await _converse(evaluated, user, goals, given_up)
        outcomes.append(Outcome(FILE, name, turns))
        counted(number + 1, simulated.count)
    for why, times in given_up.most_common():
        notice(f"{times} {'goal was' if times == 1 else 'goals were'} abandoned: {why}")
    return outcomes


async def _converse(
    evaluated: Evaluated, user: User, goals: Sequence[Goal], given_up: Counter[str]
) -> list[TurnOutcome]:
    if evaluated.reset is not None:
        await evaluated.reset()
    simulator = Simulator.of(
        evaluated.loaded, sections=evaluated.sections, models=evaluated.models, system1=evaluated.system1
    )
    talk = _Talk(simulator, user, given_up)
    try:
        for goal in goals:
            if goal.needs is None or goal.needs.is_reached:
                await talk.pursue(goal)
    finally:
        await simulator.close()
    return talk.turns


@dataclass(slots=True)
class _Pursuit:
    """A user's attempt to reach a goal.

    `flows`: names of flows that were predicted or started. `is_long`: True if the user stopped after `MOST_TURNS`.
    """

    turns: list[JsonObject] = field(default_factory=list[JsonObject])
    outcomes: list[TurnOutcome] = field(default_factory=list[TurnOutcome])
    flows: set[str] = field(default_factory=set[str])
    has_refused: bool = False
    is_long: bool = False


class _Talk:
    def __init__(self, simulator: Simulator, user: User, given_up: Counter[str]) -> None:
        self._simulator, self._user, self._given_up = simulator, user, given_up
        self._conversation = simulator.converse()
        self.turns: list[TurnOutcome] = []

    async def pursue(self, goal: Goal) -> None:
        judge, pursuit = Judge(self._simulator.loaded.domain, goal), _Pursuit()
        move = await self._user.begin(goal)
        while move is not None and not pursuit.is_long:
            await self._take(move, judge, pursuit)
            pursuit.has_refused = pursuit.has_refused or move.purpose is Purpose.REFUSE
            pursuit.is_long = len(pursuit.turns) >= MOST_TURNS
            move = await self._user.answer(pursuit.turns[-1])
        self.turns += pursuit.outcomes
        goal.is_reached = any(goal.flow.dact in turn["completed"] for turn in pursuit.turns)
        if goal.is_reached or (goal.twist is Twist.REFUSE and pursuit.has_refused):
            return
        why = self._excuse(goal, pursuit)
        if why:
            self._given_up[why] += 1
        else:
            self._blame(goal, pursuit)

    async def _take(self, move: Move, judge: Judge, pursuit: _Pursuit) -> None:
        seen, before = len(self._simulator.signals), deepcopy(self._records)
        turn = await self._conversation.say(move.text)
        signals = self._simulator.signals[seen:]
        observed = observe(turn, signals)
        pursuit.turns.append(turn)
        pursuit.outcomes.append(judge.judge(move, turn, observed, _find_new(before, self._records)))
        pursuit.flows |= {flow["dact"] for flow in turn["flows"]}
        predicted = [one.payload for one in signals if one.type is SignalType.PREDICTION]
        pursuit.flows |= {flow["dact"] for payload in predicted for flow in payload["flows"][:1]}

    def _excuse(self, goal: Goal, pursuit: _Pursuit) -> str:
        """Return the reason for a missed goal if the assistant is not at fault; otherwise, an empty string."""
        if self._user.is_speechless:
            return self._user.gave_up
        last = pursuit.turns[-1]
        if any(flow["reason"] == "awaiting_approval" for flow in last["flows"]):
            return "the flow is waiting for approval"
        failed = [
            tool["tool_id"] for turn in pursuit.turns for tool in turn["tools"] if tool["status"] != "ok"
        ]
        if failed:
            return f"{failed[-1]} failed"
        is_open = any(flow["dact"] == goal.flow.dact for flow in last["flows"])
        if goal.flow.dact in pursuit.flows and not is_open and not self._user.gave_up:
            return (
                f"{goal.flow.dact} was answered with “{to_plain(last['reply'] or '').partition(chr(10))[0]}”"
            )
        return ""

    def _blame(self, goal: Goal, pursuit: _Pursuit) -> None:
        """Add a fault to the first turn if the flow was never predicted or started, or else to the last turn."""
        if goal.flow.dact not in pursuit.flows and pursuit.outcomes:
            turn = pursuit.outcomes[0]
            turn.faults.append(f"flow is {turn.observed['flow']!r}, not {goal.flow.dact!r}")
        elif pursuit.outcomes:
            why = self._user.gave_up or (
                "it took too many turns" if pursuit.is_long else "no further question was asked"
            )
            pursuit.outcomes[-1].faults.append(f"{goal.flow.dact} is not completed: {why}")

    @property
    def _records(self) -> Records:
        records = self._simulator.records.get(DEFAULT_TENANT)
        return records.collections if records is not None else {}


def _find_new(before: Records, after: Records) -> Sequence[tuple[str, JsonObject]]:
    return [
        (collection, document)
        for collection, documents in after.items()
        for key, document in documents.items()
        if key not in before.get(collection, {})
    ]
