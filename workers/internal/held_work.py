"""Renew the claims on runs and items that this process executes, and stop work whose claim is lost (IF-9)."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from orchestrator.adapters.postgres.runs.work import PostgresRunWork


class Fenced(Exception):
    """Raised after a claim was lost, so that the worker drops the work."""


class HeldWork:
    def __init__(self, work: PostgresRunWork) -> None:
        self._work = work
        self._tasks: dict[int, asyncio.Task[object]] = {}
        self._fenced: set[int] = set()

    @contextmanager
    def holding(self, token: int) -> Generator[None]:
        """Mark a claim as used by the current task during the block, then release the claim.

        Raises Fenced if the claim is lost during the block.
        """
        task = asyncio.current_task()
        assert task is not None
        self._tasks[token] = task
        try:
            yield
        except asyncio.CancelledError as error:
            if token not in self._fenced:
                raise
            task.uncancel()
            raise Fenced from error
        finally:
            del self._tasks[token]
            self._fenced.discard(token)
            self._work.give_up(token)

    async def renew(self) -> None:
        """Renew all claims, and cancel the tasks whose claims were lost."""
        for token in await self._work.renew():
            task = self._tasks.get(token)
            if task is not None and token not in self._fenced:
                self._fenced.add(token)
                task.cancel()

    async def drain(self, grace_s: float) -> None:
        if self._tasks:
            await asyncio.wait({*self._tasks.values()}, timeout=grace_s)
