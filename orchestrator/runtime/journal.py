"""The journal of a turn, which records model and tool calls so that later attempts don't repeat them (RT-8 … RT-10).

Only calls with side effects use the side-effect ledger. Listeners receive hints about running tools (RT-15);
the turn's commit contains the same events, numbered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from orchestrator.errors import (
    DeadlineExceeded,
    LaneLost,
    ModelUnavailable,
    Overtaken,
    ParleyError,
    StepFailed,
    StepMismatch,
    TurnCancelled,
    Unavailable,
)
from orchestrator.ports.lane import Lane
from orchestrator.ports.turns import LiveEvents
from orchestrator.telemetry import get_logger
from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import MAY_BE_HAD, Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease, Work
from orchestrator.turns.step import NotBegun, Step, StepStatus, UnknownOutcome
from orchestrator.types import Json, JsonObject, hash_json

_log = get_logger(__name__)

TOOL = "tool"

UNDECIDED = (Unavailable, DeadlineExceeded, TurnCancelled, LaneLost)
"""Errors after which it is unknown whether a call had its side effect."""

QUIET_FOR_S = 0.1
"""Delay of the first hint, in seconds. Users don't notice shorter turns, so short turns send no hints."""

Tell: TypeAlias = Callable[[str, JsonObject], None]
"""A callback that receives an event's type and payload."""


def notify_none(kind: str, payload: JsonObject) -> None:
    """Discard an event, for turns without listeners."""


class Meaning(Enum):
    """The effect of a mid-turn message on the running turn."""

    STOPS = auto()
    """The message changes or cancels the running task, so the turn must stop."""
    TAKES_BACK = auto()
    """The message withdraws the running turn, as if it had never been sent."""
    NOTHING = auto()
    """Small talk or a question, which doesn't affect the turn. The next message is classified too."""
    WAITS = auto()
    """The message and all later messages must wait."""


Hear: TypeAlias = Callable[[Work], Awaitable[Meaning]]
"""A function that classifies a mid-turn message. It has no side effects and makes no calls."""


