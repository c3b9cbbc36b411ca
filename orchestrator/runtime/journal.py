"""Steps of a turn that must run at most once: answered from the journal, else run and recorded (RT-8 … RT-10).

Pure against `ports.lane.Lane`. The ledger is asked only for calls that are not idempotent. What a step
does, its caller knows. Listeners are told what is at work when that takes a moment (RT-15): hints only, for the
same events are in the turn's commit, with their numbers.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias

from orchestrator.errors import (
    DeadlineExceeded,
    LaneLost,
    ModelUnavailable,
    ParleyError,
    StepFailed,
    StepMismatch,
    TurnCancelled,
    Unavailable,
)
from orchestrator.ports.lane import Lane
from orchestrator.ports.turns import LiveEvents
from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import MAY_BE_HAD, Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.step import NotBegun, Step, StepStatus, UnknownOutcome
from orchestrator.types import Json, JsonObject, hash_json

TOOL = "tool"
"""The kind of a tool's step; the others are of models."""

UNDECIDED = (Unavailable, DeadlineExceeded, TurnCancelled, LaneLost)
"""Named errors that do not tell whether a call had an effect."""

QUIET_FOR_S = 0.1
"""A turn that is done by then costs no message; shorter than that, people see no delay."""

Tell: TypeAlias = Callable[[str, JsonObject], None]
"""Takes the type of an event and its payload."""


def tell_nobody(kind: str, payload: JsonObject) -> None:
    """For turns that nobody listens to."""


Listen: TypeAlias = Callable[["Journal"], Awaitable[int]]
"""Reads what was said to the turn at work; gives the `seq` up to which. Raises TurnCancelled where it is to stop."""


async def hear_nothing(_: Journal) -> int:
    """For turns that run without a lane."""
    return sys.maxsize


class Meaning(Enum):
    """What a message means for the turn at work."""

    STOPS = auto()
    """Its task changes, or is given up: it is not to go on."""
    TAKES_BACK = auto()
    """It is to be as if it had not been said."""
    NOTHING = auto()
    """It is only talk; what was said after it may mean more."""
    WAITS = auto()
    """It is for later, and so is what was said after it."""


Hear: TypeAlias = Callable[[Any, Work], Awaitable[Meaning | TurnCommit]]
"""Reads a waiting turn's message against the turn at work, of which it takes what `Journal.at_work` has.

Changes nothing and calls nothing. A commit is the answer to a question, to be given at once.
"""


