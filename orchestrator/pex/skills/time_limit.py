"""Limit a skill's time: its tools' timeouts plus overhead, and never beyond the turn (PX-9)."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class SkillTimedOut(Exception):
    """The skill's time is used up."""


class Clock:
    def __init__(self, allowed_s: float, turn_ends: float | None) -> None:
        """`turn_ends`: on the monotonic clock."""
        mine = time.monotonic() + allowed_s
        self.ends = mine if turn_ends is None else min(mine, turn_ends)

    @property
    def left_s(self) -> float:
        return self.ends - time.monotonic()

    def check(self) -> None:
        """Raise SkillTimedOut if nothing more may be started."""
        if self.left_s <= 0:
            raise SkillTimedOut

    @asynccontextmanager
    async def limit(self) -> AsyncGenerator[None]:
        """Interrupt the block at the time limit, with SkillTimedOut."""
        self.check()
        deadline = asyncio.timeout(self.left_s)
        try:
            async with deadline:
                yield
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise SkillTimedOut from error