class Journal:
    """The journal of one attempt at a turn. Only one coroutine can use a journal at a time."""

    def __init__(self, lane: Lane, lease: Lease, work: Work, tell: Tell = notify_none) -> None:
        self.lane = lane
        self._tell = tell
        self.lease = lease
        self.turn_id = work.turn_id
        self._journal = {step.key: step for step in work.steps}
        self.stopped = False
        """True after the turn was stopped: recorded results are returned, but no further calls are made."""
        self.overtaken = False
        self.effects: set[str] = set()
        """Keys of this turn's steps that had, or may have had, a side effect."""
        self.acting = False
        """True while a call with a side effect runs. During the call, only a cancellation stops the turn."""
        self.hear: Hear | None = None
        """The classifier of mid-turn messages, or None while the turn is not being processed."""

    @property
    def has_calls(self) -> bool:
        """Return whether a tool was called in this or an earlier attempt."""
        return any(step.kind == TOOL for step in self._journal.values())

    def idempotency_key(self, key: str) -> str:
        """Return a step's idempotency key, which is the same in all attempts."""
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
        """Return a step's recorded result, or run the step and record its result.

        Args:
            key: identifies the step in all attempts of the turn, for example ``tool:flight_book:1``.
            kind: ``model`` or ``tool``.
            request: the call's input, to detect that a key is reused for a different call.
            run: makes the call. Receives the idempotency key.
            idempotent: True if the call can be repeated. If False, its start is recorded first.
            effect: the intended side effect, if any. Unless `effect.again` is set, a side effect that may have
                happened is not repeated.

        Raises:
            StepMismatch: the journal has a different request with this key.
            StepFailed: the step failed in an earlier attempt.
            LaneLost: another worker took over the lane.
            ModelUnavailable: the turn was stopped, so no model is called.
        """
        step = _Call(key, kind, hash_json(request), idempotent, effect, self.idempotency_key(key))
        known = self._journal.get(key)
        if known is not None:
            return await self._replay(known, step)
        if effect is not None and (earlier := await self._done_before(step, effect)) is not None:
            return earlier
        if self.stopped:
            if kind == TOOL:
                return NotBegun()
            raise ModelUnavailable("The turn was stopped, so no model was called.")
        self.acting = effect is not None
        try:
            if self.acting or not idempotent:
                await self._begin(step)
            self._report_tool("tool_started", kind, request)
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
        self._report_tool("tool_finished", kind, request)
        return result

    async def _begin(self, step: _Call) -> None:
        """Record the start of a call that has a side effect or can't be repeated.

        All mid-turn messages that have arrived are classified first.
        """
        started, heard = {"idempotency_key": step.idempotency_key}, 0
        if step.idempotent:  # The call can be repeated after a crash, but not after a stop.
            await self.listen()
            self._journal[step.key] = Step(
                step.key, step.kind, StepStatus.STARTED, step.request_hash, started
            )
            return
        while not await self._record(step, StepStatus.STARTED, started, heard=heard):
            heard = await self.listen()

    async def listen(self) -> int:
        """Classify mid-turn messages up to the first message that must wait. Return the session's last `seq`.

        This happens before a call that has a side effect or can't be repeated, and when a lease renewal reports
        a new message or a cancellation (RT-5). Raises Unavailable, or, if the running turn must stop, Overtaken
        or TurnCancelled.
        """
        said = await self.lane.said_meanwhile(self.lease)
        if said.cancelled:
            raise TurnCancelled("The turn was canceled.")
        for work in said.turns:
            match await self._hear(work):
                case Meaning.STOPS:
                    raise Overtaken(f"Turn {work.turn_id} changed or canceled this turn's task.")
                case Meaning.TAKES_BACK:
                    raise Overtaken(f"Turn {work.turn_id} rolled back this turn.", takes_back=True)
                case Meaning.NOTHING:
                    continue
                case Meaning.WAITS:
                    break
        return said.upto

    async def _hear(self, work: Work) -> Meaning:
        """Classify a message. If classification fails, the message waits for its own turn."""
        if self.hear is None or self.stopped:
            return Meaning.WAITS
        try:
            return await self.hear(work)
        except Exception:  # noqa: BLE001 - an unreadable message must not harm the running turn
            _log.exception("Could not classify a mid-turn message.", turn=work.turn_id)
            return Meaning.WAITS

    def _report_tool(self, event: str, kind: str, request: Json) -> None:
        if kind == TOOL:
            self._tell(event, {"tool_id": request.get("tool_id")})

    async def _done_before(self, step: _Call, effect: Effect) -> Json | UnknownOutcome | None:
        """Return the result of an earlier call with this side effect, or None to make the call now.

        If `effect.again` is set, always return None. Otherwise, return an UnknownOutcome after an unknown outcome.
        A call repeated after an unknown outcome reuses the earlier idempotency key.
        """
        earlier = await self.lane.find_effect(self.lease, effect)
        if earlier is None or earlier.status not in MAY_BE_HAD:
            return None
        if earlier.status is not LedgerStatus.DONE:
            step.idempotency_key = earlier.idempotency_key
            if effect.again:
                return None
            is_awaited = earlier.status is LedgerStatus.AWAITED and earlier.of_session is None
            return earlier.result if is_awaited else UnknownOutcome(step.key, step.idempotency_key)
        return None if effect.again else earlier.result

    async def settle(
        self, unknown: UnknownOutcome, kind: str, request: Json, result: Json, effect: Effect | None = None
    ) -> None:
        """Record the result of a call whose outcome was unknown."""
        step = _Call(unknown.key, kind, hash_json(request), False, effect, unknown.idempotency_key)
        await self._record(step, StepStatus.FINISHED, result)

    async def decide_approval(self, approval_id: str, decision: Decision) -> ApprovalRecord | None:
        """Decide a pending approval. A later attempt of the turn receives the first decision.

        Return None if the session has no such approval.
        """
        return await self.lane.decide_approval(self.lease, approval_id, decision)

    async def _replay(self, known: Step, step: _Call) -> Json | UnknownOutcome:
        if known.request_hash != step.request_hash:
            raise StepMismatch(f"Step {known.key!r} of turn {self.turn_id} differs from its earlier attempt.")
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
                # The store received the result, but the previous attempt stopped before it was confirmed.
                await self._mark_compensated(effect, entry.result)
                return entry.result
            case StepStatus.STARTED:
                return UnknownOutcome(known.key, known.result["idempotency_key"])

    async def _mark_compensated(self, effect: Effect | None, result: Json) -> None:
        if effect is None or effect.compensates is None:
            return
        if effect.judge(result) is LedgerStatus.DONE:
            await self.lane.mark_compensated(self.lease, effect.compensates)

    async def _record(
        self,
        step: _Call,
        status: StepStatus,
        result: Json = None,
        began: float | None = None,
        heard: int | None = None,
    ) -> bool:
        """Store a step with its ledger entry. Return False if new messages must be read first."""
        lasted = None if began is None else round((time.perf_counter() - began) * 1000, 1)
        written = Step(step.key, step.kind, status, step.request_hash, result, lasted)
        entry = self._enter(step, status, result)
        if not await self.lane.record(self.lease, self.turn_id, written, entry, heard):
            return False
        self._journal[step.key] = written
        if status is StepStatus.FINISHED:
            await self._mark_compensated(step.effect, result)
        return True

    def _enter(self, step: _Call, status: StepStatus, result: Json) -> LedgerEntry | None:
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
            result=result if known in {LedgerStatus.DONE, LedgerStatus.AWAITED} else None,
        )


@dataclass(slots=True)
class _Call:
    key: str
    kind: str
    request_hash: str
    idempotent: bool
    effect: Effect | None
    idempotency_key: str


class TurnHints:
    """Progress hints of an attempt for live listeners. Call `close` when the attempt ends."""

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
        """Publish an event, unless the turn ends within `QUIET_FOR_S`."""
        self._waiting.append(Event(self._session_id, kind, self._turn_id, payload))
        if self._begun:
            self._send()

    def close(self) -> None:
        """Discard pending events. The commit contains them, or the next attempt repeats them."""
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
