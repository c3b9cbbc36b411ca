"""What a module may ask of the turn's journal: run a call once, or be told that nobody knows (RT-8, RT-9).

The journal itself belongs to the agent; modules see only this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import Json


class Steps(Protocol):
    async def call(
        self,
        key: str,
        kind: str,
        request: Json,
        fn: Callable[[], Awaitable[Json]],
        *,
        idempotent: bool,
    ) -> Json | UnknownOutcome:
        """Answer from the journal, or run `fn` and record its result under `key`.

        `key` is stable across attempts of a turn. A call that is not idempotent, was begun by an
        earlier attempt and left no result is not run again: UnknownOutcome.
        """
        ...
