"""Steps of a turn that must not be had twice: answered from the journal, else run and recorded (RT-8, RT-9).

Pure against `ports.lane.Lane.record`. What a step does, and whether it is idempotent, its caller knows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

import orjson

from orchestrator.errors import (
    DeadlineExceeded,
    LaneLost,
    ParleyError,
    StepFailed,
    StepMismatch,
    TurnCancelled,
    Unavailable,
)
from orchestrator.ports.lane import Lane
from orchestrator.turns.lease import Lease, Work
from orchestrator.turns.step import Step, StepStatus, UnknownOutcome
from orchestrator.types import Json, TurnId

UNDECIDED = (Unavailable, DeadlineExceeded, TurnCancelled, LaneLost)
"""Named errors that do not tell whether a call had an effect."""


class DurableSteps:
    """The journal of one attempt of one turn. Cheap to make; belongs to one coroutine at a time."""

    def __init__(self, lane: Lane, lease: Lease, work: Work) -> None:
        self._lane = lane
        self._lease = lease
        self._turn_id = work.turn_id
        self._journal = {step.key: step for step in work.steps}

    @property
    def turn_id(self) -> TurnId:
        return self._turn_id

    def idempotency_key(self, key: str) -> str:
        """The key a tool may pass on; the same in every attempt of this turn."""
        return f"{self._turn_id}:{key}"

    async def call(
        self,
        key: str,
        kind: str,
        request: Json,
        run: Callable[[str], Awaitable[Json]],
        *,
        idempotent: bool,
    ) -> Json | UnknownOutcome:
        """Give the recorded result of this step, or run it and record what it gives.

        Args:
            key: unique within the turn and the same in every attempt, e.g. ``tool:flight_book:1``.
            kind: ``model`` or ``tool``.
            request: what is asked, as JSON; guards against a key that changed its meaning.
            run: makes the call; gets the idempotency key; returns JSON.
            idempotent: False records the start first, so that it is never made twice unknowingly.

        Raises:
            StepMismatch: the journal holds another request under this key.
            StepFailed: the step failed in an earlier attempt.
            LaneLost: the lane was taken over; stop.
        """
        request_hash = hash_request(request)
        known = self._journal.get(key)
        if known is not None:
            self._check_same(known, request_hash)
            return self._replay(known)
        if not idempotent:
            await self._record(Step(key, kind, StepStatus.STARTED, request_hash))
        return await self._run(key, kind, request_hash, run, idempotent=idempotent)

    async def settle(self, key: str, kind: str, request: Json, result: Json) -> None:
        """Record what an unknown outcome turned out to be."""
        await self._record(Step(key, kind, StepStatus.FINISHED, hash_request(request), result))

    async def _run(
        self,
        key: str,
        kind: str,
        request_hash: str,
        run: Callable[[str], Awaitable[Json]],
        *,
        idempotent: bool,
    ) -> Json:
        try:
            result = await run(self.idempotency_key(key))
        except UNDECIDED:
            raise
        except ParleyError as error:
            if not idempotent:
                failure = {"code": error.code, "message": str(error)}
                await self._record(Step(key, kind, StepStatus.FAILED, request_hash, failure))
            raise
        await self._record(Step(key, kind, StepStatus.FINISHED, request_hash, result))
        return result

    def _replay(self, step: Step) -> Json | UnknownOutcome:
        match step.status:
            case StepStatus.FINISHED:
                return step.result
            case StepStatus.FAILED:
                raise StepFailed(step.result["message"], cause=step.result["code"])
            case StepStatus.STARTED:
                return UnknownOutcome(step.key, self.idempotency_key(step.key))

    def _check_same(self, known: Step, request_hash: str) -> None:
        if known.request_hash != request_hash:
            raise StepMismatch(
                f"Step {known.key!r} of turn {self._turn_id} differs from its earlier attempt."
            )

    async def _record(self, step: Step) -> None:
        await self._lane.record(self._lease, self._turn_id, step)
        self._journal[step.key] = step


def hash_request(request: Json) -> str:
    """A short digest of a JSON request; the order of keys does not count."""
    return hashlib.blake2b(orjson.dumps(request, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()
