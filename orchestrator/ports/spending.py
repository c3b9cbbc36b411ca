"""The port to persistent token and cost counters, per session and per day."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens, and cost in millionths of a US dollar."""

    tokens: int = 0
    cost_micros: int = 0

    def plus(self, other: "Spent") -> "Spent":
        """Return the sum."""
        return Spent(self.tokens + other.tokens, self.cost_micros + other.cost_micros)

    def minus(self, other: "Spent") -> "Spent":
        """Return the difference, possibly negative."""
        return Spent(self.tokens - other.tokens, self.cost_micros - other.cost_micros)


class SpendingStore(Protocol):
    """Token and cost counters shared by all processes."""

    async def add(self, key: str, amount: Spent, *, keep_s: int) -> Spent:
        """Add to a counter atomically, and return its new value. Negative amounts refund.

        Args:
            key: the counter, initially zero.
            amount: what to add.
            keep_s: seconds after the last addition for which the counter is kept.
        """
        ...
