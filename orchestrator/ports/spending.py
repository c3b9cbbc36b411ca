"""The port for counters of tokens and cost that all processes share."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Spent:
    """A number of tokens and their cost. `cost_micros`: in millionths of a US dollar."""

    tokens: int = 0
    cost_micros: int = 0

    def plus(self, other: "Spent") -> "Spent":
        return Spent(self.tokens + other.tokens, self.cost_micros + other.cost_micros)

    def minus(self, other: "Spent") -> "Spent":
        return Spent(self.tokens - other.tokens, self.cost_micros - other.cost_micros)


class SpendingStore(Protocol):
    """Counters of tokens and cost, shared by all processes."""

    async def add(self, key: str, amount: Spent, *, keep_s: int) -> Spent:
        """Add `amount` to the counter `key` atomically, and return its new value. Negative amounts are refunds.

        The counter is deleted `keep_s` seconds after the last call.
        """
        ...
