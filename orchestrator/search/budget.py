"""How many calls a search may make: each expansion, evaluation and reflection is one."""

from __future__ import annotations

from dataclasses import dataclass


class CallsSpent(Exception):
    """The search has used up its calls; never leaves the package."""


@dataclass(slots=True)
class Budget:
    limit: int
    spent: int = 0

    @property
    def left(self) -> int:
        return self.limit - self.spent

    def spend(self) -> None:
        """Count one call. Raises CallsSpent when there is none left."""
        if self.spent >= self.limit:
            raise CallsSpent
        self.spent += 1