class Journal:
    """The journal of one attempt of one turn. Cheap to make; belongs to one coroutine at a time."""

    def __init__(
        self, lane: Lane, lease: Lease, work: Work, tell: Tell = tell_nobody, listen: Listen = hear_nothing
    ) -> None:
        self.lane = lane
        self._tell = tell
        self._listen = listen
        self.lease = lease
        self.turn_id = work.turn_id
        self._journal = {step.key: step for step in work.steps}
        self.stopped = False
        """The turn was stopped: calls are answered from here, and none is made any more."""
        self.overtaken = False
        self.effects: set[str] = set()
        """Steps of this turn that had an effect, or may have had one."""
        self.acting = False
        """A call with an effect is at work: it is waited for."""
        self.at_work: tuple[Hear, object] | None = None
        """Who can say what a message means for this turn, and what of it that takes; None while it is not at work."""

    @property
    def has_calls(self) -> bool:
        """Whether a tool was called, in this attempt or an earlier one."""
        return any(step.kind == TOOL for step in self._journal.values())

    def idempotency_key(self, key: str) -> str:
        """The key a tool may pass on; the same in every attempt of this turn."""
        return f"{self.turn_id}:{key}"

    async def call(
        self,
        key: str,
        kind: str,
        request: Json,
        run: Callable[[str], Awaitable[Json]],
        *,
        idempotent: bool,
        effect: Effect | None = None,
    ) -> Json | UnknownOutcome | NotBegun:
        """Give the recorded result of this step, or run it and record what it gives; in a stopped turn it is not run.

        Args:
            key: unique within the turn and the same in every attempt, e.g. ``tool:flight_book:1``.
            kind: ``model`` or ``tool``.
            request: what is asked, as JSON; guards against a key that changed its meaning.
            run: makes the call; gets the idempotency key; returns JSON.
            idempotent: False records the start first, so that it is never made twice unknowingly.
            effect: what the call does to the world; what an earlier turn did is not done again.

        Raises:
            StepMismatch: the journal holds another request under this key.
            StepFailed: the step failed in an earlier attempt.
            LaneLost: the lane was taken over; stop.
            ModelUnavailable: a stopped turn asks no model.
        """
        step = _Call(key, kind, hash_json(request), idempotent, effect, self.idempotency_key(key))
        known = self._journal.get(key)
        if known is not None:
            self._check_same(known, step.request_hash)
            return await self._replay(known, step)
        if effect is not None and (earlier := await self._done_before(step, effect)) is not None:
            return earlier
        if self.stopped:
            if kind == TOOL:
                return NotBegun()
            raise ModelUnavailable("The turn was stopped; no model is asked any more.")
        self.acting = effect is not None
        try:
            if (self.acting or not idempotent) and (elsewhere := await self._begin(step)) is not None:
                return elsewhere
            self._tell_tool("tool_started", kind, request)
            began = time.perf_counter()
            try:
                result = await run(step.idempotency_key)
            except UNDECIDED:
                raise
            except ParleyError as error:
                if not idempotent:
                    failure = {"code": error.code, "message": str(error)}
                    await self._record(step, StepStatus.FAILED, failure, began)
                else:
                    self._journal.pop(key, None)
                raise
            await self._record(step, StepStatus.FINISHED, result, began)
        finally:
            self.acting = False
        self._tell_tool("tool_finished", kind, request)
        return result

    async def _begin(self, step: _Call) -> UnknownOutcome | None:
        """Record the start of a call that changes something, as soon as all that was said before is read.

        An outcome: another branch has made the call meanwhile, and it does not begin here.
        """
        if step.idempotent:  # after a crash it may be called again; a stop leaves open whether it was done
            await self._listen(self)
            self._journal[step.key] = Step(step.key, step.kind, StepStatus.STARTED, step.request_hash)
            return None
        started, heard = {"idempotency_key": step.idempotency_key}, 0
        while not (begun := await self._record(step, StepStatus.STARTED, started, heard=heard)):
            heard = await self._listen(self)
        return begun if isinstance(begun, UnknownOutcome) else None

    def _tell_tool(self, event: str, kind: str, request: Json) -> None:
        if kind == TOOL:
            self._tell(event, {"tool_id": request.get("tool_id")})

    async def _done_before(self, step: _Call, effect: Effect) -> Json | UnknownOutcome | None:
        """Look the effect up in the ledger; None: it is to be had now, with the step's idempotency key."""
        earlier = await self.lane.find_effect(self.lease, effect)
        if earlier is None or earlier.status not in MAY_BE_HAD:
            return None
        is_done, elsewhere = earlier.status is LedgerStatus.DONE, earlier.session_id != self.lease.session_id
        if elsewhere or not is_done:
            step.idempotency_key = earlier.idempotency_key
            return None if effect.again else UnknownOutcome(step.key, step.idempotency_key, elsewhere=is_done)
        return None if effect.again else earlier.result

    async def settle(
        self, unknown: UnknownOutcome, kind: str, request: Json, result: Json, effect: Effect | None = None
    ) -> None:
        """Record what an unknown outcome turned out to be."""
        step = _Call(unknown.key, kind, hash_json(request), False, effect, unknown.idempotency_key)
        await self._record(step, StepStatus.FINISHED, result)

    async def decide_approval(self, approval_id: str, decision: Decision) -> ApprovalRecord | None:
        """Decide a pending approval, once; a later attempt finds what the first one decided."""
        return await self.lane.decide_approval(self.lease, approval_id, decision)

    async def _replay(self, known: Step, step: _Call) -> Json | UnknownOutcome:
        effect, entry = step.effect, None
        if effect is not None:
            if known.status is not StepStatus.FAILED:
                self.effects.add(known.key)
            entry = await self.lane.adopt_effect(
                self.lease,
                self.turn_id,
                known.key,
                fingerprint=effect.fingerprint,
                flow_id=effect.flow_id,
            )
        match known.status:
            case StepStatus.FINISHED:
                await self._mark_compensated(effect, known.result)
                return known.result
            case StepStatus.FAILED:
                raise StepFailed(known.result["message"], cause=known.result["code"])
            case StepStatus.STARTED if entry is not None and entry.status is LedgerStatus.DONE:
                # It was stopped when the store knew, and we did not yet.
                await self._mark_compensated(effect, entry.result)
                return entry.result
            case StepStatus.STARTED:
                if known.result is None:  # an earlier release kept no key, and always used this one
                    return UnknownOutcome(known.key, step.idempotency_key)
                return UnknownOutcome(known.key, known.result["idempotency_key"])

    async def _mark_compensated(self, effect: Effect | None, result: Json) -> None:
        if effect is None or effect.compensates is None:
            return
        if effect.judge(result) is LedgerStatus.DONE:
            await self.lane.mark_compensated(self.lease, effect.compensates)

    def _check_same(self, known: Step, request_hash: str) -> None:
        if known.request_hash != request_hash:
            raise StepMismatch(f"Step {known.key!r} of turn {self.turn_id} differs from its earlier attempt.")

    async def _record(
        self,
        step: _Call,
        status: StepStatus,
        result: Json = None,
        began: float | None = None,
        heard: int | None = None,
    ) -> bool | UnknownOutcome:
        """Write a step with its line of the ledger, see `Lane.record`."""
        lasted = None if began is None else round((time.perf_counter() - began) * 1000, 1)
        written = Step(step.key, step.kind, status, step.request_hash, result, lasted)
        entry = self._enter(step, status, result)
        held = await self.lane.record(self.lease, self.turn_id, written, entry, heard)
        if held is not True:
            return held
        self._journal[step.key] = written
        if status is StepStatus.FINISHED:
            await self._mark_compensated(step.effect, result)
        return True

    def _enter(self, step: _Call, status: StepStatus, result: Json) -> LedgerEntry | None:
        """The step's line of the ledger."""
        effect = step.effect
        if effect is None:
            return None
        match status:
            case StepStatus.STARTED:
                known = LedgerStatus.STARTED
            case StepStatus.FAILED:
                known = LedgerStatus.FAILED
            case StepStatus.FINISHED:
                known = effect.judge(result)
        return LedgerEntry(
            session_id=self.lease.session_id,
            fingerprint=effect.fingerprint,
            turn_id=self.turn_id,
            step_key=step.key,
            idempotency_key=step.idempotency_key,
            flow_id=effect.flow_id,
            tool_id=effect.tool_id,
            arguments=effect.arguments,
            slots=effect.slots,
            status=known,
            result=result if known is LedgerStatus.DONE else None,
        )


