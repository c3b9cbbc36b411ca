"""The port to the counters of tokens and cost that outlive a process: per session, per day."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens, and cost in millionths of the currency that prices are configured in."""

    tokens: int = 0
    cost_micros: int = 0

    def plus(self, other: "Spent") -> "Spent":
        """Both together."""
        return Spent(self.tokens + other.tokens, self.cost_micros + other.cost_micros)

    def minus(self, other: "Spent") -> "Spent":
        """This without the other; it may be negative."""
        return Spent(self.tokens - other.tokens, self.cost_micros - other.cost_micros)


class SpendingStore(Protocol):
    """Counters of tokens and money that all processes share."""

    async def add(self, key: str, amount: Spent, *, keep_s: int) -> Spent:
        """Add to a counter, atomically, and return its new value. Negative amounts give back.

        Args:
            key: the counter; it starts at zero.
            amount: what to add.
            keep_s: seconds after the last addition for which the counter must be remembered.
        """
        ...
