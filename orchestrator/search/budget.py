"""How many calls a search may make: each expansion and each judgement is one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Budget:
    limit: int
    spent: int = 0

    @property
    def left(self) -> int:
        return self.limit - self.spent

    def spend(self) -> None:
        """Count one call; whoever spends has looked at what is left."""
        self.spent += 1
