"""Limits the time that a skill has: its tools' time-outs plus overhead, and never more than the turn (PX-9)."""

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
        """Raise SkillTimedOut when nothing more may be begun."""
        if self.left_s <= 0:
            raise SkillTimedOut

    @asynccontextmanager
    async def limit(self) -> AsyncGenerator[None]:
        """Stop what is done within when the time is over, with SkillTimedOut."""
        self.check()
        deadline = asyncio.timeout(self.left_s)
        try:
            async with deadline:
                yield
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise SkillTimedOut from error