@dataclass(slots=True)
class _Call:
    """One call on its way through the journal."""

    key: str
    kind: str
    request_hash: str
    idempotent: bool
    effect: Effect | None
    idempotency_key: str


class TurnHints:
    """Tells listeners what one attempt of a turn does; `close` it when the attempt ends."""

    def __init__(self, live: LiveEvents, lease: Lease) -> None:
        self._live = live
        self._session_id = lease.session_id
        self._turn_id = lease.work.turn_id
        self._waiting: list[Event] = []
        self._quiet = asyncio.get_running_loop().call_later(QUIET_FOR_S, self._begin)
        self._begun = False
        self._sending: asyncio.Task[None] | None = None
        self.tell("started", {"seq": lease.work.seq})

    def tell(self, kind: str, payload: JsonObject) -> None:
        """Tell it now, or once the turn has taken a moment."""
        self._waiting.append(Event(self._session_id, kind, self._turn_id, payload))
        if self._begun:
            self._send()

    def close(self) -> None:
        """Tell nothing more: what was to be told is about to be committed, or begun anew."""
        self._quiet.cancel()
        self._waiting.clear()

    def _begin(self) -> None:
        self._begun = True
        self._send()

    def _send(self) -> None:
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._publish(), name="hints of a turn")

    async def _publish(self) -> None:
        while self._waiting:
            told, self._waiting = tuple(self._waiting), []
            await self._live.publish(self._session_id, told)
