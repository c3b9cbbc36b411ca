"""The flow stack, which contains the flows in progress. At most one of them is Active (FS-8 … FS-13).

The Agent decides when the stack changes. `changes.plan_steps` adds the flows of plans.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from orchestrator.dialogue.flow import BaseFlow, PlanFlow, PlanStep
from orchestrator.dialogue.lifecycle import (
    ABANDONED,
    ACTIVE,
    AWAITING_APPROVAL,
    AWAITING_RESULT,
    CANCELLED,
    COMPLETED,
    ENDED,
    INTERRUPTED,
    MISPREDICTED,
    PARKED,
    PLAN_ABANDONED,
    PLANNED,
    FlowState,
    FlowStatus,
)
from orchestrator.errors import IllegalTransition
from orchestrator.types import FlowId, new_flow_id


class OnLimit(StrEnum):
    """Strategies for handling a flow that would exceed the domain's depth limit (FS-12)."""

    CANCEL_OLDEST = "cancel_oldest"
    REJECT_NEW = "reject_new"
    ASK_USER = "ask_user"


@dataclass(frozen=True, slots=True)
class DepthLimit:
    """A limit of `max_depth` tasks. A plan with all its flows counts as one task."""

    max_depth: int
    strategy: OnLimit = OnLimit.CANCEL_OLDEST


@dataclass(frozen=True, slots=True)
class Pushed:
    """The result if a flow was pushed. `cancelled`: tasks canceled to make room."""

    flow: BaseFlow
    cancelled: tuple[BaseFlow, ...] = ()


