"""What a module may ask of the turn's journal: run a call once, or be told that nobody knows (RT-8, RT-9).

The journal itself belongs to the agent; modules see only this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import Effect
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import Json


class Steps(Protocol):
    async def call(
        self,
        key: str,
        kind: str,
        request: Json,
        run: Callable[[str], Awaitable[Json]],
        *,
        idempotent: bool,
        effect: Effect | None = None,
    ) -> Json | UnknownOutcome:
        """Answer from the journal, or run and record the result under `key`.

        `key` is unique in the turn and stable across its attempts. `run` gets the idempotency key.
        A call that is not idempotent, was begun by an earlier attempt and left no result is not
        run again: UnknownOutcome. With `effect` the session's ledger is asked as well: what an
        earlier turn did for the same flow is answered from there (RT-10).
        """
        ...

    async def settle(
        self,
        unknown: UnknownOutcome,
        kind: str,
        request: Json,
        result: Json,
        effect: Effect | None = None,
    ) -> None:
        """Record what an unknown outcome turned out to be."""
        ...

    async def decide_approval(self, approval_id: str, decision: Decision) -> ApprovalRecord | None:
        """Decide a pending approval, once; gives it as it then stands. None: there is none."""
        ...
