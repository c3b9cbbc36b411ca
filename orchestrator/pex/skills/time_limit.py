"""The time limit of a skill: its tools' timeouts plus overhead, but never longer than the turn (PX-9)."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class SkillTimedOut(Exception):
    """Raised if a skill exceeds its time limit."""


class Clock:
    def __init__(self, allowed_s: float, turn_ends: float | None) -> None:
        """Start the clock. `turn_ends`: the turn's deadline on the monotonic clock, or None."""
        mine = time.monotonic() + allowed_s
        self.ends = mine if turn_ends is None else min(mine, turn_ends)

    @property
    def left_s(self) -> float:
        return self.ends - time.monotonic()

    def check(self) -> None:
        """Raise SkillTimedOut if the time is up."""
        if self.left_s <= 0:
            raise SkillTimedOut

    @asynccontextmanager
    async def limit(self) -> AsyncGenerator[None]:
        """Interrupt the block at the time limit and raise SkillTimedOut."""
        self.check()
        deadline = asyncio.timeout(self.left_s)
        try:
            async with deadline:
                yield
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise SkillTimedOut from error