@dataclass(frozen=True, slots=True)
class Existing:
    """The result if a flow with the same name was already on the stack and was resumed instead (FS-10)."""

    flow: BaseFlow


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The result if the stack is full. `choices`: the open tasks. With `ask_user`, the user can cancel one of them."""

    strategy: OnLimit
    max_depth: int
    choices: tuple[BaseFlow, ...]


PushResult: TypeAlias = Pushed | Existing | LimitReached


@dataclass(slots=True)
class FlowStack:
    """Flows in progress, with the top last. `departed`: flows that left in this turn and are not archived yet."""

    flows: list[BaseFlow] = field(default_factory=list[BaseFlow])
    departed: list[BaseFlow] = field(default_factory=list[BaseFlow])

    def __len__(self) -> int:
        return len(self.flows)

    # Queries

    @property
    def top(self) -> BaseFlow | None:
        return self.flows[-1] if self.flows else None

    @property
    def active(self) -> BaseFlow | None:
        return self.flows[-1] if self.flows and self.flows[-1].status == ACTIVE else None

    def live(self) -> list[BaseFlow]:
        """Return the Pending and Active flows, with the top last."""
        return [flow for flow in self.flows if flow.status.state not in ENDED]

    def interrupted(self) -> list[BaseFlow]:
        """Return the flows that the user can resume, with the top last."""
        return [flow for flow in self.flows if flow.status == INTERRUPTED]

    def find(self, dact: str, *, outside_plans: bool = False) -> BaseFlow | None:
        """Return the Pending or Active flow with this name that is nearest to the top (FS-10), or None.

        There is at most one such flow outside plans, and one within each plan. `outside_plans`: True to ignore
        flows that serve plans.
        """
        alike = (flow for flow in reversed(self.flows) if flow.dact == dact and not flow.is_finished)
        return next((flow for flow in alike if flow.plan_id is None or not outside_plans), None)

    def get(self, flow_id: str | None) -> BaseFlow | None:
        """Return the flow with this ID in any state, or None."""
        return next((flow for flow in self.flows if flow.flow_id == flow_id), None)

    def plan_of(self, flow: BaseFlow) -> PlanFlow | None:
        """Return the Plan flow that this flow serves, or None if there is no such plan on the stack."""
        root = self.get(flow.plan_id) if flow.plan_id is not None else None
        return root if isinstance(root, PlanFlow) else None

    @property
    def plan(self) -> PlanFlow | None:
        """Return the running plan: the top flow if it is a plan; otherwise, the plan that it serves, or None."""
        top = self.top
        return top if top is None or isinstance(top, PlanFlow) else self.plan_of(top)

    def members(self, plan_id: str) -> list[BaseFlow]:
        """Return the flows that serve this plan, directly or through a nested plan, with the top last."""
        return [flow for flow in self.flows if plan_id in self._ancestry(flow)]

    def _ancestry(self, flow: BaseFlow) -> list[str]:
        """Return the IDs of the plans that this flow serves, nearest first."""
        plans: list[str] = []
        above: BaseFlow | None = flow
        while above is not None and above.plan_id is not None and above.plan_id not in plans:
            plans.append(above.plan_id)
            above = self.get(above.plan_id)
        return plans

    def root(self, flow: BaseFlow) -> BaseFlow:
        """Return the outermost plan that the flow serves, or the flow itself."""
        above = flow
        for plan_id in self._ancestry(flow):
            above = self.get(plan_id) or above
        return above

    def tasks(self) -> list[BaseFlow]:
        """Return the tasks that count toward the depth limit, bottom first. A plan with its flows is one task."""
        roots = {id(root): root for root in map(self.root, self.live()) if not root.is_finished}
        return list(roots.values())

    # Movement

    def push(
        self,
        flow: BaseFlow,
        now: float,
        *,
        reason: str = "",
        limit: DepthLimit | None = None,
        outside_plans: bool = False,
    ) -> PushResult:
        """Push a flow and activate it, interrupting the Active flow for `reason` (FS-9).

        If a flow with the same name is on the stack, that flow is resumed instead (FS-10); `outside_plans`
        ignores flows that serve plans (PL-8). If the stack is full, the limit's strategy applies (FS-12),
        except to flows that serve plans.
        """
        existing = self.find(flow.dact, outside_plans=outside_plans)
        if existing is not None:
            self.resume(existing, now, reason=reason)
            return Existing(existing)
        cancelled: tuple[BaseFlow, ...] = ()
        if limit is not None and flow.plan_id is None and len(self.tasks()) >= limit.max_depth:
            if limit.strategy is not OnLimit.CANCEL_OLDEST:
                return LimitReached(limit.strategy, limit.max_depth, tuple(self.tasks()))
            cancelled = tuple(self._make_room(limit.max_depth))
        self._interrupt(now, reason)
        self._enter(flow, ACTIVE, now)
        return Pushed(flow, cancelled)

    def _enter(self, flow: BaseFlow, status: FlowStatus, now: float) -> None:
        flow.status = status
        flow.started_at = now
        flow.interrupted_at = None if status == ACTIVE else now
        self.flows.append(flow)
        root = self.plan_of(flow)
        if root is not None and all(step.flow_id != flow.flow_id for step in root.steps):
            root.steps.append(PlanStep(flow.flow_id, flow.dact))
            root.revision += 1
        self.keep_step(flow)

    def _make_room(self, max_depth: int) -> list[BaseFlow]:
        cancelled: list[BaseFlow] = []
        while len(self.tasks()) >= max(max_depth, 1):
            oldest = min(self.tasks(), key=self._staleness)
            self.cancel(oldest)
            cancelled.append(oldest)
        return cancelled

    def _staleness(self, task: BaseFlow) -> tuple[bool, bool, float]:
        """Return a sort key: waiting tasks first, then tasks awaiting an approval or result, the Active task last."""
        statuses = {task.status} | {member.status for member in self.members(task.flow_id)}
        waits = not statuses.isdisjoint({AWAITING_APPROVAL, AWAITING_RESULT})
        return ACTIVE in statuses, waits, task.started_at

    def _interrupt(self, now: float, reason: str) -> None:
        active = self.active
        if active is not None:
            active.interruption = reason or None
            self._become(active, INTERRUPTED, now)

    def resume(self, flow: BaseFlow, now: float, *, reason: str = "") -> BaseFlow:
        """Move a waiting flow and the rest of its plan to the top, and activate it.

        A Plan flow moves with its sub-flows above it, and the top sub-flow continues. A parked flow stays parked
        on top until `approve` or `unpark` is called. Return the flow that is now on top. Raises IllegalTransition
        for a finished flow.
        """
        if flow.is_finished:
            raise IllegalTransition(f"A flow in status {flow.status} cannot be resumed.")
        block = self._block(flow)
        target = block[-1]
        if self.top is not target:
            self._interrupt(now, reason)
            inside = {id(member) for member in block}
            self.flows[:] = [other for other in self.flows if id(other) not in inside] + block
        self.reactivate()
        return target

    def _block(self, flow: BaseFlow) -> list[BaseFlow]:
        """Return the outermost plan and its flows in stack order, but with `flow` and its sub-flows on top."""
        root = self.root(flow)
        block = [root, *(member for member in self.members(root.flow_id) if member is not root)]
        own = [member for member in block if member is flow or flow.flow_id in self._ancestry(member)]
        rest = [member for member in block if not any(member is other for other in own)]
        return rest + own

    def approve(self, flow: BaseFlow, now: float, *, reason: str = "") -> None:
        """Move a parked flow to the top and end its wait, whether the approval was granted or denied."""
        self.resume(flow, now, reason=reason)
        if flow.status in PARKED:
            self.unpark(flow, now)

    def park(self, flow: BaseFlow, now: float | None = None, status: FlowStatus = AWAITING_APPROVAL) -> None:
        """Park the Active flow. `status`: the parked status. Default: awaiting an approval (PX-17)."""
        self._become(flow, status, now)

    def unpark(self, flow: BaseFlow, now: float) -> None:
        """End a flow's wait without moving the flow. A flow on top becomes Active; others become interrupted."""
        status, since = (ACTIVE, None) if flow is self.top else (INTERRUPTED, now)
        self._become(flow, status, since)

    def hold_active(self, now: float) -> None:
        """Turn the Active flow back into a planned flow, so that a plan's order can change."""
        active = self.active
        if active is not None:
            self._become(active, PLANNED, now)

    def _become(self, flow: BaseFlow, status: FlowStatus, since: float | None) -> None:
        """Change a flow's status. `since`: when the flow began to wait, or None if it runs."""
        flow.become(status)
        flow.interrupted_at = since
        self.keep_step(flow)

    # Endings

    def complete(self, flow: BaseFlow, now: float | None = None) -> None:
        """Complete a flow, which stays on the stack until `pop_finished`."""
        flow.become(COMPLETED)
        flow.completed_at = now
        self.keep_step(flow)

    def invalidate(self, flow: BaseFlow, status: FlowStatus) -> list[BaseFlow]:
        """Invalidate a flow and, if it is a plan, abandon its unfinished flows (PL-4). Return all these flows."""
        flow.become(status)
        self.keep_step(flow)
        orphans = [member for member in self.members(flow.flow_id) if not member.is_finished]
        for member in orphans:
            member.become(PLAN_ABANDONED)
            self.keep_step(member)
        return [flow, *orphans]

    def cancel(self, flow: BaseFlow) -> list[BaseFlow]:
        """Cancel a flow, at the user's request or to make room. Return all flows that became Invalid."""
        return self.invalidate(flow, CANCELLED)

    def find_abandoned(self, older_than: float, now: float) -> list[BaseFlow]:
        """Return tasks that have waited longer than `older_than` seconds (FS-13).

        A plan has waited as long as its most recent flow. Tasks with a flow that is Active, or awaits an
        approval or a result, are omitted.
        """
        return [task for task in self.tasks() if self._waited(task, now) > older_than]

    def _waited(self, task: BaseFlow, now: float) -> float:
        group = [task, *(member for member in self.members(task.flow_id) if not member.is_finished)]
        if any(flow.status in {ACTIVE, AWAITING_APPROVAL, AWAITING_RESULT} for flow in group):
            return 0.0
        return now - max(flow.interrupted_at or flow.started_at for flow in group)

    def abandon(self, older_than: float, now: float) -> list[BaseFlow]:
        """Cancel the flows that `find_abandoned` returns. Return all flows that became Invalid."""
        stale = self.find_abandoned(older_than, now)
        return [gone for task in stale for gone in self.invalidate(task, ABANDONED)]

    def pop_finished(self, now: float) -> list[BaseFlow]:
        """Remove finished flows and continue the flow below (FS-9). Return the flows to archive."""
        left = self.departed + [flow for flow in reversed(self.flows) if flow.is_finished]
        self.departed = []
        for flow in left:
            if flow.completed_at is None:
                flow.completed_at = now
        self.flows[:] = self.live()
        self.reactivate()
        return left

    def reactivate(self) -> None:
        """Activate the top flow if it is pending and not parked."""
        top = self.top
        if top is not None and top.status.state is FlowState.PENDING and top.status not in PARKED:
            top.interruption = None
            self._become(top, ACTIVE, None)

    def fall_back(self, target: type[BaseFlow], now: float, *, flow_id: FlowId | None = None) -> BaseFlow:
        """Replace the mispredicted Active flow with a flow of type `target` (FS-11).

        The new flow takes over the plan, the turns, and the values that its slots accept. If a flow of that
        type already waits on the stack, the waiting flow is resumed instead, and only its empty slots are
        filled (FS-10). Raises IllegalTransition if no flow is Active or the Active flow already has that
        type.
        """
        old = self.active
        if old is None:
            raise IllegalTransition("No flow is Active, so there is nothing to fall back from.")
        if target.spec.dact == old.dact:
            raise IllegalTransition(f"The flow {old.dact} cannot fall back to itself.")
        waiting = self.find(target.spec.dact)
        new = waiting or target(now, flow_id=flow_id or new_flow_id(), plan_id=old.plan_id)
        new.take_over(old)
        self.invalidate(old, MISPREDICTED)
        self.flows.remove(old)
        self.departed.append(old)
        if waiting is not None:
            self.resume(waiting, now)
            return waiting
        self._replace_step(old, new)
        self._enter(new, ACTIVE, now)
        return new

    # Records of plans

    def keep_step(self, flow: BaseFlow) -> None:
        """Copy the flow's status to its step in the plan."""
        root = self.plan_of(flow)
        if root is not None:
            for step in root.steps:
                if step.flow_id == flow.flow_id:
                    step.state, step.reason = flow.status

    def _replace_step(self, old: BaseFlow, new: BaseFlow) -> None:
        root = self.plan_of(new)
        if root is not None:
            place = next((i for i, s in enumerate(root.steps) if s.flow_id == old.flow_id), len(root.steps))
            known = root.steps[place] if place < len(root.steps) else PlanStep(new.flow_id, new.dact)
            root.steps[place : place + 1] = [known.carried_out_by(new.flow_id, new.dact)]
            root.revision += 1

    # Checks

    def check(self) -> list[str]:
        """Return a sentence for each violation of the stack's invariants (FS-8, FS-10, PL-4)."""
        return self.check_order() + self.check_repeated()

    def check_order(self) -> list[str]:
        """Find Active flows below the top, an unparked waiting top flow, and flows whose plan isn't below them."""
        faults = [
            f"{flow.dact} is Active below the top of the stack."
            for flow in self.flows[:-1]
            if flow.status == ACTIVE
        ]
        top = self.top
        if top is not None and top.status.state not in ENDED and top.status not in {ACTIVE, *PARKED}:
            faults.append(f"The top flow {top.dact} is {top.status}.")
        places = {flow.flow_id: place for place, flow in enumerate(self.flows) if isinstance(flow, PlanFlow)}
        return faults + [
            f"{flow.dact} serves a plan that is not below it on the stack."
            for place, flow in enumerate(self.flows)
            if flow.plan_id is not None and not flow.is_finished and places.get(flow.plan_id, place) >= place
        ]

    def check_repeated(self) -> list[str]:
        """Find flow names that are live twice within one plan or outside plans, and flow IDs that are used twice."""
        dacts = Counter((flow.plan_id, flow.dact) for flow in self.live())
        names = Counter(flow.flow_id for flow in self.flows)
        return [f"{dact} is on the stack twice." for (_, dact), count in dacts.items() if count > 1] + [
            f"The ID {name} is used twice." for name, count in names.items() if count > 1
        ]
