"""Random operations on a dialogue state, with its invariants."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeVar

from orchestrator.dialogue.changes.plan_steps import add_steps, drop_step, order_steps, stack_steps
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import ACTIVE, AWAITING_APPROVAL, FAILED, INTERRUPTED, FlowState
from orchestrator.dialogue.questions import AskSlot, ChooseTask, TryAgain, Unclear
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.stack import DepthLimit, Existing, LimitReached, OnLimit
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.storage.serialization import diff, rebuild
from orchestrator.types import FlowId, JsonObject, SessionId, TurnId
from tests.cases import parts
from tests.unit.dialogue.factories import CLASSES, FLOW_TYPES

Item = TypeVar("Item")
SNAPSHOT_DISTANCE = 20


def pick(items: Sequence[Item], number: int) -> Item:
    return items[number % len(items)]


class Driver:
    """A session with operations selected by numbers. `history`: the data that a store would keep."""

    def __init__(self) -> None:
        self.state = DialogueState.new(SessionId("session_1"))
        self.now = 0.0
        self.numbers = count()
        self.made: list[str] = []
        self.archived: list[str] = []
        self.completed_in_turn = 0
        self.history: list[tuple[str | None, str]] = []
        self.documents: list[str] = []
        self.stored: JsonObject = self.state.serialize()
        self.commit()

    def _make(self, cls: type[BaseFlow]) -> BaseFlow:
        return cls(self.now, flow_id=self._name())

    def _name(self) -> FlowId:
        return FlowId(f"flow_{next(self.numbers)}")

    def _entered(self, *flows: BaseFlow) -> None:
        self.made += [flow.flow_id for flow in flows]

    # Operations

    def push(self, number: int) -> None:
        flow = self._make(pick(CLASSES, number))
        before = self.state.stack.find(flow.dact)
        result = self.state.stack.push(flow, self.now, reason="asked")
        if isinstance(result, Existing):
            assert result.flow is before
        else:
            self._entered(flow)

    def push_limited(self, number: int) -> None:
        limit = DepthLimit(1 + number % 4, pick(tuple(OnLimit), number // 7))
        flow = self._make(pick(CLASSES, number))
        result = self.state.stack.push(flow, self.now, limit=limit)
        if isinstance(result, LimitReached):
            assert result.choices
            assert self.state.stack.get(flow.flow_id) is None
        elif not isinstance(result, Existing):
            self._entered(flow)
            assert len(self.state.stack.tasks()) <= limit.max_depth

    def plan(self, number: int) -> None:
        """Decompose or expand the top plan with up to four steps, whose dacts may already be on the stack."""
        if not isinstance(self.state.stack.active, PlanFlow):
            self.push(pick((-1, -2), number))
        active = self.state.stack.active
        if isinstance(active, PlanFlow):
            chosen = [pick(CLASSES, number // 3**step) for step in range(1 + number % 4)]
            add_steps(
                active,
                [PlanStep(self._name(), cls.spec.dact) for cls in chosen],
                after=() if number % 5 == 0 else None,
            )
            self._stack_steps(active)

    def restack(self, _: int = 0) -> None:
        """Stack the steps that had to wait, as the replanning check does after a step."""
        plan = self.state.stack.plan
        if plan is not None:
            self._stack_steps(plan)

    def replan(self, number: int) -> None:
        plan = self.state.stack.plan
        waiting = [] if plan is None else [step for step in plan.steps if step.is_planned]
        if plan is None or not waiting:
            return
        chosen = pick(waiting, number)
        if number % 2:
            assert drop_step(self.state.stack, plan, chosen, "no need", self.now, by_user=number % 3 == 0)
            assert chosen.is_finished
            self.pop()
        else:
            order_steps(plan, [chosen.name])
            unfinished = [step.name for step in plan.steps if not step.is_finished]
            assert unfinished[0] == chosen.name
        self._stack_steps(plan)

    def _stack_steps(self, plan: PlanFlow) -> None:
        """Stack the plan's steps, and track flows that enter the stack or leave it for later."""
        before = {flow.flow_id for flow in self.state.stack.flows}
        come = stack_steps(self.state.stack, plan, FLOW_TYPES, self.now, lambda _step, _flow: True)
        after = {flow.flow_id for flow in self.state.stack.flows}
        for name in before - after:
            self.made.remove(name)
        self.made += sorted(after - before)
        assert {flow.flow_id for flow in come} >= after - before

    def complete(self, number: int) -> None:
        active = self.state.stack.active
        if active is not None:
            self.state.stack.complete(active, self.now)
            self.completed_in_turn += 1
            if number % 2:
                self.pop()

    def cancel(self, number: int) -> None:
        live = self.state.stack.live()
        if live:
            self.state.stack.cancel(pick(live, number))

    def fail(self, _: int = 0) -> None:
        if self.state.stack.active is not None:
            self.state.stack.invalidate(self.state.stack.active, FAILED)

    def park(self, _: int = 0) -> None:
        if self.state.stack.active is not None:
            self.state.stack.park(self.state.stack.active, self.now)

    def approve(self, number: int) -> None:
        parked = [flow for flow in self.state.stack.flows if flow.status == AWAITING_APPROVAL]
        if parked:
            flow = pick(parked, number)
            self.state.stack.approve(flow, self.now)
            top = self.state.stack.top
            assert top is not None
            assert top.status == ACTIVE
            # A plan returns with its steps above it, and the top step continues.
            assert flow is top or flow.status == INTERRUPTED

    def unpark(self, number: int) -> None:
        parked = [flow for flow in self.state.stack.flows if flow.status == AWAITING_APPROVAL]
        if parked:
            self.state.stack.unpark(pick(parked, number), self.now)

    def resume(self, number: int) -> None:
        live = self.state.stack.live()
        if live:
            top = self.state.stack.resume(pick(live, number), self.now)
            assert top is self.state.stack.top

    def fall_back(self, number: int) -> None:
        active = self.state.stack.active
        target = pick(CLASSES, number)
        if active is not None and active.dact != target.spec.dact:
            name = self._name()
            new = self.state.stack.fall_back(target, self.now, flow_id=name)
            if new.flow_id == name:
                self._entered(new)
            assert active.state is FlowState.INVALID

    def abandon(self, number: int) -> None:
        for flow in self.state.stack.abandon(float(number % 500), self.now):
            assert flow.state is FlowState.INVALID

    def fill(self, number: int) -> None:
        active = self.state.stack.active
        if active is not None:
            values = {
                "date": f"2026-12-{1 + number % 40:02d}",
                "city": ["Rome"] * (number % 2),
                "stars": number % 7,
            }
            active.fill_slots_by_label({name: v for name, v in values.items() if name in active.spec.slots})
            active.note_turn(TurnId(f"turn_{number % 9}"))
            active.notes = {"seen": [{"n": number % 5}]}

    def ask(self, number: int) -> None:
        top = self.state.stack.top
        flow_id, slot = top.flow_id if top else None, pick(("a", None), number)
        kinds = (Unclear, ChooseTask, AskSlot, TryAgain)
        self.state.ambiguity.declare(pick(kinds, number)(flow_id=flow_id, slot=slot))
        assert self.state.ambiguity.ask() is not None

    def answer(self, _: int = 0) -> None:
        self.state.ambiguity.resolve()

    def talk(self, number: int) -> None:
        self.state.say("user", f"line {number}")
        self.state.history.trace.append({"n": number})

    def pop(self, _: int = 0) -> None:
        left = self.state.archive(self.state.stack.pop_finished(self.now))
        self.archived += [flow.flow_id for flow in left]
        for plan in (flow for flow in left if isinstance(flow, PlanFlow)):
            assert all(step.is_finished for step in plan.steps if step.flow_id in self.made)

    def wait(self, number: int) -> None:
        self.now += number % 100

    def commit(self, _: int = 0) -> None:
        """End a turn: prune the state, and store the diff and sometimes a snapshot."""
        self.state.turn += 1
        self.state.prune()
        after = self.state.serialize()
        patch = json.dumps(diff(self.stored, after))
        snapshot = self.completed_in_turn > 1 or len(self.history) % SNAPSHOT_DISTANCE == 0
        self.history.append((json.dumps(after) if snapshot else None, patch))
        self.documents.append(json.dumps(after, sort_keys=True))
        self.stored = json.loads(json.dumps(after))
        self.completed_in_turn = 0

    def reload(self, _: int = 0) -> None:
        """Let another worker take over the session."""
        self.commit()
        self.state = DialogueState.from_dict(self.stored, FLOW_TYPES)

    # Invariants

    def check(self) -> None:
        stack = self.state.stack
        assert stack.check() == []
        active = [flow for flow in stack.flows if flow.state is FlowState.ACTIVE]
        assert len(active) <= 1
        dacts = [(flow.plan_id, flow.dact) for flow in stack.live()]
        assert len(dacts) == len(set(dacts))
        assert len(self.state.completed) <= 10
        present = [flow.flow_id for flow in [*stack.flows, *stack.departed]]
        assert sorted(present + self.archived) == sorted(self.made)
        body = self.state.serialize()
        assert DialogueState.from_dict(body, FLOW_TYPES).serialize() == body

    def check_history(self) -> None:
        """Check that each earlier state can be rebuilt exactly from the nearest snapshot."""
        base: JsonObject = {}
        patches: list[JsonObject] = []
        for (snapshot, patch), document in zip(self.history, self.documents, strict=True):
            if snapshot is not None:
                base, patches = json.loads(snapshot), []
            else:
                patches.append(json.loads(patch))
            assert json.dumps(rebuild(base, patches), sort_keys=True) == document


NAMES = parts("""push | push_limited | plan | replan | restack | complete | cancel | fail | park | approve | unpark
    | resume | fall_back | abandon | fill | ask | answer | talk | pop | wait | commit | reload""")
OPERATIONS: dict[str, Callable[[Driver, int], None]] = {name: getattr(Driver, name) for name in NAMES}
